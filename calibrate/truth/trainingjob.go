package truth

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/hardware"
	"busbar.dev/internal/lazyre"
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
	j := &workload.Job{
		Model: m, Seq: cmp.Or(t.Model.Seq, m.Seq), MicroBatch: p.MicroBatch, GlobalBatch: p.GlobalBatch,
		Recompute: workload.None, Kernels: workload.Fused,
	}
	if j.Precision, err = t.precision(); err != nil {
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
	return j, j.Check()
}

// precision is the stated one; where its words are unknown, that of the family that the source puts it in.
func (t *Training) precision() (workload.Precision, error) {
	words := t.Parallel.Precision
	if t.adapters() { // frozen weights of fewer bits are computed with in 16
		words = strings.Trim(fewBits.ReplaceAllString(words, " "), " -_+/,()")
	}
	p, err := workload.ParsePrecision(cmp.Or(words, t.Parallel.Family, "bf16"))
	if err == nil || t.Parallel.Family == "" {
		return p, err
	}
	if q, other := workload.ParsePrecision(t.Parallel.Family); other == nil {
		t.Assumed = append(t.Assumed, fmt.Sprintf("precision %s for %.40q", q, t.Parallel.Precision))
		return q, nil
	}
	return p, err
}

// explicit is what the source states itself, which wins over what is usual.
func (t *Training) explicit(j *workload.Job, s *workload.Split) error {
	p := &t.Parallel
	if err := t.recomputation(j); err != nil {
		return err
	}
	if p.Graphs != nil {
		j.Graphs = *p.Graphs
	} else if strings.Contains(p.Config, "_cg") { // as MLPerf's settings are named
		j.Graphs = true
	}
	if dropped.MatchString(t.Notes) {
		j.Capacity = true
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
		switch f = strings.ToUpper(f); {
		case strings.Contains(f, "HYBRID"), strings.Contains(f, "HSDP"):
			s.Shard = max(1, t.Hardware.PerNode)
		case strings.Contains(f, "GRAD_OP"):
			s.ZeRO = 2
		case f == "NO_SHARD", f == "NO", f == "NONE", f == "FALSE":
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
	if t.adapters() {
		j.LoRA.Rank = t.Model.LoRARank
		if j.LoRA.Rank == 0 {
			j.LoRA.Rank = 16
			t.Assumed = append(t.Assumed, "adapters of rank 16")
		}
		// MLPerf's adapters are those of attention (its rules of llama2_70b_lora).
		j.LoRA.Attention = strings.Contains(t.Framework+t.Cluster, "MLPerf")
		if w := fewBits.FindString(t.Model.Name + " " + p.Precision + " " + p.Task); strings.Contains(w, "8") {
			j.LoRA.Bits = 8
		} else if w != "" {
			j.LoRA.Bits = 4
		}
	}
	return nil
}

// fewBits are the words for frozen weights of fewer bits.
var fewBits = lazyre.New(`(?i)\bq-?lora\b|\bnf4\b|\b[48]-?bit\b|\bint[48]\b|\bbnb\b|\bbitsandbytes\b`)

// adapters reports that weights are frozen.
func (t *Training) adapters() bool {
	return t.Model.LoRA || t.Model.LoRARank > 0 ||
		strings.Contains(strings.ToLower(t.Model.Name+" "+t.Parallel.Task+" "+t.Parallel.Precision), "lora")
}

// dropped are the words for experts that take a fixed number of tokens.
var dropped = lazyre.New(`(?i)\btoken[- ]?drop|drop[- ]and[- ]pad|capacity factor`)

var (
	someLayers = lazyre.New(`(\d+) of (\d+) layers`)
	opWords    = lazyre.New(`\bop\b|per[- ]op|\bsac\b`)
)

// recomputation reads the words of a source.
func (t *Training) recomputation(j *workload.Job) error {
	words := strings.ToLower(strings.TrimSpace(t.Parallel.Recompute))
	has := func(list ...string) bool {
		return slices.ContainsFunc(list, func(w string) bool { return strings.Contains(words, w) })
	}
	switch {
	case words == "": // as is usual
	case strings.HasPrefix(words, "none"), words == "no", words == "false", words == "off", words == "0",
		has("no recompute", "without", "disabled"):
		j.Recompute = workload.None
	case strings.HasPrefix(words, "full"), strings.HasPrefix(words, "all"), has("every layer", "uniform", "whole"),
		strings.HasPrefix(words, "block"), words == "true", words == "yes", words == "on":
		j.Recompute = workload.Full
	case opWords.MatchString(words):
		j.Recompute = workload.PerOp
	case has("moe_act", "layernorm", "mla_up_proj", "norm", "activation function"):
		j.Recompute = workload.Light
	case strings.HasPrefix(words, "selective"), has("core_attn", "attention", "partial", "mlp", "moe"):
		j.Recompute = workload.Selective
	case has("checkpoint", "layers", "recompute", "remat", "ac"):
		j.Recompute = workload.Full
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

// fit takes what makes a run fit where the source says nothing of it. Replicas that train small adapters hold frozen
// weights whole where these fit, and those that cannot hold all weights divide them. Of recomputation Megatron's users
// take the cheapest, others that of whole layers. Those who need more place than that gives find other ways too:
// weights of 8 bits, activations in the host's memory.
func (t *Training) fit(j *workload.Job) {
	m, ok := hardware.GPUByName(gpuName(t.Hardware.GPU))
	if t.Parallel.Offload != "" || !ok || j.Check() != nil {
		return
	}
	over := func(j workload.Job) bool { return j.Memory().Total() > unit.Volume(m.Memory)*roomy }
	whole := *j
	whole.Split.ZeRO = 0
	switch {
	case t.statesSharding() || j.Split.DP == 1:
	case j.LoRA.Frozen() && j.Split.ZeRO == 3 && !over(whole):
		j.Split.ZeRO, t.Assumed = 0, append(t.Assumed, "frozen weights whole on every GPU")
	case j.Split.ZeRO == 0 && j.Split.PP == 1 && over(*j):
		j.Split.ZeRO, t.Assumed = 3, append(t.Assumed, "zero=3: whole weights do not fit")
	}
	if t.Parallel.Recompute != "" || j.Recompute != workload.None || !over(*j) {
		return
	}
	if j.Recompute = workload.Light; j.Kernels != workload.Fused {
		j.Recompute = workload.Full
	}
	t.Assumed = append(t.Assumed, "recompute "+string(j.Recompute)+": without any it does not fit")
}

// roomy is how much of what a GPU has a run is taken to need: what is counted is not all, and not exact.
const roomy = 1.15

// batches assumes a micro-batch where the source has none, and takes one of each replica where it does not state the
// global batch.
func (t *Training) batches(j *workload.Job, s *workload.Split) {
	if j.MicroBatch > 0 {
		return
	}
	j.MicroBatch = 1
	for b := int64(8); b > 1; b /= 2 {
		if j.GlobalBatch%(b*int64(s.DP)) == 0 && (s.PP <= 1 || j.GlobalBatch/(b*int64(s.DP)) >= int64(4*s.PP)) &&
			s.TP*s.PP < 64 {
			j.MicroBatch = b
			break
		}
	}
	t.Assumed = append(t.Assumed, fmt.Sprintf("micro-batches of %d", j.MicroBatch))
}

var rdma = lazyre.New(`(?i)roce|infiniband|\bib\b|ndr|hdr|efa|slingshot|tcpx`)

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
		g, _ := hardware.GPUByName(gpuName(h.GPU))
		switch {
		case h.NodeGbps != nil:
			rate = *h.NodeGbps / n
		case g.Links == 0: // cards
			n, rate = 2, 200
		case g.Vendor == "nvidia" && g.SM < 80:
			rate = 100
		case g.Vendor == "nvidia" && g.SM < 90:
			rate = 200
		}
		m.NICs, m.Gbps = &n, &rate
		t.Assumed = append(t.Assumed, fmt.Sprintf("%g NICs of %g Gb/s a node", n, rate))
	}
	if m.Gbps == nil && m.NICs != nil && h.NodeGbps != nil && *m.NICs >= 1 {
		rate := *h.NodeGbps / *m.NICs
		m.Gbps = &rate
	}
	if rdma.MatchString(h.Printed) { // others may be the network for logging in
		m.Fabric = cmp.Or(m.Fabric, h.Printed)
	}
	m.Fabric = cmp.Or(m.Fabric, "InfiniBand")
	return describe(m, nodes, per, 0)
}
