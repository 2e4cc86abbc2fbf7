package workload

import (
	"fmt"

	"busbar.dev/unit"
)

// Case is a part of the source documents worked out: a title, and lines.
type Case struct {
	Title    string `json:"title"`
	Document string `json:"document,omitempty"` // that it is of
	Lines    []Line `json:"lines"`
	// Long says that the lines are a table of many rows alike.
	Long bool `json:"-"`
}

// The documents that the envelope comes from.
const (
	docNetworking  = "S. Bekman, Machine Learning Engineering, Networking, 2024"
	docBaskerville = "T. Lazauskas, The Impact of GPU Networking, part 2, 2025"
	docTopology    = "How Network Topology Shapes Distributed GPU Training Performance, 2026"
	docPlaybook    = "Distributed communication for GPUs, part 1, 2025"
	docStrategies  = "Optimizing Distributed Training: Strategies for High-Bandwidth Interconnects"
)

// says puts beside a line what its document prints.
func (l Line) says(printed string) Line {
	l.Printed = printed
	return l
}

// but adds what is to be said about the difference.
func (l Line) but(note string) Line {
	if l.Note != "" {
		l.Note += "; "
	}
	l.Note += note
	return l
}

// Papers are the cases of the documents: every figure that follows from others there, with its formula,
// its numbers and what the document prints. Where it prints another figure than its own formula gives,
// the line's note says so.
func Papers() []Case {
	list := []Case{once(), oneNode()}
	compute := find(list[1].Lines, "compute").Value
	list = append(list, fourNodes(200), fourNodes(400), larger(), factors())
	list = append(list, lanes(), pcie(), ports(), infiniband(), reached(compute), sweep("all-reduce on 8 A100, rates from times", docNetworking, onA100(), 8))
	out, in := onH100()
	return append(list, gathered(), epochs(), machine(),
		nvlink5(), sweep("all-reduce on 4 H100 out of place, rates from times", docPlaybook, out, 4), sweep("all-reduce on 4 H100 in place, rates from times", docPlaybook, in, 4), paired(),
		threeNodes(10), threeNodes(400), savings(), topology())
}

// find is the line of a name, to be changed where it stands.
func find(lines []Line, name string) *Line {
	for i := range lines {
		if lines[i].Name == name {
			return &lines[i]
		}
	}
	return &Line{}
}

// once is parameters over a network.
func once() Case {
	lines := append(transmit(80e9, 200), transmit(80e9, 1600)[2])
	for i, printed := range []string{"320", "2560Gb", "12.8 seconds", "1.6 seconds"} {
		lines[i] = lines[i].says(printed)
	}
	return Case{Title: "80B parameters over a network, once", Document: docNetworking, Lines: lines}
}

// two is the document's job: 2B parameters on A100s.
func two(nodes int, gbit float64) Envelope {
	e := Envelope{Title: "2B parameters on 1 × 8 A100", Params: 2e9, Seq: 2048, Batch: 16, GPUs: 8, Nodes: nodes, Recompute: true, GPU: "A100", Peak: 312e12, MFU: usualMFU, Intra: 300e9}
	if nodes > 1 { // as much for each GPU, so that compute stays
		e.Title = fmt.Sprintf("2B parameters on 4 × 8 A100 at %s Gb/s", Figure(gbit))
		e.GPUs, e.Batch, e.Inter = 8*nodes, 16*int64(nodes), unit.Rate(gbit/8*1e9)
	}
	return e
}

// quote puts what a document prints beside lines of an envelope.
func quote(lines []Line, printed map[string]string) {
	for i := range lines {
		if text, ok := printed[lines[i].Name]; ok {
			lines[i].Printed = text
		}
	}
}

