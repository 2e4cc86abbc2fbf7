package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/doctor/cause"
	"busbar.dev/doctor/evidence"
	"busbar.dev/doctor/told"
	"busbar.dev/finding"
)

// fact is what conditions in causes' files ask for as @NAME, beyond observations and settings.
type fact struct {
	says string
	find any
}

var facts = map[string]fact{
	"nccl-log":        {"a log of NCCL was read", func(c *Case) bool { return c.Log != nil }},
	"hosts":           {"hosts that printed records of NCCL", func(c *Case) float64 { return float64(c.hosts) }},
	"ranks":           {"ranks of the largest communicator", func(c *Case) float64 { return float64(c.ranks) }},
	"broken":          {"NCCL or the program gave up, or somebody says so", (*Case).broken},
	"slow":            {"somebody tells that it is slow", func(c *Case) bool { return c.tells(told.Slow) }},
	"hang":            {"somebody tells that it hangs", func(c *Case) bool { return c.tells(told.Hang) }},
	"crash":           {"somebody tells that it fails", func(c *Case) bool { return c.tells(told.Crash) }},
	"multinode":       {"more than one host takes part", (*Case).multinode},
	"one-host":        {"nccl-tests lists its GPUs on one host", (*Case).oneHost},
	"rdma":            {"hosts have NICs for RDMA", (*Case).rdma},
	"ib-seen":         {"InfiniBand is there, whether NCCL names it or not", (*Case).ibSeen},
	"layer":           {"link layer of the RDMA NICs: IB, RoCE, IB+RoCE", (*Case).layer},
	"args":            {"first arguments of all observations of a kind: @args(xid)", (*Case).args},
	"oom-who":         {"GPU and rank that ran out of memory", (*Case).oomWho},
	"oom-hint":        {"what PyTorch advises then", (*Case).oomHint},
	"rank-twice":      {"lines of ranks that were started twice", (*Case).rankTwice},
	"tests-apart":     {"processes of nccl-tests that know nothing of each other", (*Case).testsApart},
	"zero-tables":     {"several tables of one rank each", (*Case).zeroTables},
	"rank-busy":       {"what a rank did while others waited: limit, work, seconds, time limit", (*Case).rankBusy},
	"timeout-lines":   {"messages of a timeout", (*Case).timeoutLines},
	"timeout-where":   {"ranks that are missing at a timeout", (*Case).timeoutWhere},
	"timeout-why":     {"how ranks differ at a timeout", (*Case).timeoutWhy},
	"init-incomplete": {"a communicator some ranks did not finish: started, ranks, done", (*Case).initIncomplete},
	"nccl-code":       {"NCCL's code in an exception", (*Case).ncclCode},
	"lost-peer":       {"a peer that most hosts name whose transfers failed: host", (*Case).lostPeer},
	"no-peer-access":  {"GPUs whose driver refuses peer access", (*Case).noPeerAccess},
	"last-error":      {"NCCL's last error", func(c *Case) string { return text(c.First(evidence.LastError)) }},
	"slow-rank":       {"a rank whose steps take longer: rank, factor, percent", (*Case).slowRank},
	"status":          {"a completion with a status: @status(12)", (*Case).status},
	"verdict-of":      {"a completion's error: @verdict-of(RETRY_EXC_ERR,12)", (*Case).verdictOf},
	"failed":          {"a call that failed for a reason: @failed(memory,ibv_reg_mr)", (*Case).failed},
	"flushed-only":    {"completions of which all were flushed", (*Case).flushedOnly},
	"bad-gid":         {"the GID in use is link-local or of RoCE v1", (*Case).badGID},
	"routable-gid":    {"the GID of a failed connection can be routed", (*Case).routableGID},
	"same-subnet":     {"two interfaces in one network: name, name, network", (*Case).sharedNet},
	"loss-counters":   {"counters of loss or pauses above 1000", (*Case).lossCounters},
	"link-counters":   {"counters of bad links above 10", (*Case).linkCounters},
	"small-mtu":       {"an MTU of at most 1500 on an interface in use", (*Case).smallMTU},
	"active-mtus":     {"number of different MTUs of RDMA ports", (*Case).activeMTUs},
	"mtu-differs":     {"MTUs of one interface on several hosts: host, interface, few, most", (*Case).mtuDiffers},
	"bad-interface":   {"an interface in use that reaches no other host: name, what it is", (*Case).badInterface},
	"far-address":     {"an address that was not reached and never will be", (*Case).farAddress},
	"far-why":         {"what that address is", (*Case).farWhy},
	"told-virtual": {
		"what the interface of NCCL_SOCKET_IFNAME is, where other hosts lack it", (*Case).toldVirtual,
	},
	"named-interface":       {"what is wrong with NCCL_SOCKET_IFNAME", (*Case).namedInterface},
	"devices-differ":        {"UCX and NCCL are told to use different NICs", (*Case).devicesDiffer},
	"named-by-ipv4":         {"a name without an address of any family", (*Case).namedByIPv4},
	"interface-unreachable": {"a rank that connects from an address others cannot reach", (*Case).unreachable},
	"layers-mixed":          {"a list of NICs with InfiniBand and RoCE", (*Case).layersMixed},
	"networks-differ":       {"hosts name different networks", (*Case).networksDiffer},
	"adapters-differ":       {"hosts list different NICs", (*Case).adaptersDiffer},
	"releases-differ":       {"hosts print different releases of NCCL", (*Case).releasesDiffer},
	"slow-provider":         {"libfabric's provider is none for RDMA", (*Case).slowProvider},
	"libfabric-settings":    {"settings of libfabric or its plugin are there", (*Case).libfabricSettings},
	"socket-network":        {"NCCL uses sockets", (*Case).socketNetwork},
	"socket-loss":           {"sockets are in use where RDMA is, or it is slow", (*Case).socketLoss},
	"fast-cluster":          {"the cluster has NICs for RDMA", (*Case).fastCluster},
	"gdr-off":               {"GPUDirect RDMA is off, and on nowhere", (*Case).gdrOff},
	"gdr-one-sided":         {"GPUDirect RDMA on some hosts only", (*Case).gdrOneSided},
	"net-bounce":            {"connections over RDMA without GPUDirect", (*Case).netBounce},
	"net-direct":            {"connections with GPUDirect", (*Case).netDirect},
	"iommu-on":              {"the IOMMU translates", (*Case).iommuOn},
	"idle-nics":             {"connections use one NIC of several", (*Case).idleNICs},
	"devices-up":            {"RDMA devices with a link", (*Case).devicesUp},
	"one-device":            {"NCCL_IB_HCA names one NIC", (*Case).oneDevice},
	"sharers":               {"GPUs of a host and its fewer NICs", (*Case).sharers},
	"channel-plans":         {"different counts of channels in one communicator", (*Case).channelPlans},
	"nodes-miscounted":      {"a communicator counts other nodes than hosts", (*Case).nodesMiscounted},
	"setting-differs":       {"a setting differs between hosts: name, value, value", (*Case).settingDiffers},
	"setting-misspelt":      {"a misspelt setting: name, what is meant", (*Case).settingMisspelt},
	"stale-settings":        {"settings that releases removed or renamed", (*Case).staleSettings},
	"of-predicted": {
		"a stated rate against the prediction: rate, percent, prediction, size, machine",
		(*Case).ofPredicted,
	},
	"fleet-fault":           {"the worst that a fleet has found", (*Case).fleetFault},
	"nic-slow":              {"a host slow with all others", (*Case).nicSlow},
	"pair-slow":             {"a slow pair of sound hosts", (*Case).pairSlow},
	"rings-off-nvlink":      {"a ring that leaves NVLink", (*Case).ringsOffNVLink},
	"uplink-oversubscribed": {"groups slow with each other", (*Case).uplink},
	"flat-ring":             {"a ring that changes hosts too often", (*Case).flatRing},
	"operations-differ":     {"watchdogs of ranks name different operations: the operations", (*Case).operationsDiffer},
	"fewer-nodes-slower": {
		"the same GPUs on fewer nodes are told to be slower: GPUs a node",
		(*Case).fewerNodesSlower,
	},
}

