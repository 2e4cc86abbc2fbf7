package doctor

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/input/nccllog"
	"busbar.dev/internal/words"
)

// status is a completion with a status.
func (c *Case) status(code ...string) *evidence.Observation {
	return c.Find(evidence.Completion, func(o *evidence.Observation) bool { return o.Arg(0) == code[0] })
}

// verdictOf is a work completion's error by name, as words or as NCCL's number.
func (c *Case) verdictOf(nameAndCode ...string) *evidence.Observation {
	return cmp.Or(c.Find(evidence.Verdict,
		func(o *evidence.Observation) bool { return strings.HasPrefix(o.Arg(0), nameAndCode[0]) }), c.status(nameAndCode[1]))
}

// lostPeer is a peer that several hosts name whose transfers to it failed, more than name any other: its host's name
// where the logs tell it.
func (c *Case) lostPeer() *clue {
	var most *evidence.Observation
	alone := false
	for _, o := range c.All(evidence.LostPeer) {
		switch {
		case most == nil || len(o.Hosts) > len(most.Hosts):
			most, alone = o, len(o.Hosts) > 1
		case len(o.Hosts) == len(most.Hosts):
			alone = false
		}
	}
	if !alone {
		return nil
	}
	host := most.Arg(0)
	if c.Job != nil {
		host = c.Job.HostOf(host)
	}
	return &clue{[]string{host}, first(most.Quotes, maxEvidence)}
}

// smallMTU is an MTU of 1500 or less on an interface that carries training
// traffic over a fast network.
func (c *Case) smallMTU() *evidence.Observation {
	for _, o := range c.All(evidence.MTU) {
		n := atoi(o.Arg(1))
		if n <= 0 || n > 1500 || nccllog.Virtual(o.Arg(0)) != "" {
			continue
		}
		if strings.HasPrefix(o.Arg(0), "ib") || c.usesInterface(o.Arg(0)) {
			return o
		}
	}
	return nil
}

// usesInterface reports that NCCL's sockets or RoCE use an interface.
func (c *Case) usesInterface(name string) bool {
	for _, o := range c.All(evidence.SocketUsing) {
		for _, n := range strings.Split(o.Arg(0), ",") {
			if n == name {
				return true
			}
		}
	}
	return false
}

// routableGID reports that the message of a failure shows an address that can be
// routed and none that cannot.
func (c *Case) routableGID() bool {
	return c.Has(evidence.GIDPair) && c.First(evidence.GIDInUse, "link-local") == nil &&
		(c.First(evidence.GIDInUse, "ipv4") != nil || c.First(evidence.GIDPair, "apart") != nil)
}

// badGID is the GID at the index in use when it is link-local or of RoCE v1.
func (c *Case) badGID() *evidence.Observation {
	index := c.value("NCCL_IB_GID_INDEX")
	if index == "" {
		if !c.before(2, 21) || c.release == [3]int{} {
			return nil
		}
		index = "0"
	}
	var bad *evidence.Observation
	better := false
	for _, o := range c.All(evidence.GID) {
		if o.Arg(1) == index && (o.Arg(2) == "link-local" || o.Arg(3) == "v1") {
			bad = o
		}
		better = better || o.Arg(2) == "ipv4" && o.Arg(3) == "v2"
	}
	if !better {
		return nil
	}
	return bad
}

// failed is the first failure of a call for a reason; "": for none that was printed.
func (c *Case) failed(reasonAndCalls ...string) *evidence.Observation {
	reason, calls := reasonAndCalls[0], reasonAndCalls[1:]
	return c.Find(evidence.VerbsFailure, func(o *evidence.Observation) bool {
		return o.Arg(1) == reason &&
			slices.ContainsFunc(calls, func(call string) bool { return strings.HasPrefix(o.Arg(0), call) })
	})
}

// iommuOn is a sign that the IOMMU translates.
func (c *Case) iommuOn() *evidence.Observation {
	pass := c.First(evidence.IommuMode, "passthrough") != nil
	var on *evidence.Observation
	for _, o := range c.All(evidence.IommuSetting) {
		switch {
		case o.Arg(0) == "iommu" && (o.Arg(1) == "pt" || o.Arg(1) == "off"), o.Arg(1) == "off":
			pass = true
		case o.Arg(1) == "on":
			on = o
		}
	}
	if pass {
		return nil
	}
	if on == nil {
		on = c.First(evidence.IommuMode, "translated")
	}
	return on
}

// zeroTables reports several tables of one rank each.
func (c *Case) zeroTables() bool {
	alone := 0
	for _, t := range c.Tables {
		if t.NRanks() > 1 {
			return false
		}
		if t.NRanks() == 1 {
			alone++
		}
	}
	return alone > 1
}

// devicesUp counts the RDMA devices that ibdev2netdev shows with a link.
func (c *Case) devicesUp() float64 {
	n := 0.0
	for _, o := range c.All(evidence.RDMANetDev) {
		if o.Arg(1) == "Up" {
			n++
		}
	}
	return n
}

// idleNICs is the list of adapters of which the connections use the first alone,
// although there are at least as many as GPUs that could use them.
func (c *Case) idleNICs() *clue {
	if c.Log == nil {
		return nil
	}
	devs := map[int]bool{}
	n := 0
	for i := range c.Log.Connections {
		if x := &c.Log.Connections[i]; x.Transport == "NET" && x.Net == "IB" {
			devs[x.NetDev] = true
			n++
		}
	}
	list := c.All(evidence.IBUsing)
	if n < 8 || len(devs) != 1 || len(list) == 0 {
		return nil
	}
	have := strings.Count(list[0].Arg(0), ",") + 1
	if have < 2 || strings.Contains(list[0].Arg(0), "bond") {
		return nil
	}
	// One GPU a host needs one NIC.
	local := 0
	for i := range c.Log.Comms {
		for _, r := range c.Log.Comms[i].Ranks {
			local = max(local, r.LocalRanks)
		}
	}
	if local < 2 {
		return nil
	}
	return &clue{[]string{strconv.Itoa(have)}, first(list[0].Quotes, 1)}
}

// sharers are the GPUs of a host and its fewer NICs, in a job over several hosts.
func (c *Case) sharers() *clue {
	gpus := 0
	list := c.All(evidence.IBUsing)
	if c.Log == nil || len(list) == 0 {
		return nil
	}
	for i := range c.Log.Comms {
		m := &c.Log.Comms[i]
		for _, r := range m.Ranks {
			if max(r.NNodes, m.NNodes) > 1 {
				gpus = max(gpus, r.LocalRanks)
			}
		}
	}
	nics := strings.Count(list[0].Arg(0), ",") + 1
	if gpus < 2 || nics >= gpus {
		return nil
	}
	return &clue{[]string{strconv.Itoa(gpus), words.Plural(nics, "NIC")}, first(list[0].Quotes, 1)}
}
