package workload

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"busbar.dev/unit"
)

// Envelope is a training step as one reckons it on the back of an envelope: whole data
// parallelism, one exchange of float32 gradients, one share of the peak for all products. It
// is for checking by hand; package step prices what really happens.
type Envelope struct {
	Title     string
	Params    float64
	Active    float64 // of those, the ones that a token passes; 0 is all
	Sample    float64 // FLOP of a forward pass over one sample, where they do not follow from the parameters; 0: they do
	Seq       int64
	Batch     int64 // sequences of a step, all GPUs together
	GPUs      int
	Nodes     int
	Recompute bool // the forward pass is computed twice
	GPU       string
	Peak      unit.FLOPS // of one GPU
	MFU       float64    // of the peak that is reached
	Intra     unit.Rate  // of a GPU's links in its node, one direction
	IntraLink string     // what they are where they are not made for GPUs; "" are links
	Inter     unit.Rate  // of a node's NICs together, one direction
}

// Line is one line of an envelope.
type Line struct {
	Name    string  `json:"name"`
	Formula string  `json:"formula"`
	Worked  string  `json:"worked"` // the formula with its numbers
	Value   float64 `json:"value"`
	Unit    string  `json:"unit,omitempty"`
	Note    string  `json:"note,omitempty"`
}

// Case is an envelope worked out: a title, and lines.
type Case struct {
	Title string `json:"title"`
	Lines []Line `json:"lines"`
}

// Rules of the envelope.
const (
	gradientBytes  = 4   // a gradient in float32
	trainingBytes  = 18  // a parameter in mixed precision: 2 + 4 weights, 8 Adam's moments, 4 gradient
	advertisedRate = 0.8 // of a link's advertised rate, at the application
)

// ringFactor is how many times its size an all-reduce sends: 2(n−1)/n.
func ringFactor(n int) float64 {
	if n < 1 {
		return 0
	}
	return 2 * float64(n-1) / float64(n)
}

