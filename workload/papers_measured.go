package workload

import (
	"fmt"
	"strconv"
)

// number reads what a document prints; the tables here have nothing else.
func number(text string) float64 {
	v, _ := strconv.ParseFloat(text, 64)
	return v
}

// sweep is a table of nccl-tests: both rates follow from size and time.
func sweep(title, document string, rows []swept, gpus int) Case {
	c := Case{Title: title, Document: document, Long: true}
	factor := ringFactor(gpus)
	for _, r := range rows {
		us := number(r.time)
		alg := float64(r.size) / us / 1e3
		c.Lines = append(c.Lines,
			line(fmt.Sprintf("%d B, algbw", r.size), "size / time", "GB/s", alg, "%s / %s / 1000", float64(r.size), us).says(r.algbw),
			line(fmt.Sprintf("%d B, busbw", r.size), "2(n − 1)/n × algbw", "GB/s", factor*alg, "%s × %s", factor, alg).says(r.bus))
	}
	return c
}

// average is nccl-tests' last line: all bus bandwidths, out of place and in place.
func average() Line {
	out, in := onH100()
	sum, n := 0.0, 0
	for _, rows := range [][]swept{out, in} {
		for _, r := range rows {
			sum += number(r.bus)
			n++
		}
	}
	return line("average bus bandwidth", "sum of busbw / rows", "GB/s", sum/float64(n), "%s / %s", sum, float64(n)).says("98.414")
}

// paired is a table that has both rates and no times.
func paired() Case {
	c := Case{Title: "all-reduce on 4 H100 by another program, busbw from algbw", Document: docPlaybook, Long: true}
	for _, r := range pairedRates() {
		alg := number(r[1])
		c.Lines = append(c.Lines, line(r[0]+", busbw", "2(n − 1)/n × algbw", "GB/s", 1.5*alg, "1.5 × %s", alg).says(r[2]))
	}
	return c
}

// Sums of the 56 pairs of the document's two matrices of copies between GPUs, in GB/s.
const (
	pairsA100 = 15360.65
	pairsH100 = 21082.51
)

// reached is what applications reach of advertised rates.
func reached(compute float64) Case {
	share := func(name string, got, of float64, printed string) Line {
		return line(name, "reached / advertised", "%", 100*got/of, "100 × %s / %s", got, of).says(printed)
	}
	full := share("all-reduce on A100 over both directions", 235, 600, "40%").but("the advertised figure counts both directions: divide by 300")
	rule := line("the 80% rule at 400 Gb/s", "0.8 × advertised", "Gb/s", advertisedRate*400, "0.8 × 400").says("320Gbps")
	rule.Note = fmt.Sprintf("2B parameters then take %s s, still less than %s s of compute", Figure(128/(advertisedRate*400)), Figure(compute))
	return Case{Title: "what is reached", Document: docNetworking, Lines: []Line{
		line("MFU: A100 in half precision", "reached / peak", "", 156/312.0, "156 / 312").says("0.5"),
		full,
		share("all-reduce on A100 over one direction", 235, 300, "80%").but("78.3, and the document's second table has 78"),
		share("all-reduce on A100, one direction", 234.89, 300, "78%"),
		line("copies between A100s, mean of the matrix", "sum of all pairs / pairs", "GB/s", pairsA100/56, "%s / 56", pairsA100).says("274 GBps"),
		line("copies between H100s, mean of the matrix", "sum of all pairs / pairs", "GB/s", pairsH100/56, "%s / 56", pairsH100).says("376GBps"),
		share("copies between A100s", 274, 300, "91%"),
		share("copies between H100s", 376, 450, "83%").but("83.6; the document cuts"),
		share("all-reduce on EFA v1", 340, 400, "").but("the document prints the rates alone"),
		rule,
		line("one all-reduce of 4 GB over 1000 of 4 MB", "ratio of measured rates", "×", 1257.165/374.391, "1257.165 / 374.391").says("3x"),
		line("  sent in both", "calls × GB", "GB", 1000*0.004, "1000 × 0.004").says("4.0GB"),
	}}
}

