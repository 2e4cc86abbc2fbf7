package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
	"busbar.dev/internal/stats"
)

// programRules are about what the framework and the processes report.
func programRules() []Rule {
	return []Rule{
		{"straggler", "times of training steps by rank, tests of pairs, one node that differs", "one rank or host is slower than the others and all wait for it", trouble, []string{"collective-timeout"}, straggler},
		{"collective-timeout", "PyTorch's watchdog, sequence numbers", "some ranks did not come to a collective", "https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html", nil, collectiveTimeout},
		{"init-incomplete", "Init START without COMPLETE", "some ranks never finished the set-up", trouble, nil, initIncomplete},
		{"peer-died", "connections closed by the other end", "a peer ended first: its log has the cause", trouble, []string{"nccl-error"}, peerDied},
		{"cuda-error", "CUDA's error inside NCCL", "CUDA failed; NCCL only reports it", trouble, []string{"nccl-error"}, cudaError},
		{"nccl-error", "an error of NCCL in a traceback", "NCCL gave up; the cause is in its warnings", trouble, nil, ncclError},
	}
}

func straggler(c *Case) *finding.Finding {
	f := &finding.Finding{
		Severity: finding.Warn, Confidence: 0.75, Title: "One rank or host is slower than the others",
		Cause: "A collective ends when its slowest member has come, so one slow host sets the pace of all.",
		Fix:   "Pairwise tests find it (busbar bench pairs, or all_reduce_perf on pairs of hosts with NCCL_ALGO=Ring); compare clocks, thermal state, PCIe and NIC counters; drain it.",
	}
	if slow, quotes, ok := c.slowNode(); ok {
		f.Confidence, f.Where, f.Evidence = 0.9, slow, quotes
		f.Title = "One node is slow: " + slow
		f.Cause = "Every pair with this node is slow and the other pairs are not. " + f.Cause
		return f
	}
	if rank, ratio, q := c.slowRank(); ratio >= 1.15 {
		f.Where, f.Evidence = fmt.Sprintf("rank %d", rank), []finding.Quote{q}
		f.Title = fmt.Sprintf("Rank %d is a straggler: its steps take %.2f times the median", rank, ratio)
		f.Cost = fmt.Sprintf("every step takes %.0f%% longer than without it", 100*(ratio-1))
		return f
	}
	if c.about("slownode") || c.blames("node") && c.is("slow") {
		f.Confidence, f.Evidence = 0.6, c.told("slownode", "node", "slow")
		return f
	}
	return nil
}

// slowNode looks for a node that all slow pairs have in common.
func (c *Case) slowNode() (string, []finding.Quote, bool) {
	type pair struct {
		a, b string
		v    float64
		q    finding.Quote
	}
	var pairs []pair
	for _, o := range c.All(evidence.Pair) {
		pairs = append(pairs, pair{o.Arg(0), o.Arg(1), parseFloat(o.Arg(2)), o.Quotes[0]})
	}
	if len(pairs) < 3 {
		return "", nil, false
	}
	slices.SortFunc(pairs, func(x, y pair) int { return int(1000 * (x.v - y.v)) })
	lo, hi := pairs[0].v, pairs[len(pairs)-1].v
	if hi < 1.3*lo {
		return "", nil, false
	}
	cut := (lo + hi) / 2
	slow, fast := map[string]int{}, map[string]int{}
	total := 0
	var quotes []finding.Quote
	for _, p := range pairs {
		at := fast
		if p.v < cut {
			at = slow
			total++
			quotes = append(quotes, p.q)
		}
		at[p.a]++
		at[p.b]++
	}
	best := ""
	for _, n := range slices.Sorted(maps.Keys(slow)) {
		if fast[n] == 0 && (best == "" || slow[n] > slow[best]) {
			best = n
		}
	}
	if best == "" || slow[best] < 2 && total > 1 {
		return "", nil, false
	}
	return best, quotes, true
}

// slowRank compares the mean time of a rank's steps with the median of all.
func (c *Case) slowRank() (rank int, ratio float64, q finding.Quote) {
	if len(c.Steps) < 3 {
		return 0, 0, q
	}
	var means []float64
	worst := -1
	for r, s := range c.Steps {
		means = append(means, s.Mean())
		if worst < 0 || s.Mean() > c.Steps[worst].Mean() || s.Mean() == c.Steps[worst].Mean() && r < worst {
			worst = r
		}
	}
	median := stats.Nearest(means, 0.5)
	if median <= 0 {
		return 0, 0, q
	}
	return worst, c.Steps[worst].Mean() / median, c.Steps[worst].First
}