// Figure prints a number with four digits at most, as one would write it down.
func Figure(x float64) string {
	if a := math.Abs(x); a >= 1e4 && a < 1e15 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// line works a formula out: every %s of worked is a number.
func line(name, formula, unit string, value float64, worked string, numbers ...float64) Line {
	for _, x := range numbers {
		worked = strings.Replace(worked, "%s", Figure(x), 1)
	}
	return Line{Name: name, Formula: formula, Worked: worked, Value: value, Unit: unit}
}

// Lines are the arithmetic of the case.
func (e *Envelope) Lines() []Line {
	list := []Line{e.memory()}
	passes, seconds := e.compute()
	list = append(list, passes, seconds)
	return append(list, e.comm(seconds.Value)...)
}

// memory is what weights, gradients and the optimizer take.
func (e *Envelope) memory() Line {
	b := e.Params / 1e9
	return line("memory for training", "18 bytes × parameters", "GB", trainingBytes*b, "18 × %s", b)
}

// compute is the operations of a GPU, and their time.
func (e *Envelope) compute() (ops, seconds Line) {
	peak := float64(e.Peak)
	passes, which := 3.0, "forward 1, backward 2"
	if e.Recompute {
		passes, which = 4, "forward 1, backward 2, forward again 1"
	}
	b := e.Params / 1e9
	if e.Active > 0 {
		b = e.Active / 1e9
	}
	if e.Sample > 0 {
		each := e.Sample / 1e12
		tflop := each * passes * float64(e.Batch) / float64(e.GPUs)
		ops = line("operations of a GPU", "operations of a sample × passes × samples / GPUs", "TFLOP", tflop,
			"%s × %s × %s / %s", each, passes, float64(e.Batch), float64(e.GPUs))
		ops.Note = "passes: " + which + "; a convolution is computed at many places with the same parameters, so the " +
			"operations are counted and not taken from their number"
		return ops, line("compute", "operations / (MFU × peak)", "s", tflop/(peak*e.MFU/1e12), "%s / (%s × %s)", tflop,
			e.MFU, peak/1e12)
	}
	tflop := b * passes * 2 * float64(e.Seq) * float64(e.Batch) / (float64(e.GPUs) * 1e3)
	ops = line("operations of a GPU", "parameters in G × passes × 2 × tokens × sequences / (GPUs × 1000)", "TFLOP",
		tflop,
		"%s × %s × 2 × %s × %s / (%s × 1000)", b, passes, float64(e.Seq), float64(e.Batch), float64(e.GPUs))
	ops.Note = "passes: " + which
	if e.Active > 0 && e.Active < e.Params {
		ops.Note += fmt.Sprintf("; a token passes %s G of %s G parameters", Figure(b), Figure(e.Params/1e9))
	}
	rate := peak * e.MFU / 1e12
	seconds = line("compute", "operations / (MFU × peak)", "s", tflop/rate, "%s / (%s × %s)", tflop, e.MFU, peak/1e12)
	return ops, seconds
}

// comm is the exchange of gradients beside the time of computing.
func (e *Envelope) comm(compute float64) []Line {
	b := e.Params / 1e9
	once := b * gradientBytes
	list := []Line{line("gradients", "4 bytes × parameters", "GB", once, "4 × %s", b)}
	if e.GPUs < 2 {
		return list
	}
	factor := ringFactor(e.GPUs)
	exact := line("factor of an all-reduce", "2(n − 1)/n", "", factor, "2 × %s / %s", float64(e.GPUs-1),
		float64(e.GPUs))
	exact.Note = "the rule of thumb takes 2: there and back"
	sent := 2 * once
	list = append(list, exact, line("sent by a GPU", "2 × gradients", "GB", sent, "2 × %s", once))
	if e.Intra > 0 {
		list = append(list, verdict(line("exchange inside a node", "sent / rate of a GPU's "+cmp.Or(e.IntraLink, "links"),
			"s", sent/e.Intra.GBps(), "%s / %s", sent, e.Intra.GBps()), compute, e.Nodes < 2))
		list = append(list, line("  with the exact factor", "2(n − 1)/n × gradients / rate", "s",
			factor*once/e.Intra.GBps(), "%s × %s / %s", factor, once, e.Intra.GBps()))
	}
	if e.Nodes < 2 || e.Inter <= 0 {
		return list
	}
	gbit := e.Inter.Gbps()
	across := line("exchange across nodes", "sent × 8 / rate of a node's NICs", "s", sent*8/gbit, "%s × 8 / %s", sent,
		gbit)
	list = append(list, verdict(across, compute, true))
	real := line("  at 80% of the advertised rate", "sent × 8 / (0.8 × rate)", "s", sent*8/(advertisedRate*gbit),
		"%s × 8 / (0.8 × %s)", sent, gbit)
	list = append(list, verdict(real, compute, true))
	if e.Intra > 0 {
		list = append(list, line("across over inside", "exchange across nodes / exchange inside a node", "×",
			across.Value/(sent/e.Intra.GBps()), "%s / %s", across.Value, sent/e.Intra.GBps()))
	}
	need := line("rate that hides behind compute", "sent × 8 / compute", "Gb/s", sent*8/compute, "%s × 8 / %s", sent,
		compute)
	need.Note = fmt.Sprintf("advertised, at 80%%: %s Gb/s", Figure(sent*8/compute/advertisedRate))
	return append(list, need)
}

// Servers is the exchange across nodes through parameter servers instead: every worker node sends its gradients to them
// and fetches the parameters, so that a server's NICs carry all workers' shares, once in and once out at the same time.
func (e *Envelope) Servers() []Line {
	if e.Nodes < 2 || e.Inter <= 0 {
		return nil
	}
	once, gbit, w := e.Params/1e9*gradientBytes, e.Inter.Gbps(), float64(e.Nodes)
	across := 2 * once * 8 / gbit
	one := line("with one parameter server", "worker nodes × gradients × 8 / rate of its NICs", "s", w*once*8/gbit,
		"%s × %s × 8 / %s", w, once, gbit)
	one.Note = fmt.Sprintf("gradients in and parameters out overlap; the all-reduce across nodes takes %s s",
		Figure(across))
	enough := math.Ceil(w * once * 8 / gbit / across)
	even := line("servers that match the all-reduce", "time with one server / time of the all-reduce", "servers", enough,
		"%s / %s", one.Value, across)
	even.Note = "nodes that train nothing"
	stale := line("asynchronous SGD: updates in between", "worker nodes − 1", "updates", w-1, "%s − 1", w)
	stale.Note = "nobody waits for the slowest, but a gradient is that many updates old when it is applied; the bytes " +
		"stay the same"
	return []Line{one, even, stale}
}

// verdict says whether an exchange is the bottleneck.
func verdict(l Line, compute float64, counts bool) Line {
	switch {
	case !counts:
	case l.Value > compute:
		l.Note = fmt.Sprintf("bottleneck: %s s > %s s of compute", Figure(l.Value), Figure(compute))
	default:
		l.Note = fmt.Sprintf("hides: %s s < %s s of compute", Figure(l.Value), Figure(compute))
	}
	return l
}