// gathered is the all-reduce that was measured on one, two and four nodes, as its script counts it: all
// that is sent, over the time.
func gathered() Case {
	c := Case{Title: "GPT-2 Large in bfloat16, all-reduced by 4 A100s (Baskerville)", Document: docBaskerville}
	exact := line("gradients of GPT-2 Large", "2 bytes × parameters", "GB", 2*0.77403008, "2 × 0.774")
	exact.Note = fmt.Sprintf("the document says 700M parameters and 1.32 GB; 2 × 700M are 1.4 GB (%s GiB), and the model has 774M", Figure(1.4e9/(1<<30)))
	exact = exact.says("1.32 GB")
	all := line("sent by 4 GPUs", "gradients × 2 × (n − 1)", "GB", 1.32*2*3, "1.32 × 2 × 3").says("7.9 GB")
	c.Lines = append(c.Lines, exact, line("steps of each phase of a ring", "n − 1", "", 3, "4 − 1").says("three"), all)
	for _, x := range []struct {
		name        string
		rate        float64
		s           string
		differs     string
		fromTime    string
		timeDiffers string
	}{
		{"1 × 4", 875.1, "0.009", "", "875.1", "its time has fewer digits than its rate"},
		{"2 × 2", 25.6, "0.309", "", "25.6", ""},
		{"4 × 1", 50.0, "0.158", "", "50.0", "its time has fewer digits than its rate"},
		{"1 × 4, ring", 922.4, "0.009", "", "922.4", "its time has fewer digits than its rate"},
		{"1 × 4, tree", 606.6, "0.013", "", "606.6", "its time has fewer digits than its rate"},
		{"2 × 2, ring", 13.5, "0.584", "its rate has fewer digits than its time", "13.5", "the document cuts 13.56"},
		{"2 × 2, tree", 25.6, "0.309", "", "25.6", ""},
		{"4 × 1, ring", 53.9, "0.158", "the rate and the time of this row contradict each other; the time is that of the run without a setting, written three times", "53.9", "see the time from the rate"},
		{"4 × 1, tree", 45.0, "0.158", "the rate and the time of this row contradict each other; the time is that of the run without a setting, written three times", "45.0", "see the time from the rate"},
	} {
		t := line(x.name+", time from the rate", "sent / rate", "s", all.Value/x.rate, "%s / %s", all.Value, x.rate).says(x.s)
		if x.differs != "" {
			t = t.but(x.differs)
		}
		r := line(x.name, "sent / time", "GB/s", all.Value/number(x.s), "%s / %s", all.Value, number(x.s)).says(x.fromTime)
		if x.timeDiffers != "" {
			r = r.but(x.timeDiffers)
		}
		c.Lines = append(c.Lines, t, r)
	}
	c.Lines = append(c.Lines, line("ring on 4 × 1 over ring on 2 × 2", "ratio of rates", "×", 53.9/13.5, "53.9 / 13.5").says("four times"),
		line("tree over ring on 2 × 2", "ratio of rates", "×", 25.6/13.5, "25.6 / 13.5").but("the document: the tree sends half as much through the shared NIC"))
	return c
}

// epochs are the measured epochs of training.
func epochs() Case {
	return Case{Title: "epochs of GPT-2 Large (Baskerville)", Document: docBaskerville, Lines: []Line{
		line("epoch on 2 × 2 over 1 × 4", "ratio", "×", 895.85/135.42, "895.85 / 135.42"),
		line("epoch on 4 × 1 over 1 × 4", "ratio", "×", 251.68/135.42, "251.68 / 135.42").says("almost double"),
		line("epoch on 2 × 2 over 4 × 1", "ratio", "×", 895.85/251.68, "895.85 / 251.68"),
	}}
}

// machine is Baskerville itself.
func machine() Case {
	return Case{Title: "Baskerville", Document: docBaskerville, Lines: []Line{
		line("nodes", "with 80 GB + with 40 GB", "", 11+46, "11 + 46").says("57"),
		line("memory of a node", "modules × GB", "GB", 16*32, "16 × 32").says("512GB"),
		line("its InfiniBand port", "links × Gb/s", "Gb/s", 4*50, "4 × 50").says("200Gbps"),
		line("  in bytes", "Gb/s / 8", "GB/s", 25, "200 / 8"),
		line("GPUs that share it", "GPUs / NICs", "", 4, "4 / 1"),
	}}
}
