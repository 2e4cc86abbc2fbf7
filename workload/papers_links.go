package workload

import "fmt"

// lanes are links inside a node, one direction.
func lanes() Case {
	c := Case{Title: "links, one direction", Document: docNetworking}
	add := func(l ...Line) { c.Lines = append(c.Lines, l...) }
	both := func(l Line, printed string) Line {
		return line("  both directions", "2 × one direction", "GB/s", 2*l.Value, "2 × %s", l.Value).says(printed)
	}
	link := line("a link of NVLink 2 to 4", "lanes × rate of a lane", "GB/s", 4*6.25, "4 × 6.25").says("25GB/s")
	add(link, both(link, "50GB/s"))
	for _, x := range []struct {
		name      string
		links     float64
		one, both string
	}{{"NVLink 2", 6, "150 GBps", "300 GBps"}, {"NVLink 3", 12, "300 GBps", "600 GBps"}, {"NVLink 4", 18, "450 GBps", "900 GBps"}} {
		l := line(x.name, "links × lanes × rate of a lane", "GB/s", x.links*4*6.25, "%s × 4 × 6.25", x.links).says(x.one)
		add(l, both(l, x.both))
	}
	for _, x := range []struct {
		name        string
		links, rate float64
		one, both   string
	}{{"xGMI of MI250X", 7, 50, "350 GBps", "700 GBps"}, {"xGMI of MI300X", 7, 64, "448 GBps", "896 GBps"}} {
		l := line(x.name, "links × rate", "GB/s", x.links*x.rate, "%s × %s", x.links, x.rate).says(x.one)
		add(l, both(l, x.both))
	}
	add(
		line("Gaudi2 inside a node", "NICs × Gb/s / 8", "GB/s", 21*100/8.0, "21 × 100 / 8").says("262.5 GBps"),
		line("  in bits", "NICs × Gb/s / 1000", "Tb/s", 2.1, "21 × 100 / 1000").says("2.1Tbps"),
		line("NVLink 4 over PCIe 5", "ratio", "×", 450/63.0, "450 / 63").says("7x"),
		line("NVLinks of a DGX H100's switches", "links × switches", "", 18*4, "18 × 4").says("72"),
		line("  their rate, both directions", "TB/s of a GPU × switches", "TB/s", 0.9*4, "0.9 × 4").says("3.6 TBps"),
		line("NVLinks of a DGX A100's switches", "switches × links", "", 6*12, "6 × 12").says("72"),
		line("GPUs of a DGX H100 SuperPOD", "servers × GPUs", "", 32*8, "32 × 8").says("256 GPUs"),
		line("  NVLink of a server in it", "half of 3.6 TB/s", "TB/s", 3.6/2, "3.6 / 2").says("1.8 GBps").but("the document prints GBps; the figures are TB/s"),
		line("  of all servers", "servers × TB/s", "TB/s", 32*1.8, "32 × 1.8").says("57.6 GBps").but("the document prints GBps; the figures are TB/s"),
	)
	return c
}

// pcie are slots of sixteen lanes.
func pcie() Case {
	c := Case{Title: "PCIe, sixteen lanes", Document: docNetworking}
	for _, x := range []struct {
		gen             int
		rate            float64 // GT/s of a lane
		code            float64 // of the bits that are data
		said            string
		lane, one, both string
		note            string
	}{
		{4, 16, 128 / 130.0, "128 / 130", "~2.0 GBps", "31 GBps", "62 GBps", "the document cuts 31.5 and doubles that; its table of unidirectional rates has 62.0, which is both directions"},
		{5, 32, 128 / 130.0, "128 / 130", "~4.0 GBps", "63 GBps", "126 GBps", "its table of unidirectional rates has 126.0, which is both directions"},
		{6, 64, 242 / 256.0, "242 / 256", "~7.5 GBps", "121 GBps", "241 GBps", "the document prints 241"},
		{7, 128, 242 / 256.0, "242 / 256", "~15.0 GBps", "242 GBps", "484 GBps", ""},
	} {
		lane := x.rate * x.code / 8
		name := fmt.Sprintf("PCIe %d", x.gen)
		a := line(name+", a lane", "GT/s × code / 8", "GB/s", lane, "%s × "+x.said+" / 8", x.rate).says(x.lane)
		b := line(name, "lanes × rate of a lane", "GB/s", 16*lane, "16 × %s", lane).says(x.one)
		d := line("  both directions", "2 × one direction", "GB/s", 32*lane, "2 × %s", 16*lane).says(x.both)
		if x.note != "" {
			d = d.but(x.note)
		}
		if x.gen == 4 {
			b = b.but("the document cuts 31.5")
		}
		c.Lines = append(c.Lines, a, b, d)
	}
	return c
}