// oneNode is the step on eight GPUs.
func oneNode() Case {
	one := two(1, 0)
	lines := one.Lines()
	quote(lines, map[string]string{
		"memory for training": "36", "operations of a GPU": "65.536 TFLOP", "compute": "0.42 secs", "gradients": "8GB", "factor of an all-reduce": "1.75",
		"sent by a GPU": "16GB", "exchange inside a node": "0.053",
	})
	sent := 2 * gradientBytes * 2.0
	in := find(lines, "exchange inside a node")
	*in = in.but("the text says \"0.053 > 0.42 so the comms will be slower\", which is the wrong way round")
	seconds := find(lines, "compute").Value
	lines = append(
		lines,
		line("  in the table", "gradients / rate of a GPU's links", "s", sent/2/300, "%s / %s", sent/2, 300).says("0.027").but("the table sends the gradients once; the text and the formula above send them twice"),
		line("  on H100", "sent / rate of a GPU's links", "s", sent/450, "%s / %s", sent, 450).says("0.035").but("the document cuts 0.0356"),
		line("without recomputation", "parameters in G × 3 × 2 × tokens × sequences / (GPUs × 1000)", "TFLOP", 2*3*2*2048*16/8e3, "2 × 3 × 2 × 2048 × 16 / (8 × 1000)"),
		line("rate of a GPU", "MFU × peak", "TFLOPS", usualMFU*312, "%s × %s", usualMFU, 312).says("156TFLOPS"),
		line("H100 over A100", "ratio of peaks", "×", 989/312.0, "989 / 312").says("~3x"),
		line("with half the batch", "compute / 2", "s", seconds/2, "%s / 2", seconds).but("the text: half the batch or the sequence is half the compute"),
	)
	return Case{Title: one.Title, Document: docNetworking, Lines: lines}
}

// fourNodes is the same over a network.
func fourNodes(gbit float64) Case {
	four := two(4, gbit)
	lines := four.Lines()
	if gbit == 200 {
		quote(lines, map[string]string{"compute": "0.42", "exchange across nodes": "0.64 seconds", "across over inside": "23x", "sent by a GPU": "16GB"})
		x := find(lines, "across over inside")
		*x = x.but(fmt.Sprintf("the document's 23 is 0.64 / 0.027: %s without the doubling inside, which the text and this formula have", Figure(0.64/(8/300.0))))
		return Case{Title: four.Title, Document: docNetworking, Lines: append(lines, line("sent, in bits", "GB × 8", "Gb", 16*8, "16 × 8").says("128Gb"))}
	}
	quote(lines, map[string]string{"exchange across nodes": "0.32 secs"})
	return Case{Title: four.Title, Document: docNetworking, Lines: lines}
}

// larger is the exercise that the document leaves to its reader: the same for 20B and 200B parameters.
func larger() Case {
	c := Case{Title: "the same with 20B and 200B parameters on 4 × 8 A100, as many tokens a GPU", Document: docNetworking}
	for _, b := range []float64{20, 200} {
		e := two(4, 200)
		e.Params = b * 1e9
		lines := e.Lines()
		seconds, across, need := find(lines, "compute"), find(lines, "exchange across nodes"), find(lines, "rate that hides behind compute")
		for _, l := range []*Line{seconds, across, need} {
			one := *l
			one.Name = fmt.Sprintf("%sB: %s", Figure(b), one.Name)
			c.Lines = append(c.Lines, one)
		}
	}
	last := &c.Lines[len(c.Lines)-1]
	*last = last.but("operations and gradients grow alike, so the rate stays; what grows is the memory, and with it the traffic of what must then be divided")
	return c
}

// factors are those of an all-reduce.
func factors() Case {
	c := Case{Title: "the factor of an all-reduce", Document: docNetworking}
	for _, x := range []struct {
		n       int
		printed string
	}{{2, "1"}, {8, "1.75"}, {64, "2"}} {
		l := line(fmt.Sprintf("%d GPUs", x.n), "2(n − 1)/n", "", ringFactor(x.n), "2 × %s / %s", float64(x.n-1), float64(x.n)).says(x.printed)
		if x.n == 64 {
			l = l.but("the document: very close to 2")
		}
		c.Lines = append(c.Lines, l)
	}
	return c
}
