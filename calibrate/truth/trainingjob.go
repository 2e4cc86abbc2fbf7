package truth

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"busbar.dev/hardware"
	"busbar.dev/result"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Job is the run as a job; what the source leaves open is assumed and noted.
func (t *Training) Job() (*workload.Job, error) {
	m, err := t.model()
	if err != nil {
		return nil, err
	}
	p := &t.Parallel
	s := workload.Split{DP: p.DP, TP: p.TP, PP: p.PP, CP: p.CP, EP: p.EP, ETP: p.ETP, Chunks: p.VPP}
	if each := max(s.TP, 1) * max(s.PP, 1) * max(s.CP, 1); s.DP*each != t.Hardware.GPUs && t.Hardware.GPUs%each == 0 {
		if s.DP = t.Hardware.GPUs / each; p.DP > 0 {
			t.Assumed = append(t.Assumed, fmt.Sprintf("dp=%d, which the GPUs give; the source prints %d", s.DP, p.DP))
		}
	}
	if s.Chunks > 1 && s.PP <= 1 {
		t.Assumed, s.Chunks = append(t.Assumed, fmt.Sprintf("no chunks: vpp=%d without a pipeline", s.Chunks)), 1
	}
	j := &workload.Job{Model: m, Seq: t.Model.Seq, MicroBatch: p.MicroBatch, GlobalBatch: p.GlobalBatch, Recompute: workload.None, Kernels: workload.Fused}
	if j.Precision, err = workload.ParsePrecision(defaulted(p.Precision, "bf16")); err != nil {
		return nil, err
	}
	if err := t.style(j, &s); err != nil {
		return nil, err
	}
	if err := t.explicit(j, &s); err != nil {
		return nil, err
	}
	if j.Split, err = s.On(t.Hardware.GPUs); err != nil {
		return nil, err
	}
	t.batches(j, &s)
	t.fit(j)
	t.leaveOut(j)
	return j, j.Check()
}

