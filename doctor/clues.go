package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
	"busbar.dev/internal/counter"
	"busbar.dev/internal/words"
	"busbar.dev/predict"
)

// text is the first line of an observation.
func text(o *evidence.Observation) string {
	if o == nil || len(o.Quotes) == 0 {
		return ""
	}
	return o.Quotes[0].Text
}

var atoi = evidence.Atoi

// hosts lists who printed observations.
func hosts(list []*evidence.Observation) string {
	seen := map[string]bool{}
	var names []string
	for _, o := range list {
		if o == nil {
			continue
		}
		for _, h := range o.HostNames() {
			if !seen[h] && len(names) < 100 {
				seen[h] = true
				names = append(names, h)
			}
		}
	}
	return strings.TrimSpace(hostlist(names) + gpuList(list))
}

// elsewhere are names that look like NCCL's and are read by others: frameworks, its
// tests and plugins, build systems.
var elsewhere = strings.Fields("NCCL_ASYNC_ERROR_HANDLING NCCL_DESYNC_DEBUG NCCL_TIMEOUT NCCL_VERSION NCCL_HOME " +
	"NCCL_LIB_DIR " +
	"NCCL_ROOT NCCL_DIR NCCL_PATH NCCL_TEST NCCL_TESTS NCCL_TESTS_DEVICE NCCL_IBEXT_DISABLE " +
	"NCCL_PLUGIN_P2P NCCL_UCX_TLS NCCL_UCX_RNDV_THRESH NCCL_SHARP_DISABLE NCCL_TUNER_CONFIG_PATH " +
	"NCCL_NVLS NCCL_IB")

// args are the first arguments of all observations of a kind.
func (c *Case) args(kind ...string) *clue {
	var list []string
	for _, o := range first(c.All(evidence.Kind(kind[0])), 4) {
		list = append(list, o.Arg(0))
	}
	return &clue{args: []string{strings.Join(list, ", ")}}
}

// lossCounters are those of loss and pauses, unless a host without receive buffers drops and pauses: none is the
// network's.
func (c *Case) lossCounters() []finding.Quote {
	full, network := false, false
	for _, o := range c.All(evidence.Counter) {
		if m := counter.Find(o.Arg(0)); m != nil && m.Name == "out_of_buffer" {
			full = full || len(o.Arg(1)) > 6
		} else if m != nil && m.Name != "rx_discards_phy" {
			network = network || m.Kind != counter.Slow || strings.Contains(m.Name, "prio")
		}
	}
	if full && !network {
		return nil
	}
	return c.counters(4, counter.Loss, counter.Pause, counter.Slow)
}
func (c *Case) linkCounters() []finding.Quote { return c.counters(2, counter.Link, counter.Lane) }

// counters are the lines of counters of some kinds that have so many digits.
func (c *Case) counters(digits int, kinds ...counter.Kind) (list []finding.Quote) {
	for _, o := range c.All(evidence.Counter) {
		if m := counter.Find(o.Arg(0)); m != nil && slices.Contains(kinds, m.Kind) && len(o.Arg(1)) >= digits {
			list = append(list, first(o.Quotes, 1)...)
		}
	}
	return list
}

// netBounce and netDirect are connections over an RDMA network without GPUDirect, and with it.
func (c *Case) netBounce() *clue { return clueOf(c.netWay("")) }
func (c *Case) netDirect() *clue { return clueOf(c.netWay("GDRDMA")) }

func (c *Case) netWay(way string) *evidence.Observation {
	return c.Find(evidence.OverNet,
		func(o *evidence.Observation) bool { return o.Arg(1) == way && !strings.EqualFold(o.Arg(0), "Socket") })
}

// gdrOneSided reports hosts with GPUDirect RDMA and others without.
func (c *Case) gdrOneSided() bool {
	a, b := c.netWay(""), c.netWay("GDRDMA")
	return a != nil && b != nil && (len(a.Hosts) == 0 || len(b.Hosts) == 0 || !overlap(a.Hosts, b.Hosts))
}

// initIncomplete is a communicator that some ranks began to set up and did not finish.
func (c *Case) initIncomplete() *clue {
	if c.Log == nil {
		return nil
	}
	for i := range c.Log.Comms {
		m := &c.Log.Comms[i]
		started, done := 0, 0
		for _, r := range m.Ranks {
			if r.Started.Line > 0 {
				started++
			}
			if r.Completed.Line > 0 {
				done++
			}
		}
		if m.NRanks > 1 && started > 0 && done < started {
			return &clue{args: []string{strconv.Itoa(started), strconv.Itoa(m.NRanks), strconv.Itoa(done)}}
		}
	}
	return nil
}