// clue is what a fact found: the values of its placeholders, and the lines it rests on.
type clue struct {
	args   []string
	quotes []finding.Quote
}

func (k *clue) arg(i int) string {
	if k == nil || i >= len(k.args) {
		return ""
	}
	return k.args[i]
}

// look gives what an atom asks for: an observation, a setting, or what a fact says; nil: nothing.
func (c *Case) look(a *cause.Atom) any {
	switch a.Name[0] {
	case '$':
		if e := c.Env(a.Name[1:]); e != nil {
			return e
		}
		return nil
	case '@':
		key := a.Name + "(" + strings.Join(a.Args, ",")
		v, ok := c.memo[key]
		if !ok {
			v = c.fact(a)
			c.memo[key] = v
		}
		return v
	}
	if o := c.Find(evidence.Kind(a.Name), func(o *evidence.Observation) bool { return shows(o, a) }); o != nil {
		return o
	}
	return nil
}

// shows reports an observation that is as an atom asks.
func shows(o *evidence.Observation, a *cause.Atom) bool {
	switch {
	case o.Kind == evidence.Line:
		return o.Arg(0) == "(?i)"+a.Value
	case a.Op == "":
		return a.Index < 0 || o.Arg(a.Index) != ""
	case a.Op == "~" && a.Index < 0:
		return a.Matches(text(o))
	case a.Index < 0 && a.Op != "=":
		return true // their number is compared
	}
	return a.Matches(o.Arg(max(a.Index, 0)))
}