func defaulted(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// explicit is what the source states itself, which wins over what is usual.
func (t *Training) explicit(j *workload.Job, s *workload.Split) error {
	p := &t.Parallel
	if err := t.recomputation(j); err != nil {
		return err
	}
	if p.ZeRO != nil {
		s.ZeRO = *p.ZeRO
	} else if p.Sharded != nil && *p.Sharded && s.ZeRO == 0 {
		s.ZeRO = 1
	}
	switch f := p.FSDP.(type) {
	case float64:
		if f > 1 && f <= float64(t.Hardware.GPUs) {
			s.ZeRO, s.Shard = 3, int(f)
		}
	case string:
		s.ZeRO = 3
		switch strings.ToUpper(f) {
		case "HYBRID_SHARD":
			s.Shard = max(1, t.Hardware.PerNode)
		case "SHARD_GRAD_OP":
			s.ZeRO = 2
		case "NO_SHARD":
			s.ZeRO = 0
		}
	}
	if p.ShardSize > 0 {
		s.Shard = p.ShardSize
	}
	if n, ok := p.ZeROGroup.(float64); ok && n >= 1 && n <= float64(t.Hardware.GPUs) {
		s.Shard = int(n)
	}
	if p.SeqParallel != nil {
		s.SeqParallel = *p.SeqParallel && s.TP > 1
	}
	if p.Compile != nil && j.Kernels != workload.Fused {
		if j.Kernels = workload.Eager; *p.Compile {
			j.Kernels = workload.Compiled
		}
	}
	if t.Model.LoRA || t.Model.LoRARank > 0 || strings.Contains(strings.ToLower(t.Model.Name+" "+p.Task), "lora") {
		j.LoRA.Rank = t.Model.LoRARank
		if j.LoRA.Rank == 0 {
			j.LoRA.Rank = 16
			t.Assumed = append(t.Assumed, "adapters of rank 16")
		}
		// MLPerf's adapters are those of attention (its rules of llama2_70b_lora).
		j.LoRA.Attention = strings.Contains(t.Framework+t.Cluster, "MLPerf")
		if strings.Contains(strings.ToLower(t.Model.Name+" "+p.Precision+" "+p.Task), "qlora") {
			j.LoRA.Bits = 4
		}
	}
	return nil
}

var someLayers = regexp.MustCompile(`(\d+) of (\d+) layers`)

// recomputation reads the words of a source.
func (t *Training) recomputation(j *workload.Job) error {
	words := strings.ToLower(strings.TrimSpace(t.Parallel.Recompute))
	switch {
	case words == "": // as is usual
	case strings.HasPrefix(words, "full"), strings.HasPrefix(words, "all"), strings.Contains(words, "every layer"), strings.HasPrefix(words, "block"), words == "true", words == "yes":
		j.Recompute = workload.Full
	case strings.Contains(words, "op"), strings.Contains(words, "per-op"), strings.Contains(words, "sac"):
		j.Recompute = workload.PerOp
	case strings.HasPrefix(words, "selective"), strings.Contains(words, "core_attn"), strings.Contains(words, "attention"):
		j.Recompute = workload.Selective
		if strings.Contains(words, "moe_act") || strings.Contains(words, "layernorm") || strings.Contains(words, "mla_up_proj") {
			j.Recompute = workload.Light
		}
	case strings.Contains(words, "moe_act"), strings.Contains(words, "layernorm"), strings.Contains(words, "mla_up_proj"):
		j.Recompute = workload.Light
	case strings.HasPrefix(words, "none"), words == "no", words == "false", words == "off":
		j.Recompute = workload.None
	default:
		return fmt.Errorf("recompute %.40q is unknown; expected none, selective, per-op, light or full", words)
	}
	if m := someLayers.FindStringSubmatch(words); m != nil {
		some, _ := strconv.ParseFloat(m[1], 64)
		all, _ := strconv.ParseFloat(m[2], 64)
		if some > 0 && some < all {
			j.Recomputed = some / all
		}
	}
	return nil
}

// fit takes the cheapest recomputation for a run that has no place without any, where the source says nothing of it. Those who need more
// place than that gives find other ways too: weights of 8 bits, activations in the host's memory.
func (t *Training) fit(j *workload.Job) {
	m, ok := hardware.GPUByName(t.Hardware.GPU)
	if t.Parallel.Recompute != "" || t.Parallel.Offload != "" || !ok || j.Check() != nil {
		return
	}
	usual := j.Recompute
	if usual == workload.None && j.Memory().Total() > unit.Volume(m.Memory)*roomy {
		j.Recompute = workload.Light
	}
	if j.Recompute != usual {
		t.Assumed = append(t.Assumed, "recompute "+string(j.Recompute)+": without any it has no place")
	}
}

// roomy is how much of what a GPU has a run is taken to need: what is counted is not all, and not exact.
const roomy = 1.15

// batches assumes a micro-batch where the source has none, and takes one of each replica where it does not state the global batch.
func (t *Training) batches(j *workload.Job, s *workload.Split) {
	if j.GlobalBatch == 0 && j.MicroBatch > 0 {
		each := int64(1)
		if s.PP > 1 {
			each = 4 * int64(s.PP)
		}
		j.GlobalBatch = j.MicroBatch * int64(j.Split.DP) * each
		t.Assumed = append(t.Assumed, fmt.Sprintf("a global batch of %d", j.GlobalBatch))
	}
	if j.MicroBatch > 0 {
		return
	}
	j.MicroBatch = 1
	for b := int64(8); b > 1; b /= 2 {
		if j.GlobalBatch%(b*int64(s.DP)) == 0 && (s.PP <= 1 || j.GlobalBatch/(b*int64(s.DP)) >= int64(4*s.PP)) && s.TP*s.PP < 64 {
			j.MicroBatch = b
			break
		}
	}
	t.Assumed = append(t.Assumed, fmt.Sprintf("micro-batches of %d", j.MicroBatch))
}

// Place is the cluster of the run.
func (t *Training) Place() (*Place, error) {
	h := &t.Hardware
	m := &result.Machine{GPU: h.GPU, Joined: h.Intra, NICs: h.NICs, Gbps: h.Gbps, Fabric: h.Fabric}
	nodes, per := max(h.Nodes, 1), h.PerNode
	if h.GPUs < nodes*per {
		per = max(1, h.GPUs/nodes)
	}
	if m.NICs == nil && nodes > 1 {
		n := float64(max(per, 1))
		rate := 400.0
		if h.NodeGbps != nil {
			rate = *h.NodeGbps / n
		} else if strings.HasPrefix(h.GPU, "A100") || strings.HasPrefix(h.GPU, "A800") {
			rate = 200
		}
		m.NICs, m.Gbps = &n, &rate
		t.Assumed = append(t.Assumed, fmt.Sprintf("%g NICs of %g Gb/s a node", n, rate))
	}
	if m.Gbps == nil && m.NICs != nil && h.NodeGbps != nil && *m.NICs >= 1 {
		rate := *h.NodeGbps / *m.NICs
		m.Gbps = &rate
	}
	if m.Fabric == "" {
		m.Fabric = "InfiniBand"
	}
	return describe(m, nodes, per, 0)
}
