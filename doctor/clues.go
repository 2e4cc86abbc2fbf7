package doctor

import (
	"cmp"
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

func atoi(s string) int {
	n := 0
	for _, r := range s {
		if r < '0' || r > '9' || n > 1e8 {
			return -1
		}
		n = 10*n + int(r-'0')
	}
	if s == "" {
		return -1
	}
	return n
}

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
var elsewhere = []string{
	"NCCL_ASYNC_ERROR_HANDLING", "NCCL_DESYNC_DEBUG", "NCCL_TIMEOUT", "NCCL_VERSION", "NCCL_HOME", "NCCL_LIB_DIR",
	"NCCL_ROOT", "NCCL_DIR", "NCCL_PATH", "NCCL_TEST", "NCCL_TESTS",
	"NCCL_TESTS_DEVICE", "NCCL_IBEXT_DISABLE", "NCCL_PLUGIN_P2P", "NCCL_UCX_TLS", "NCCL_UCX_RNDV_THRESH",
	"NCCL_SHARP_DISABLE", "NCCL_TUNER_CONFIG_PATH", "NCCL_NVLS", "NCCL_IB",
}

// perHost are settings that rightly differ between ranks.
var perHost = []string{
	"RANK", "LOCAL_RANK", "CUDA_VISIBLE_DEVICES", "NCCL_HOSTID", "NCCL_DEBUG_FILE", "NCCL_TOPO_DUMP_FILE",
	"NCCL_GRAPH_DUMP_FILE", "NCCL_SOCKET_IFNAME",
	"MASTER_PORT", "NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_COMM_ID", "OMPI_", "NCCL_IB_HCA",
}

// staleNames are settings that releases removed or renamed.
var staleNames = []string{
	"NCCL_IB_CUDA_SUPPORT", "NCCL_IB_GDR_LEVEL", "NCCL_TREE_THRESHOLD", "NCCL_LL_THRESHOLD", "NCCL_LAUNCH_MODE",
	"NCCL_MAX_NRINGS", "NCCL_MIN_NRINGS", "NCCL_SINGLE_RING_THRESHOLD",
}

// args are the first arguments of all observations of a kind.
func (c *Case) args(kind ...string) string {
	var list []string
	for _, o := range first(c.All(evidence.Kind(kind[0])), 4) {
		list = append(list, o.Arg(0))
	}
	return strings.Join(list, ", ")
}

// namedByIPv4 reports a name that does not resolve to an address of any family.
func (c *Case) namedByIPv4() bool {
	return slices.ContainsFunc(c.All(evidence.NameUnknown),
		func(o *evidence.Observation) bool { return o.Arg(1) != "ipv6" })
}

// rankBusy is what a rank did while the others gave up waiting. The surest sign is work that had taken as long as the
// others wait.
func (c *Case) rankBusy() *clue {
	limit := 0
	for _, o := range c.All(evidence.TimeLimit) {
		limit = max(limit, atoi(o.Arg(0)))
	}
	doing := map[string]string{
		"data": "prepares data", "save": "saves a checkpoint", "load": "loads or downloads", "bar": "runs a long loop",
	}
	var best *clue
	for _, o := range c.All(evidence.BusyBefore) {
		spent := atoi(o.Arg(1))
		near := limit > 0 && spent > 0 && 10*spent >= 9*limit && 10*spent <= 11*limit
		k := &clue{[]string{"", doing[o.Arg(0)], strconv.Itoa(spent), strconv.Itoa(limit)}, first(o.Quotes, 1)}
		if near {
			k.args[0] = "limit"
			return k
		}
		if best == nil && o.Arg(0) != "bar" {
			best = k
		}
	}
	return best
}

// releasesDiffer are hosts that print different releases of NCCL. A host that ran several shows several runs.
func (c *Case) releasesDiffer() *clue {
	byHost := map[string]string{}
	k := &clue{}
	var releases []string
	for _, o := range c.All(evidence.NCCLVersion) {
		for h := range o.Hosts {
			if had, ok := byHost[h]; ok && had != o.Arg(0) {
				return nil
			}
			byHost[h] = o.Arg(0)
		}
		if len(o.Hosts) > 0 {
			k.quotes, releases = append(k.quotes, first(o.Quotes, 1)...), append(releases, o.Arg(0))
		}
	}
	if len(releases) < 2 {
		return nil
	}
	k.args = []string{strings.Join(releases, " and ")}
	return k
}

// activeMTUs is the number of different MTUs of RDMA ports.
func (c *Case) activeMTUs() float64 {
	sizes := map[string]bool{}
	for _, o := range c.All(evidence.ActiveMTU) {
		for n := range strings.SplitSeq(o.Arg(0), ",") {
			sizes[n] = true
		}
	}
	return float64(len(sizes))
}

func (c *Case) lossCounters() []finding.Quote {
	return c.counters(1000, counter.Loss, counter.Pause, counter.Slow)
}
func (c *Case) linkCounters() []finding.Quote { return c.counters(10, counter.Link, counter.Lane) }

// counters are the lines of counters of some kinds that reach a size (as evidence
// writes it: 1, 10, 1000, 1000000).
func (c *Case) counters(least int, kinds ...counter.Kind) (list []finding.Quote) {
	for _, o := range c.All(evidence.Counter) {
		if m := counter.Find(o.Arg(0)); m != nil && slices.Contains(kinds, m.Kind) && atoi(o.Arg(1)) >= least {
			list = append(list, first(o.Quotes, 1)...)
		}
	}
	return list
}

// flushedOnly reports completions of which all were flushed: they only say that the connection was already broken.
func (c *Case) flushedOnly() bool {
	if c.verdictOf("WR_FLUSH_ERR", "5") == nil {
		return false
	}
	return !slices.ContainsFunc(c.All(evidence.Completion), func(o *evidence.Observation) bool { return o.Arg(0) != "5" })
}

// netBounce and netDirect are connections over an RDMA network without GPUDirect, and with it.
func (c *Case) netBounce() *evidence.Observation { return c.netWay("") }
func (c *Case) netDirect() *evidence.Observation { return c.netWay("gdr") }

func (c *Case) netWay(way string) *evidence.Observation {
	return c.Find(evidence.OverNet,
		func(o *evidence.Observation) bool { return o.Arg(1) == way && !strings.EqualFold(o.Arg(0), "Socket") })
}

// gdrOff reports that NCCL prints that GPUDirect RDMA is off, and nowhere that it is on.
func (c *Case) gdrOff() bool {
	return c.Has(evidence.GDROff) && !c.Has(evidence.GDROn) && c.netDirect() == nil
}

// gdrOneSided reports hosts with GPUDirect RDMA and others without.
func (c *Case) gdrOneSided() bool {
	a, b := c.netBounce(), c.netDirect()
	return a != nil && b != nil && (len(a.Hosts) == 0 || len(b.Hosts) == 0 || !overlap(a.Hosts, b.Hosts))
}

// channelPlans is the greatest number of different channel counts in one communicator.
func (c *Case) channelPlans() float64 {
	most := 0
	if c.Log != nil {
		for i := range c.Log.Comms {
			counts := map[int]bool{}
			for _, r := range c.Log.Comms[i].Ranks {
				if r.Coll > 0 {
					counts[r.Coll] = true
				}
			}
			most = max(most, len(counts))
		}
	}
	return float64(most)
}

// nodesMiscounted is a communicator, all of whose ranks are in the log, that counts other nodes than hosts.
func (c *Case) nodesMiscounted() *clue {
	if c.Log == nil {
		return nil
	}
	for i := range c.Log.Comms {
		m := &c.Log.Comms[i]
		seen, ranks := map[string]bool{}, map[int]bool{}
		for _, r := range m.Ranks {
			seen[r.Host], ranks[r.Rank] = true, true
		}
		if m.NNodes == 0 || m.NRanks == 0 || len(ranks) != m.NRanks || len(seen) == m.NNodes || seen[""] {
			continue
		}
		k := &clue{args: []string{words.Plural(m.NNodes, "node"), words.Plural(len(seen), "host"), "more"}}
		if m.NNodes < len(seen) {
			k.args[2] = "fewer"
		}
		return k
	}
	return nil
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

// ncclCode is NCCL's code in an exception, or its name.
func (c *Case) ncclCode() string {
	o := cmp.Or(c.Find(evidence.TorchError,
		func(o *evidence.Observation) bool { return strings.HasPrefix(o.Arg(0), "nccl") }), c.First(evidence.TorchError))
	if o == nil {
		return ""
	}
	return o.Arg(0)
}

// settingDiffers is a setting of NCCL that has different values on different hosts.
func (c *Case) settingDiffers() *clue {
	for _, name := range c.EnvNames() {
		if !strings.HasPrefix(name, "NCCL_") || slices.ContainsFunc(perHost,
			func(p string) bool { return strings.HasPrefix(name, p) && !strings.HasSuffix(p, "K") || name == p }) {
			continue
		}
		list := c.Values(name)
		if len(list) > 1 && len(list[0].Hosts) > 0 && len(list[1].Hosts) > 0 && !overlap(list[0].Hosts, list[1].Hosts) {
			return &clue{[]string{name, list[0].Value, list[1].Value}, []finding.Quote{list[0].Quote, list[1].Quote}}
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
			return &clue{[]string{name, meant, c.Env(name).Value}, []finding.Quote{c.Env(name).Quote}}
		}
	}
	return nil
}

// staleSettings are settings that releases removed or renamed.
func (c *Case) staleSettings() *clue {
	var names []string
	k := &clue{}
	for _, n := range staleNames {
		if e := c.Env(n); e != nil {
			names, k.quotes = append(names, n), append(k.quotes, e.Quote)
		}
	}
	if names == nil {
		return nil
	}
	k.args = []string{strings.Join(names, ", "), strings.Join(names, " ")}
	return k
}

// oneDevice reports that NCCL_IB_HCA names one NIC, by its whole name.
func (c *Case) oneDevice() bool {
	hca := c.value("NCCL_IB_HCA")
	return hca != "" && !strings.ContainsAny(hca, ",^") && hca[len(hca)-1] >= '0' && hca[len(hca)-1] <= '9'
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
	if len(c.All(evidence.Queued)) > 1 {
		why += "Ranks have different numbers of collectives waiting, so they did not take the same path. "
	}
	return why
}

// timeoutLines are the messages of a timeout.
func (c *Case) timeoutLines() []finding.Quote {
	if len(c.All(evidence.Queued)) > 1 {
		return c.quotes(evidence.Queued)
	}
	return c.quotes(evidence.Missing, evidence.Watchdog)
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

// oomHint repeats the setting that PyTorch itself advises, where memory lies idle.
func (c *Case) oomHint() string {
	o := c.First(evidence.OutOfMemory)
	if o == nil || o.Arg(2) == "" {
		return ""
	}
	s := o.Arg(2) + ", as the log advises"
	if o.Arg(1) != "" {
		s += fmt.Sprintf(" (%s is reserved but unallocated)", o.Arg(1))
	}
	return s + ". "
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

// ringsOffNVLink is a ring of NCCL's that leaves NVLink where the node's topology has it: the type of its paths,
// channels and rate.
func (c *Case) ringsOffNVLink() *clue {
	if c.Cluster == nil || !slices.ContainsFunc(c.Cluster.Types, hasNVLink) {
		return nil
	}
	for _, o := range c.All(evidence.Graph) {
		inside, _, _ := strings.Cut(o.Arg(2), "/")
		ring := strings.Contains(o.Quotes[0].Text, "Pattern 4,") || strings.Contains(o.Quotes[0].Text, `<graph id="0"`)
		if ring && o.Arg(0) != "0" && slices.Contains([]string{"PIX", "PXB", "PXN", "PHB", "NODE", "SYS"}, inside) {
			return &clue{[]string{inside, o.Arg(0), o.Arg(1)}, first(o.Quotes, 1)}
		}
	}
	return nil
}

// hasNVLink reports whether NVLink joins GPUs of a type.
func hasNVLink(t *cluster.NodeType) bool {
	return slices.ContainsFunc(t.Links, func(l cluster.Link) bool { return l.Kind == cluster.NVLink })
}

// hostlist writes hosts short: node[0-15].
func hostlist(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return cluster.FormatHosts(names)
}