// settingMisspelt is a setting whose name is a letter or two from one that NCCL has.
func (c *Case) settingMisspelt() *clue {
	for _, name := range c.EnvNames() {
		if !strings.HasPrefix(name, "NCCL_") || len(name) < 9 || slices.Contains(elsewhere, name) {
			continue
		}
		if meant := predict.Misspelt(name); meant != "" && c.Env(meant) == nil {
			return &clue{args: []string{name, meant, c.Env(name).Value}, quotes: []finding.Quote{c.Env(name).Quote}}
		}
	}
	return nil
}

// timedOut is what the messages of PyTorch's watchdog say: which ranks printed them, the least and the greatest number
// of a collective.
func (c *Case) timedOut() (reported map[int]bool, least, most string) {
	reported = map[int]bool{}
	for _, o := range c.All(evidence.Watchdog) {
		for r := range o.Ranks {
			reported[r] = true
		}
		n := o.Arg(0)
		if n != "" && (least == "" || atoi(n) < atoi(least)) {
			least = n
		}
		if n != "" && (most == "" || atoi(n) > atoi(most)) {
			most = n
		}
	}
	return reported, least, most
}

// firstCollective are the watchdogs of all ranks in the first collective: all joined it, and it never ran.
func (c *Case) firstCollective() (list []finding.Quote) {
	reported, least, most := c.timedOut()
	all := len(reported) > 1 && least == "1" && most == "1" && c.operationsDiffer() == nil
	for r := 0; all && r < max(len(reported), c.ranks, atoi(c.value("WORLD_SIZE"))); r++ {
		all = reported[r]
	}
	for _, o := range c.All(evidence.Watchdog) {
		if all && o.Arg(0) != "" {
			list = append(list, o.Quotes...)
		}
	}
	return first(list, 2)
}

// operationsDiffer are watchdogs that name different operations on different ranks: what they name.
func (c *Case) operationsDiffer() *clue {
	byName := map[string][]string{}
	k := &clue{}
	for _, o := range c.All(evidence.Watchdog) {
		if name := o.Arg(1); name != "" && len(o.Ranks) > 0 {
			if byName[name] == nil {
				k.quotes = append(k.quotes, first(o.Quotes, 1)...)
			}
			for r := range o.Ranks {
				byName[name] = append(byName[name], strconv.Itoa(r))
			}
		}
	}
	if len(byName) < 2 {
		return nil
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		slices.Sort(byName[name])
		list = append(list, fmt.Sprintf("%s on rank %s", name, strings.Join(slices.Compact(byName[name]), ", ")))
	}
	k.args = []string{strings.Join(list, "; ")}
	return k
}

// timeoutWhere are the ranks that a timeout's messages say, or show, to be missing.
func (c *Case) timeoutWhere() string {
	where := ""
	if o := c.First(evidence.Missing); o != nil {
		where = "missing: rank " + strings.TrimSpace(o.Arg(0))
	}
	reported, _, _ := c.timedOut()
	world := max(c.ranks, atoi(c.value("WORLD_SIZE")))
	if len(reported) == 0 || world <= len(reported) || world > 1<<16 {
		return where
	}
	var missing []int
	for r := range world {
		if !reported[r] {
			missing = append(missing, r)
		}
	}
	return "ranks without the message: " + words.Numbers(missing)
}

// timeoutWhy says how ranks differ at a timeout.
func (c *Case) timeoutWhy() (why string) {
	if _, least, most := c.timedOut(); least != most {
		why = fmt.Sprintf("Ranks are at different collectives (sequence numbers %s to %s): the one with the lowest is "+
			"behind or called another. ", least, most)
	}
	return why
}

// oomWho names the GPU and the rank that ran out of memory first, as far as the line tells.
func (c *Case) oomWho() string {
	o := c.First(evidence.OutOfMemory)
	if o == nil {
		return "A GPU"
	}
	who := "A GPU"
	if o.Arg(0) != "" {
		who = "GPU " + o.Arg(0)
	}
	if len(o.Ranks) == 1 { // more ranks print the same where their GPUs have the same number
		who += fmt.Sprintf(" of rank %d", slices.Sorted(maps.Keys(o.Ranks))[0])
	}
	return who
}

// maxGPUs is how many GPUs a place names.
const maxGPUs = 8

// gpuList names the GPUs that observations are about: " GPU 00000000:81:00.0".
func gpuList(list []*evidence.Observation) string {
	var names []string
	for _, o := range list {
		if o != nil {
			names = append(names, o.GPUNames()...)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	more := ""
	if n := len(names) - maxGPUs; n > 0 {
		names, more = names[:maxGPUs], fmt.Sprintf(" and %d more", n)
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return " GPU " + names[0]
	}
	return " GPUs " + strings.Join(names, ", ") + more
}

// hostlist writes hosts short: node[0-15].
func hostlist(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return cluster.FormatHosts(names)
}
