package workload

import "fmt"

// Case is a part of the source documents worked out: a title, and lines.
type Case struct {
	Title string `json:"title"`
	Lines []Line `json:"lines"`
}

// Papers are the cases of the documents that the envelope comes from (S. Bekman, Machine
// Learning Engineering, chapter on networks; T. Lazauskas, The Impact of GPU Networking 2).
// Where a document prints another figure than its own formula gives, the line's note says so.
func Papers() []Case {
	list := []Case{{Title: "80B parameters over a network, once", Lines: append(Transmit(80e9, 200), Transmit(80e9, 1600)[2])}}
	one := Envelope{Title: "2B parameters on 1 × 8 A100", Params: 2e9, Seq: 2048, Batch: 16, GPUs: 8, Nodes: 1, Recompute: true, GPU: "A100", Peak: 312e12, MFU: UsualMFU, Intra: 300e9}
	lines := one.Lines()
	compute := lines[2].Value
	sent := 2 * GradientBytes * 2.0
	inside := find(lines, "exchange inside a node")
	inside.Note += fmt.Sprintf("; the document's table prints 0.027, which is the gradients sent once (%s / 300): its text and this formula send them twice", Figure(sent/2))
	h100 := line("  on H100", "sent / rate of a GPU's links", "s", sent/450, "%s / %s", sent, 450)
	h100.Note = "the document cuts 0.0356 to 0.035"
	lines = append(lines, h100, line("without recomputation", "parameters in G × 3 × 2 × tokens × sequences / (GPUs × 1000)", "TFLOP", 2*3*2*2048*16/8e3, "2 × 3 × 2 × 2048 × 16 / (8 × 1000)"))
	list = append(list, Case{one.Title, lines})
	for _, gbit := range []float64{200, 400} {
		four := one
		four.Title = fmt.Sprintf("2B parameters on 4 × 8 A100 at %s Gb/s", Figure(gbit))
		four.GPUs, four.Nodes, four.Batch, four.Inter = 32, 4, 64, gbit/8*1e9 // as much for each GPU, so that compute stays
		lines := four.Lines()
		if gbit == 200 {
			find(lines, "across over inside").Note = fmt.Sprintf("the document says 23, which is 0.64 / 0.027: %s without the doubling inside", Figure(0.64/(sent/2/300)))
		}
		list = append(list, Case{four.Title, lines})
	}
	return append(list, factors(), rates(), shares(compute), gathered())
}

func find(lines []Line, name string) *Line {
	for i := range lines {
		if lines[i].Name == name {
			return &lines[i]
		}
	}
	return &Line{}
}

// factors are those of an all-reduce.
func factors() Case {
	c := Case{Title: "the factor of an all-reduce"}
	for _, n := range []int{2, 8, 64} {
		c.Lines = append(c.Lines, line(fmt.Sprintf("%d GPUs", n), "2(n − 1)/n", "", RingFactor(n), "2 × %s / %s", float64(n-1), float64(n)))
	}
	return c
}

