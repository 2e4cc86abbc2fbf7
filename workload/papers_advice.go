package workload

import "fmt"

// threeNodes is the example of the fifth document: 70B parameters on 24 GPUs over an office network and a
// fast one. It states no batch; what the exchange takes does not depend on it.
func threeNodes(gbit float64) Case {
	c := Case{Title: fmt.Sprintf("70B parameters on 3 × 8 GPUs at %s Gb/s", Figure(gbit)), Document: docStrategies}
	c.Lines = append(c.Lines,
		line("GPUs", "nodes × GPUs of a node", "", 3*8, "3 × 8").says("24 GPUs"),
		line("sent by a GPU", "2 × 4 bytes × parameters", "GB", 2*4*70, "2 × 4 × 70"),
		line("exchange across nodes", "sent × 8 / rate", "s", 560*8/gbit, "560 × 8 / %s", gbit))
	if gbit == 10 {
		c.Lines = append(c.Lines, line("  over that at 400 Gb/s", "ratio of rates", "×", 40, "400 / 10").but("the document says that training might be 10 times slower than the GPUs; from these rates the exchange alone is 40 times as long"))
	}
	return c
}

// savings are the fifth document's advice in figures.
func savings() Case {
	frame := func(mtu float64) float64 { return 100 * (mtu - 40) / (mtu + 38) }
	return Case{Title: "smaller gradients, larger frames", Document: docStrategies, Lines: []Line{
		line("gradients of 16 bits instead of 32", "ratio", "×", 2, "32 / 16").says("double"),
		line("gradients of 8 bits instead of 32", "ratio", "×", 4, "32 / 8").but("the document says double for both"),
		line("payload of frames of 1500 bytes", "(MTU − headers) / (MTU + frame)", "%", frame(1500), "100 × (1500 − 40) / (1500 + 38)"),
		line("payload of frames of 9000 bytes", "(MTU − headers) / (MTU + frame)", "%", frame(9000), "100 × (9000 − 40) / (9000 + 38)"),
	}}
}

// topology is the second document, whose figures are rules of thumb.
func topology() Case {
	return Case{Title: "rules of thumb about topology", Document: docTopology, Lines: []Line{
		line("inside a node over 25 Gb/s", "ratio of rates", "×", 200/25.0, "200 / 25").but("the document: 200+ Gb/s inside, 25 or 50 across"),
		line("inside a node over 50 Gb/s", "ratio of rates", "×", 200/50.0, "200 / 50"),
		line("messages one after the other in a ring of 64", "2(n − 1)", "", 2*63, "2 × 63").but("the document: latency grows with the number of ranks"),
		line("  in a tree of 64", "2 log₂ n", "", 2*6, "2 × 6").but("the document: logarithmic"),
		line("the most that 10% less time of exchange can give", "1 / (1 − 0.1) − 1", "%", 100/0.9-100, "100 / 0.9 − 100").says("15-20%").
			but("the document promises 15 to 20% for 10% less latency; even a step that is nothing but exchange gets 11% faster"),
	}}
}
