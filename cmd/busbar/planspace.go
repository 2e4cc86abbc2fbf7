package main

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/plan"
	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// spaces are what may vary, for every number of nodes that is tried, all of them first. Hosts that a
// scheduler gave are all used.
func (c *planCmd) spaces(a *asked, q *plan.Query, given bool) ([]*plan.Space, error) {
	node := onFirst(q.Layout)
	counts := []int{len(q.Layout)}
	if given && (c.MaxNodes > 0 || c.Avoid != "") {
		return nil, errors.New("--max-nodes and --avoid are for a cluster's own hosts; name fewer with --hosts")
	}
	if !given && (c.MaxNodes > 0 || c.Objective != "time") {
		nodes := len(q.Layout) / node
		if len(q.Layout)%node != 0 || !even(q.Layout, node) {
			if c.MaxNodes > 0 {
				return nil, errors.New("--max-nodes: nodes have different numbers of GPUs; say which take part with -l NODESxGPUS")
			}
			nodes = 0
		}
		if c.MaxNodes > 0 {
			nodes = min(nodes, c.MaxNodes)
		}
		if nodes > 0 {
			counts = nil
		}
		for n := nodes; n > 0; n-- {
			if n == nodes || significant(n) {
				counts = append(counts, n*node)
			}
		}
	}
	var list []*plan.Space
	for _, ranks := range counts {
		s, err := c.space(a, ranks, counts[0], min(node, ranks))
		if err != nil {
			return nil, err
		}
		s.Leaf = plan.LeafRanks(q.Cluster, q.Layout[:ranks])
		list = append(list, s)
	}
	return list, nil
}

// significant numbers have four binary digits before zeros: 1 to 16, 18, 20, …, 32, 36, ….
func significant(n int) bool { return bits.Len(uint(n))-bits.TrailingZeros(uint(n)) <= 4 }

// even reports whether all hosts of a layout have so many ranks, one after the other.
func even(l nccl.Layout, node int) bool {
	for i, r := range l {
		if r.Host != l[i-i%node].Host || i >= node && r.Host == l[i-node].Host {
			return false
		}
	}
	return true
}

// space is what may vary on so many ranks, of at most most: all that makes sense but what the flags fix.
func (c *planCmd) space(a *asked, ranks, most, node int) (*plan.Space, error) {
	base := workload.Job{Model: a.model, Seq: c.Seq, GlobalBatch: c.Global, Precision: workload.Precision(c.Precision), Framework: workload.Framework(c.Framework)}
	if base.Seq == 0 {
		base.Seq = a.model.Seq
	}
	if base.GlobalBatch == 0 {
		base.GlobalBatch = max(1, usualTokens/base.Seq)
		base.GlobalBatch = (base.GlobalBatch + int64(most) - 1) / int64(most) * int64(most)
	}
	s := plan.NewSpace(base, ranks, node)
	s.Schedule = []pipeline.Schedule{pipeline.Alternate, pipeline.Interleaved}
	if c.Micro > 0 {
		s.Micro = []int64{c.Micro}
	}
	if c.Recompute != "" {
		s.Recompute = []workload.Recompute{workload.Recompute(c.Recompute)}
	}
	if err := c.lists(s); err != nil {
		return nil, err
	}
	return s, c.fix(s)
}

// lists takes the flags that name several values.
func (c *planCmd) lists(s *plan.Space) error {
	if err := named("--schedule", c.Schedule, pipeline.Schedules(), &s.Schedule); err != nil {
		return err
	}
	if err := named("--context", c.Context, []workload.Context{workload.Ring, workload.Gather, workload.Ulysses}, &s.Context); err != nil {
		return err
	}
	if err := named("--offload", c.Offload, []workload.Offload{workload.OnGPU, workload.OffloadOptimizer, workload.OffloadParams}, &s.Offload); err != nil {
		return err
	}
	if err := named("--compress", c.Compress, []workload.Wire{workload.Uncompressed, workload.WireFP16, workload.WireBF16, workload.WireInt8}, &s.Compress); err != nil {
		return err
	}
	if len(c.Bucket) > 0 {
		s.Bucket = nil
	}
	for _, text := range c.Bucket {
		size, err := unit.ParseBytes(text)
		if err != nil || size < 1 {
			return fmt.Errorf("--bucket %q; expected a size, such as 25MiB", text)
		}
		s.Bucket = append(s.Bucket, size)
	}
	return nil
}

// named takes words of a flag that are among some.
func named[T ~string](flag string, words []string, some []T, to *[]T) error {
	if len(words) > 0 {
		*to = nil
	}
	for _, w := range words {
		x := T(strings.TrimSpace(w))
		if !slices.Contains(some, x) {
			var all []string
			for _, s := range some {
				all = append(all, string(s))
			}
			return fmt.Errorf("%s %q; expected some of %s", flag, w, strings.Join(all, ", "))
		}
		if !slices.Contains(*to, x) {
			*to = append(*to, x)
		}
	}
	return nil
}