// ports are networks between nodes.
func ports() Case {
	gbit := func(name string, n, each float64, printed string) Line {
		return line(name, "links × Gb/s", "Gb/s", n*each, "%s × %s", n, each).says(printed)
	}
	return Case{Title: "networks of a node, one direction", Document: docNetworking, Lines: []Line{
		line("a GB/s in bits", "GB/s × 8", "Gb/s", 8, "1 × 8").says("8Gbps"),
		line("Gaudi2's NICs across nodes", "ports of a card × cards", "", 3*8, "3 × 8").says("24"),
		gbit("Gaudi2 across nodes", 24, 100, "2400"),
		line("  in Tb/s", "Gb/s / 1000", "Tb/s", 2.4, "2400 / 1000").says("2.4Tbps"),
		gbit("DGX H100 with ConnectX-7", 8, 200, "1.6 Gbps").but("the document prints 1.6 Gbps; 1600 Gb/s are 1.6 Tb/s"),
		gbit("Slingshot", 4, 200, "800Gbps"),
		gbit("EFA v2", 32, 100, "3200").but("32 NICs, each 100 Gb/s"),
		line("  in Tb/s", "Gb/s / 1000", "Tb/s", 3.2, "3200 / 1000").says("3.2 Tbps"),
		line("EFA v1, in Tb/s", "Gb/s / 1000", "Tb/s", 0.4, "400 / 1000").says("0.4 Tbps"),
		gbit("Omni-Path beside MI250", 8, 200, "1600"),
		gbit("Omni-Path beside MI300X", 8, 400, "3200"),
		line("SuperPOD's InfiniBand, a node", "TB/s of all / servers", "TB/s", 25.6/32, "25.6 / 32").says("0.8 TBps").but("both directions"),
		line("  in bits", "TB/s × 8", "Tb/s", 0.8*8, "0.8 × 8").says("6.4Tbps"),
	}}
}

// infiniband is the table of links and rates.
func infiniband() Case {
	c := Case{Title: "InfiniBand, links of a port, one direction", Document: docNetworking}
	for _, x := range []struct {
		name string
		lane float64
	}{{"EDR", 25}, {"HDR", 50}, {"NDR", 100}, {"XDR", 200}, {"GDR", 400}} {
		for _, n := range []float64{1, 4, 8, 12} {
			c.Lines = append(c.Lines, line(fmt.Sprintf("InfiniBand %s × %g", x.name, n), "links × Gb/s", "Gb/s", n*x.lane, "%s × %s", n, x.lane).says(fmt.Sprintf("%g", n*x.lane)))
		}
	}
	return c
}

// nvlink5 is the third document's arithmetic.
func nvlink5() Case {
	share := line("reached of both directions", "busbw / advertised", "%", 100*355.89/900, "100 × 355.89 / 900").says("40%")
	share.Note = fmt.Sprintf("900 counts both directions; of one it is %s%%", Figure(100*355.89/450))
	return Case{Title: "NVLink 5, and four H100 measured", Document: docPlaybook, Lines: []Line{
		line("NVLink 5, both directions", "links × GB/s / 1000", "TB/s", 18*100/1e3, "18 × 100 / 1000").says("1.8 TB/s"),
		line("  each direction", "half", "GB/s", 1800/2, "1800 / 2").says("900 GB/s"),
		share,
		line("a slice of NCCL's P2P transport", "bytes / 1024", "KiB", 524288/1024, "524288 / 1024").says("512KB"),
		average(),
	}}
}