// rates are links made of lanes, one direction.
func rates() Case {
	c := Case{Title: "links, one direction"}
	for _, x := range []struct {
		name         string
		links, lanes float64
	}{{"NVLink 2", 6, 4}, {"NVLink 3", 12, 4}, {"NVLink 4", 18, 4}} {
		l := line(x.name, "links × lanes × rate of a lane", "GB/s", x.links*x.lanes*6.25, "%s × %s × 6.25", x.links, x.lanes)
		l.Note = fmt.Sprintf("both directions: %s GB/s", Figure(2*l.Value))
		c.Lines = append(c.Lines, l)
	}
	for _, x := range []struct {
		name        string
		links, rate float64
	}{{"xGMI of MI250X", 7, 50}, {"xGMI of MI300X", 7, 64}} {
		l := line(x.name, "links × rate", "GB/s", x.links*x.rate, "%s × %s", x.links, x.rate)
		l.Note = fmt.Sprintf("both directions: %s GB/s", Figure(2*l.Value))
		c.Lines = append(c.Lines, l)
	}
	c.Lines = append(c.Lines, line("Gaudi2 inside a node", "NICs × Gb/s / 8", "GB/s", 21*100/8.0, "21 × 100 / 8"),
		line("Gaudi2 across nodes", "NICs × Gb/s", "Gb/s", 24*100, "24 × 100"))
	ports := line("DGX H100 with ConnectX-7", "ports × Gb/s", "Gb/s", 8*200, "8 × 200")
	ports.Note = "the document prints 1.6 Gbps; 1600 Gb/s are 1.6 Tb/s"
	c.Lines = append(c.Lines, ports, line("Slingshot", "links × Gb/s", "Gb/s", 4*200, "4 × 200"))
	for _, x := range []struct {
		name string
		lane float64
	}{{"EDR", 25}, {"HDR", 50}, {"NDR", 100}, {"XDR", 200}, {"GDR", 400}} {
		for _, n := range []float64{4, 8, 12} {
			c.Lines = append(c.Lines, line(fmt.Sprintf("InfiniBand %s × %g", x.name, n), "links × Gb/s", "Gb/s", n*x.lane, "%s × %s", n, x.lane))
		}
	}
	return c
}

// shares are what applications reach of advertised rates.
func shares(compute float64) Case {
	share := func(name string, got, of float64) Line {
		return line(name, "reached / advertised", "%", 100*got/of, "100 × %s / %s", got, of)
	}
	full := share("all-reduce on A100 over both directions", 235, 600)
	full.Note = "the advertised figure counts both directions: divide by 300"
	rule := line("the 80 % rule at 400 Gb/s", "0.8 × advertised", "Gb/s", AdvertisedRate*400, "0.8 × 400")
	rule.Note = fmt.Sprintf("2B parameters then take %s s, still less than %s s of compute", Figure(128/(AdvertisedRate*400)), Figure(compute))
	slow := line("one all-reduce of 4 GB over 1000 of 4 MB", "ratio of measured rates", "×", 1257.165/374.391, "1257.165 / 374.391")
	return Case{Title: "what is reached", Lines: []Line{
		share("MFU: A100 in half precision", 156, 312), full, share("all-reduce on A100, one direction", 234.89, 300),
		share("copies between A100s", 274, 300), share("copies between H100s", 376, 450), share("all-reduce on EFA v1", 340, 400), rule, slow,
	}}
}

// gathered is the all-reduce that was measured on one, two and four nodes, as its script counts
// it: all that is sent, over the time.
func gathered() Case {
	all := line("sent by 4 GPUs", "gradients × 2 × (n − 1)", "GB", 1.32*2*3, "1.32 × 2 × 3")
	c := Case{Title: "GPT-2 Large in bfloat16, all-reduced by 4 A100s (Baskerville)", Lines: []Line{all}}
	for _, x := range []struct {
		name string
		s    float64
	}{{"1 × 4", 0.009}, {"2 × 2", 0.309}, {"4 × 1", 0.158}, {"2 × 2, ring", 0.584}} {
		l := line(x.name, "sent / time", "GB/s", all.Value/x.s, "%s / %s", all.Value, x.s)
		switch x.name {
		case "1 × 4":
			l.Note = "the document prints 875.1: its time has fewer digits than its rate"
		case "4 × 1":
			l.Note = "the document prints 50.0"
		case "2 × 2, ring":
			l.Note = "the document prints 13.5"
		}
		c.Lines = append(c.Lines, l)
	}
	slow := line("epoch on 2 × 2 over 1 × 4", "ratio", "×", 895.85/135.42, "895.85 / 135.42")
	return Case{c.Title, append(c.Lines, slow, line("epoch on 4 × 1 over 1 × 4", "ratio", "×", 251.68/135.42, "251.68 / 135.42"))}
}
