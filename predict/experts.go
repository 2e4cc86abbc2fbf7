package predict

import (
	"cmp"
	"fmt"
	"math"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/internal/words"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// ExpertCall is the exchange of tokens before the experts of a layer (dispatch) or after them (combine), as DeepEP and
// its like do it: not an all-to-all of equal blocks, but every token to the GPUs that hold its experts.
//
// Normal kernels send a token once to every node that needs it, to the GPU of the same place there, which hands it on
// over NVLink. LowLatency kernels send it straight to every expert's GPU, once for each.
type ExpertCall struct {
	Combine    bool
	LowLatency bool
	Tokens     int // of a rank
	Hidden     int // elements of a token
	TopK       int // experts of a token
	Experts    int // in all
	Width      int // bytes of an element: 1 with a scale for 128 of them (FP8), or 2
	SMs        int // multiprocessors that move data, of the normal kernels; 0 is DeepEP's 20
	Groups     int // nodes that a token's experts are on at most, where routing is limited; 0 no limit
}

// ExpertTime is the time of such an exchange.
type ExpertTime struct {
	Time   unit.Time  `json:"time_s"`
	Low    unit.Time  `json:"low_s"` // the error bar
	High   unit.Time  `json:"high_s"`
	Start  unit.Time  `json:"start_s"`
	Moving unit.Time  `json:"moving_s"`
	Inside unit.Bytes `json:"nvlink_bytes"` // that a GPU sends over links of its node
	Across unit.Bytes `json:"rdma_bytes"`   // and over the network
	// Bandwidth is what DeepEP prints: all copies of the tokens, those that stay included, by the time.
	Bandwidth unit.Rate `json:"bandwidth_GBps"`
	Limit     string    `json:"bottleneck"`
}

// Figures of such kernels, beyond what links give to collectives. Sources: DeepEP's tables (README, 2025) and the
// tables of NVIDIA's aiconfigurator for H100, B200 and GB200 with 4 to 24 multiprocessors, which tell what one of them
// moves.
const (
	expertSMs = 20
	// of the rate that NCCL gets over the same links: kernels that write tokens wherever they belong
	expertDispatch, expertCombine, expertDirect = .75, .84, .65
	expertRDMA                                  = .9 // of a NIC's line rate, in writes of one token
	// GB/s that a multiprocessor moves inside a node, and where half of them hand on what others received
	smDispatch, smCombine, smForward, smReturn = 17.5, 20.0, 13.0, 10.3
	// µs until the first token moves, and more for each doubling of the nodes: counting and layout are part of the normal
	// kernels
	startDispatch, startCombine, startDirect, startNodes = 28, 50, 16, 6
	// µs for each 8 KiB that a processor's thread posts where the GPU cannot drive the NIC itself
	proxied, proxiedBytes = .4, 8192
	expertMargin          = 1.6
)

// Check says what is wrong with a call over so many ranks.
func (x ExpertCall) Check(ranks int) error {
	switch {
	case x.Tokens < 1 || x.Hidden < 1 || x.TopK < 1 || x.Tokens > 1<<24 || x.Hidden > 1<<20:
		return fmt.Errorf("%d tokens of %d elements to %d experts; expected one or more of each, at most 16777216 tokens "+
			"and 1048576 elements", x.Tokens, x.Hidden, x.TopK)
	case x.Experts < ranks || x.Experts%ranks != 0:
		return fmt.Errorf("%d experts over %d GPUs; expected as many for each, at least one: a multiple of %d (-l takes "+
			"fewer "+
			"GPUs)", x.Experts, ranks, ranks)
	case x.TopK > x.Experts:
		return fmt.Errorf("%d experts for a token of %d there are; expected fewer", x.TopK, x.Experts)
	case x.Width != 1 && x.Width != 2:
		return fmt.Errorf("elements of %d bytes; expected 1 (fp8) or 2 (bf16)", x.Width)
	case x.SMs < 0 || x.Groups < 0:
		return fmt.Errorf("%d multiprocessors, %d groups; expected none or more", x.SMs, x.Groups)
	}
	return nil
}

// bytes is the size of a token.
func (x ExpertCall) bytes() float64 {
	if x.Width == 1 {
		return float64(x.Hidden) * (1 + 4.0/128)
	}
	return 2 * float64(x.Hidden)
}

// reached is how many of n equal parts hold an expert of a token, on average: its experts are distinct, and any are as
// likely.
func (x ExpertCall) reached(n int) float64 {
	each, none := float64(x.Experts)/float64(n), 1.0
	for i := range x.TopK {
		none *= max(0, float64(x.Experts)-each-float64(i)) / float64(x.Experts-i)
	}
	return float64(n) * (1 - none)
}

// Experts predicts such an exchange among all ranks.
func (p *Predictor) Experts(x ExpertCall) (*ExpertTime, error) {
	n, nodes := len(p.Layout), len(p.Plan.Nodes)
	if err := x.Check(n); err != nil {
		return nil, err
	}
	link, nic, kind := p.gpuRates()
	switch {
	case n > 1 && link == 0 && nodes < n:
		return nil, fmt.Errorf("the exchange of experts' tokens needs NVLink or xGMI between the GPUs of a node; %s has "+
			"none", p.Cluster.TypeOf(p.Layout[0].Host).Name)
	case nodes > 1 && nic == 0:
		return nil, fmt.Errorf("the rate of the nodes' NICs is unknown; give it with --nic")
	}
	token := x.bytes() * float64(x.Tokens)
	model := p.model(p.Figures, coll.Op{Kind: coll.AllToAll, Bytes: unit.Bytes(token)}, Setting{
		Algo: "direct", Proto: sim.Simple, Channels: 1,
	})
	share := model.Share[sim.NVLink]
	late := float64(model.Late(kind)) / 1e6
	var r spentOn
	if x.LowLatency {
		r = p.direct(x, token, link*share, nic, late, kind)
	} else {
		r = p.forwarded(x, token, link*share, nic, late)
	}
	moving := max(r.inside, r.across, r.posted)
	t := &ExpertTime{
		Start: unit.Time(r.start * 1e6), Moving: unit.Time(moving * 1e6),
		Inside: unit.Bytes(r.insideBytes), Across: unit.Bytes(r.acrossBytes),
	}
	t.Time = t.Start + t.Moving
	t.Low, t.High = unit.Time(float64(t.Time)/expertMargin), unit.Time(float64(t.Time)*expertMargin)
	t.Bandwidth = unit.Rate(r.copies * token / (float64(t.Time) / 1e12))
	switch {
	case r.start > moving:
		t.Limit = "starting the kernels and the first messages; more tokens would cost little more"
	case r.posted == moving:
		t.Limit = "the processor's threads that post every token to the NIC"
	case r.across == moving:
		t.Limit = fmt.Sprintf("the network: a GPU's share of the NICs is %v", unit.Rate(nic*1e9).Bits())
	case r.bySMs:
		t.Limit = fmt.Sprintf("%s move the tokens; more would be faster and leave less of the GPU",
			words.Plural(x.sms(), "multiprocessor"))
	default:
		t.Limit = fmt.Sprintf("the GPU's links carry %v one direction", unit.Rate(link*1e9))
	}
	return t, nil
}

func (x ExpertCall) sms() int {
	return cmp.Or(x.SMs, expertSMs)
}

// spentOn is what an exchange spends its time on, in µs, and what a GPU sends.
type spentOn struct {
	start, inside, across, posted float64
	insideBytes, acrossBytes      float64
	copies                        float64 // of a token that count as sent
	bySMs                         bool
}

// forwarded is an exchange by normal kernels: link and nic in GB/s of one GPU.
func (p *Predictor) forwarded(x ExpertCall, token, link, nic, late float64) spentOn {
	n, nodes := len(p.Layout), len(p.Plan.Nodes)
	share, sm, sent, start := expertDispatch, smDispatch, smForward, float64(startDispatch)
	if x.Combine {
		share, sm, sent, start = expertCombine, smCombine, smReturn, startCombine
	}
	ranks, hit := x.reached(n), x.reached(nodes)
	if x.Groups > 0 && nodes > x.Groups {
		hit = min(hit, float64(x.Groups))
	}
	r := spentOn{start: start, copies: ranks}
	if n == 1 {
		return r
	}
	own := 1 / float64(n/nodes) // of what goes to a node, the part for the GPU that has it already
	r.insideBytes = token * ranks * (1 - own)
	if nodes > 1 {
		sm = sent
		r.copies = hit
		r.acrossBytes = token * hit * (1 - 1/float64(nodes))
		r.across = r.acrossBytes / (nic * expertRDMA * 1e3)
		r.start += startNodes*math.Log2(float64(nodes)) + late
	}
	copied := token * ranks / (sm * float64(x.sms()) * 1e3)
	if link > 0 {
		r.inside = r.insideBytes / (link * share * 1e3)
	}
	r.bySMs = copied > r.inside
	r.inside = max(r.inside, copied)
	return r
}

// direct is an exchange by low-latency kernels.
func (p *Predictor) direct(x ExpertCall, token, link, nic, late float64, kind cluster.NetKind) spentOn {
	n, nodes := len(p.Layout), len(p.Plan.Nodes)
	local := n / nodes
	k := float64(x.TopK)
	r := spentOn{start: startDirect, copies: k}
	r.insideBytes = token * k * float64(local-1) / float64(n)
	if link > 0 {
		r.inside = r.insideBytes / (link * expertDirect * 1e3)
	}
	if nodes > 1 {
		far := float64(n-local) / float64(n)
		r.acrossBytes = token * k * far
		r.across = r.acrossBytes / (nic * expertRDMA * 1e3)
		r.start += startNodes*math.Log2(float64(nodes)) + late
		if !gpuPosts(kind) {
			r.posted = float64(x.Tokens) * k * far * math.Ceil(x.bytes()/proxiedBytes) * proxied
		}
	}
	return r
}

// gpuPosts reports whether GPUs drive NICs of a network themselves (IBGDA).
func gpuPosts(k cluster.NetKind) bool { return k == cluster.InfiniBand || k == cluster.RoCE }

// gpuRates are what the first rank's GPU has: its links to others, its share of the node's NICs, in GB/s one direction,
// and their network.
func (p *Predictor) gpuRates() (link, nic float64, kind cluster.NetKind) {
	first := p.Layout[0]
	t := p.Cluster.TypeOf(first.Host)
	for _, l := range t.Links {
		if (l.A == first.GPU || l.B == first.GPU) && (l.Kind == cluster.NVLink || l.Kind == cluster.XGMI) {
			link += float64(l.Rate.Value / unit.GBps)
		}
	}
	node := &p.Plan.Nodes[0]
	for _, list := range node.View.Fused {
		for _, d := range list {
			x := t.Devices[d].NIC
			nic += float64(x.Rate().Value / unit.GBps)
			kind = x.Kind
		}
	}
	return link, nic / float64(len(node.Ranks)), kind
}