// fix takes the degrees that --parallel names.
func (c *planCmd) fix(s *plan.Space) error {
	split, err := workload.ParseSplit(c.Parallel)
	if err != nil {
		return fmt.Errorf("--parallel: %w", err)
	}
	for _, part := range strings.Split(c.Parallel, ",") {
		key, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(part)), "=")
		switch key {
		case "dp":
			s.DP = []int{split.DP}
		case "tp":
			s.TP = []int{split.TP}
		case "pp":
			s.PP = []int{split.PP}
		case "cp":
			s.CP = []int{split.CP}
		case "ep":
			s.EP = []int{split.EP}
		case "vpp":
			s.Chunks = []int{split.Chunks}
		case "zero":
			s.ZeRO = []int{split.ZeRO}
		case "shard":
			s.Shard = []int{split.Shard}
		case "sp":
			s.SeqParallel = []bool{split.SeqParallel}
		}
	}
	return nil
}

// without leaves out the hosts that --avoid names.
func (c *planCmd) without(cl *cluster.Cluster, l nccl.Layout, name string) (nccl.Layout, string, error) {
	if c.Avoid == "" {
		return l, name, nil
	}
	names, err := cluster.ParseHosts(c.Avoid)
	if err != nil {
		return nil, "", fmt.Errorf("--avoid: %w", err)
	}
	out := map[int]bool{}
	for _, n := range names {
		at := cl.HostIndex(n)
		if at < 0 {
			return nil, "", fmt.Errorf("--avoid: %s is no host of %s, which has %s", n, cl.Name, cl.Hosts[0].Name)
		}
		out[at] = true
	}
	return c.others(cl, l, name, out)
}

// others is a layout with hosts that are left out, and as many others in their place where a number
// of nodes was asked for.
func (c *planCmd) others(cl *cluster.Cluster, l nccl.Layout, name string, out map[int]bool) (nccl.Layout, string, error) {
	kept := slices.DeleteFunc(slices.Clone(l), func(r nccl.Rank) bool { return out[r.Host] })
	if c.Layout == "" && c.GPUs == 0 {
		if len(kept) == 0 {
			return nil, "", fmt.Errorf("--avoid %s leaves no node of %s", c.Avoid, cl.Name)
		}
		return kept, fmt.Sprintf("%dx%d", hostsOf(kept), onFirst(kept)), nil
	}
	gpus, taken := onFirst(l), map[int]bool{}
	for _, r := range kept {
		taken[r.Host] = true
	}
	for h := 0; h < len(cl.Hosts) && len(kept) < len(l); h++ {
		t := cl.TypeOf(h)
		if t == nil || out[h] || taken[h] {
			continue
		}
		if devs := t.Of(cluster.GPU); len(devs) >= gpus {
			for _, d := range devs[:gpus] {
				kept = append(kept, nccl.Rank{Host: h, GPU: d})
			}
		}
	}
	if len(kept) < len(l) {
		return nil, "", fmt.Errorf("--avoid %s leaves %d of the %d GPUs that were asked for", c.Avoid, len(kept), len(l))
	}
	return kept, name, nil
}

// slowestGPU is the GPU that plans are priced by: where a layout has several models, that with the
// slowest products and the least memory of any, since every rank waits for all.
func slowestGPU(cl *cluster.Cluster, l nccl.Layout) (hardware.GPUModel, string, error) {
	slow, err := gpuOf(cl, l)
	if err != nil {
		return slow, "", err
	}
	seen := map[[2]int]bool{}
	names := []string{slow.Title}
	memory := slow.Memory
	for i, r := range l {
		key := [2]int{cl.Hosts[r.Host].Type, r.GPU}
		if seen[key] {
			continue
		}
		seen[key] = true
		m, err := gpuOf(cl, l[i:])
		if err != nil {
			return slow, "", err
		}
		memory = min(memory, m.Memory)
		if !slices.Contains(names, m.Title) {
			names = append(names, m.Title)
		}
		if m.Peak[cluster.BF16] < slow.Peak[cluster.BF16] || m.Peak[cluster.BF16] == slow.Peak[cluster.BF16] && m.HBM < slow.HBM {
			slow = m
		}
	}
	if len(names) == 1 {
		return slow, "", nil
	}
	slow.Memory = memory
	return slow, fmt.Sprintf("GPUs differ (%s): all are taken for %s with %.0f GB, since every rank waits for the slowest", strings.Join(names, ", "), slow.Title, float64(memory)/1e9), nil
}

// usualHost is taken for a node's own memory where nobody says: of servers with eight GPUs, what the
// smaller configurations have (AWS's p4d 1.1 TB, NVIDIA's DGX A100 1 or 2 TB, by their data sheets).
const usualHost = unit.TB

// hostMemory is what a node of a layout has of its own, and who says so.
func (c *planCmd) hostMemory(cl *cluster.Cluster, l nccl.Layout) (unit.Bytes, string, error) {
	if c.Host != "" {
		size, err := unit.ParseBytes(c.Host)
		if err != nil || size < 1 {
			return 0, "", fmt.Errorf("--host-memory %q; expected a size, such as 2TB", c.Host)
		}
		return size, "--host-memory", nil
	}
	t := cl.TypeOf(l[0].Host)
	sum, source := unit.Bytes(0), ""
	for _, i := range t.Of(cluster.NUMA) {
		if cpu := t.Devices[i].CPU; cpu != nil && cpu.Memory.Value > 0 {
			sum += cpu.Memory.Value
			source = cpu.Memory.Source
		}
	}
	if sum == 0 {
		return usualHost, "assumed; --host-memory says another", nil
	}
	return sum, source, nil
}