func (c *Case) fact(a *cause.Atom) any {
	args := append(slices.Clone(a.Args), make([]string, max(0, 2-len(a.Args)))...) // facts may rely on two
	switch f := facts[a.Name[1:]].find.(type) {
	case func(*Case) bool:
		return f(c)
	case func(*Case) float64:
		return f(c)
	case func(*Case) string:
		return f(c)
	case func(*Case, ...string) bool:
		return f(c, args...)
	case func(*Case, ...string) string:
		return f(c, args...)
	case func(*Case) []finding.Quote:
		return f(c)
	case func(*Case) *clue:
		if k := f(c); k != nil {
			return k
		}
	case func(*Case) *evidence.Observation:
		if o := f(c); o != nil {
			return o
		}
	case func(*Case, ...string) *evidence.Observation:
		if o := f(c, args...); o != nil {
			return o
		}
	}
	return nil
}

// holds reports that an atom is true of the case.
func (c *Case) holds(a *cause.Atom) bool {
	switch v := c.look(a).(type) {
	case bool:
		return v
	case float64:
		return a.Reaches(v)
	case string:
		return a.Matches(v)
	case *evidence.Env:
		return a.Op == "" || a.Matches(v.Value)
	case *clue:
		return a.Index < 0 || a.Matches(v.arg(a.Index))
	case []finding.Quote:
		return a.Reaches(float64(len(v)))
	case *evidence.Observation:
		if a.Op != "" && a.Op != "=" && a.Op != "~" && a.Index < 0 {
			return a.Reaches(float64(len(c.All(v.Kind))))
		}
		return a.Name[0] != '@' || a.Index < 0 || a.Matches(v.Arg(a.Index))
	}
	return false
}

// placeholder is the value of a placeholder.
func (c *Case) placeholder(a *cause.Atom) string {
	switch v := c.look(a).(type) {
	case float64:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case string:
		return v
	case *evidence.Env:
		return v.Value
	case *clue:
		return v.arg(max(a.Index, 0))
	case *evidence.Observation:
		return v.Arg(max(a.Index, 0))
	}
	return ""
}

// lines are those that atoms stand for.
func (c *Case) lines(atoms []*cause.Atom) (list []finding.Quote) {
	for _, a := range atoms {
		switch v := c.look(a).(type) {
		case *evidence.Env:
			list = append(list, v.Quote)
		case *clue:
			list = append(list, v.quotes...)
		case []finding.Quote:
			list = append(list, v...)
		case *evidence.Observation:
			if a.Op == "" && a.Name[0] != '@' {
				list = append(list, c.quotes(v.Kind)...)
			} else {
				list = append(list, first(v.Quotes, 1)...)
			}
		}
	}
	return first(list, maxEvidence)
}