func collectiveTimeout(c *Case) *finding.Finding {
	if !c.Has(evidence.Watchdog, evidence.Missing) {
		return nil
	}
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.7, Title: "A collective timed out: not all ranks came to it",
		Cause: "The watchdog of PyTorch ended the job: a rank died, hangs elsewhere (data loading, a checkpoint), took another branch, or its network failed. The rank that did not print the message is the one to look at.",
		Fix:   "Look at the log of the missing rank first; TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and the flight recorder name the collective; py-spy dump on it. A longer time-out only helps where a rank is slow for a known reason.",
	}
	f.Evidence = c.quotes(evidence.Missing, evidence.Watchdog)
	if o := c.First(evidence.Missing); o != nil {
		f.Where, f.Confidence = "missing: rank "+strings.TrimSpace(o.Arg(0)), 0.8
	}
	reported := map[int]bool{}
	least, most := "", ""
	for _, o := range c.All(evidence.Watchdog) {
		for r := range o.Ranks {
			reported[r] = true
		}
		if n := o.Arg(0); n != "" {
			if least == "" || atoi(n) < atoi(least) {
				least = n
			}
			if most == "" || atoi(n) > atoi(most) {
				most = n
			}
		}
	}
	world := max(c.ranks, atoi(c.value("WORLD_SIZE")))
	if len(reported) > 0 && world > len(reported) && world <= 1<<16 {
		var missing []string
		for r := range world {
			if !reported[r] && len(missing) < 16 {
				missing = append(missing, fmt.Sprint(r))
			}
		}
		f.Where = "ranks without the message: " + strings.Join(missing, ", ")
		f.Confidence = 0.8
	}
	if n := len(c.All(evidence.Queued)); n > 1 {
		f.Cause = "Ranks have different numbers of collectives waiting, so they did not take the same path. " + f.Cause
		f.Evidence, f.Confidence = c.quotes(evidence.Queued), 0.8
	}
	if least != most {
		f.Cause = fmt.Sprintf("Ranks are at different collectives (sequence numbers %s to %s): the one with the lowest is behind or called another. ", least, most) + f.Cause
		f.Confidence = 0.8
	}
	return f
}

func initIncomplete(c *Case) *finding.Finding {
	if c.Log == nil || !c.broken() && !c.Has(evidence.ConnectRetry) {
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
			return &finding.Finding{
				Severity: finding.Warn, Confidence: 0.55, Title: fmt.Sprintf("Set-up of a communicator was not finished: %d of %d ranks began, %d finished", started, m.NRanks, done),
				Cause: "Ranks that are missing did not come to ncclCommInitRank, or could not connect.", Fix: "Look at the ranks that did not begin; then at the connections.", Evidence: []finding.Quote{},
			}
		}
	}
	return nil
}

func peerDied(c *Case) *finding.Finding {
	if !c.Has(evidence.PeerGone) || !c.Has(evidence.TorchError, evidence.Returned, evidence.Watchdog) && !c.is("crash", "hang") {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.5, Title: "A peer closed its connection first",
		Cause: "What this rank prints is a consequence: another process ended (crash, out of memory, killed) and the connection to it broke.",
		Fix:   "Find the rank that ended first: its log, its exit code, dmesg of its host.", Evidence: c.quotes(evidence.PeerGone),
	}
}

func cudaError(c *Case) *finding.Finding {
	list := c.All(evidence.CUDAFailure)
	if len(list) == 0 {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Error, Confidence: 0.6, Title: "CUDA failed: " + list[0].Arg(0),
		Cause: "NCCL reports an error of CUDA that another kernel, the driver or the GPU caused; errors are asynchronous, so the place is often not the cause.",
		Fix:   "dmesg | grep -i xid on that host; CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer to find the kernel; the driver must be as new as the CUDA release.", Where: hosts(list), Evidence: c.quotes(evidence.CUDAFailure),
	}
}

func ncclError(c *Case) *finding.Finding {
	if !c.Has(evidence.TorchError) {
		return nil
	}
	o := c.First(evidence.TorchError)
	for _, x := range c.All(evidence.TorchError) {
		if strings.HasPrefix(x.Arg(0), "nccl") { // says more than the name of the exception
			o = x
			break
		}
	}
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.45, Title: "NCCL gave up: " + o.Arg(0),
		Cause: "The exception only passes on NCCL's code: ncclSystemError is a failed system call (a socket, shared memory, a limit), ncclUnhandledCudaError an error of CUDA, ncclRemoteError a peer that ended, ncclInternalError often a mix of releases, ncclInvalidUsage two ranks on a GPU.",
		Fix:   "NCCL_DEBUG=INFO and look at the first WARN of any rank.", Evidence: c.quotes(evidence.TorchError),
	}
	if last := c.First(evidence.LastError); last != nil {
		f.Cause = "NCCL's last error was: " + text(last) + ". " + f.Cause
		f.Evidence, f.Confidence = c.quotes(evidence.LastError, evidence.TorchError), 0.6
	}
	return f
}