// where are the hosts of observations.
func (c *Case) where(atoms []*cause.Atom) string {
	var list []*evidence.Observation
	for _, a := range atoms {
		if v, ok := c.look(a).(*evidence.Observation); ok && a.Op == "" && a.Name[0] != '@' {
			list = append(list, c.All(v.Kind)...)
		} else if ok {
			list = append(list, v)
		}
	}
	return hosts(list)
}

// lineSet are lines by file and number.
type lineSet map[finding.Quote]bool

func (s lineSet) addLines(list []finding.Quote) {
	for _, q := range list {
		s[finding.Quote{File: q.File, Line: q.Line, Text: q.Text}] = true
	}
}

// within reports that all lines are in another set, which has more.
func (s lineSet) within(other lineSet) bool {
	for q := range s {
		if !other[q] {
			return false
		}
	}
	return len(s) > 0 && len(s) < len(other)
}

// detect finds what evidence shows of each cause.
func (c *Case) detect(m *cause.Model) (found []finding.Finding) {
	for _, x := range m.Detected() {
		i := slices.IndexFunc(x.Found, func(f cause.Found) bool { return f.When.Holds(c.holds) })
		if i < 0 || x.Found[i].Grade == cause.None {
			continue
		}
		way := &x.Found[i]
		if c.how[x.ID] = way.Grade; way.Grade == cause.Excludes {
			continue
		}
		f := finding.Finding{
			ID: x.ID, Severity: way.Severity, Title: cause.Fill(way.Title, c.placeholder),
			Cause: cause.Fill(way.Why, c.placeholder),
			Fix:   cause.Fill(way.Fix, c.placeholder), Cost: cause.Fill(way.Cost, c.placeholder),
			Where: cause.Fill(way.Where, c.placeholder), Reference: x.See, Confirm: x.Test, Evidence: c.lines(way.Quote),
		}
		if o := c.First(evidence.FailedDevice); o != nil {
			f.Fix, f.Confirm = strings.ReplaceAll(f.Fix, "DEV", o.Arg(0)), strings.ReplaceAll(f.Confirm, "DEV", o.Arg(0))
		}
		if len(way.Hosts) > 0 {
			f.Where = c.where(way.Hosts)
		}
		c.basis[x.ID] = lineSet{}
		c.basis[x.ID].addLines(f.Evidence)
		for _, a := range way.When.Atoms() {
			if c.holds(a) {
				c.basis[x.ID].addLines(c.lines([]*cause.Atom{a}))
			}
		}
		tidy(&f)
		found = append(found, f)
	}
	return append(found, c.audited(found)...)
}

// Atom is what a condition in a cause's file may ask for.
type Atom struct {
	Name string `json:"name"`
	Says string `json:"says"`
}

// Atoms are all of them, by name; settings are $NAME beside.
func Atoms() []Atom {
	list := []Atom{
		{"$NAME", "a setting of the environment, a script or a manifest: $NCCL_ALGO=tree"},
		{"line~PATTERN", "a line that matches a regular expression: line~'storm control: dropped'"},
	}
	for _, k := range evidence.Kinds() {
		list = append(list, Atom{k.Name, k.Says})
	}
	for name, f := range facts {
		list = append(list, Atom{"@" + name, f.says})
	}
	slices.SortFunc(list, func(a, b Atom) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// validate refuses causes that ask for what nothing gives.
func validate(m *cause.Model) error {
	known := map[string]bool{}
	for _, a := range Atoms() {
		known[a.Name] = true
	}
	for _, x := range m.Detected() {
		for i := range x.Found {
			atoms, err := x.Found[i].Atoms()
			for _, a := range atoms {
				if line := a.Name == string(evidence.Line); line && a.Op != "~" || !line && a.Name[0] != '$' && !known[a.Name] {
					err = fmt.Errorf("nothing gives %q; expected $SETTING, line~PATTERN or what busbar list causes --atoms "+
						"lists", a.Name)
				}
			}
			if err != nil {
				return fmt.Errorf("%s: %w", x.ID, err)
			}
		}
	}
	return nil
}
