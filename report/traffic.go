package report

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"busbar.dev/doctor/traffic"
	"busbar.dev/internal/svg"
	"busbar.dev/internal/words"
)

// Measures of the picture of a run's traffic.
const (
	trafficW      = 1280.0
	trafficPad    = 24.0
	maxHostCards  = 16
	maxRingStrips = 16
	maxTrees      = 12
	trafficGPU    = 62.0 // a GPU and the room around it
	arcH          = 44.0
	wireH         = 46.0
	trafficNICH   = 74.0
	cardH         = 30 + arcH + 32 + wireH + trafficNICH + 12
)

// trafficView is a run with what its parts have in common.
type trafficView struct {
	*traffic.Run
	c     *svg.Canvas
	most  float64  // load of the busiest NIC
	short []string // names of hosts
	tree  bool     // no ring leaves a host: loads are those of trees
	// hops finds a ring's hop by channel and ranks.
	hops map[[3]int]int
}

// Traffic draws a communicator on its hosts: which GPUs talk, through which NIC,
// how much passes each, its rings and its trees, and what is odd.
func Traffic(r *traffic.Run) *svg.Picture {
	v := newTrafficView(r)
	y := v.heading()
	y = v.cards(y)
	y = v.rings(y)
	y = v.trees(y)
	y = v.oddities(y)
	return v.c.Picture(trafficW, y+10, "traffic of "+words.Plural(r.NRanks, "rank")+" on "+words.Plural(len(r.Hosts), "host"), paper)
}

func newTrafficView(r *traffic.Run) *trafficView {
	v := &trafficView{Run: r, c: &svg.Canvas{}, tree: true}
	names := make([]string, len(r.Hosts))
	for i := range r.Hosts {
		names[i] = r.Hosts[i].Name
	}
	v.short = shortNames(names)
	for i := range r.NICs {
		if n := &r.NICs[i]; n.Ring.Out > 0 || n.Ring.In > 0 {
			v.tree = false
		}
	}
	for i := range r.NICs {
		l := v.load(i)
		v.most = math.Max(v.most, math.Max(l.Out, l.In))
	}
	return v
}

// load is a NIC's traffic by the ring, or by the tree where no ring leaves a host.
func (v *trafficView) load(nic int) traffic.Load {
	if v.tree {
		return v.NICs[nic].Tree
	}
	return v.NICs[nic].Ring
}

// what is how large the communicator is, and how much of it the log shows.
func (v *trafficView) what() string {
	seen := fmt.Sprintf(" on %s", words.Plural(len(v.Hosts), "host"))
	if n := len(v.Unseen); n > 0 {
		seen = fmt.Sprintf(", %d of them on %s in the log", v.NRanks-n, words.Plural(len(v.Hosts), "host"))
	}
	return fmt.Sprintf("%s%s, %s", words.Plural(v.NRanks, "rank"), seen, words.Plural(len(v.Channels), "channel"))
}

// heading says what is drawn and what the marks mean.
func (v *trafficView) heading() float64 {
	big := svg.Type{Size: 19, Bold: true, Fill: ink}
	title := v.what()
	v.c.Text(trafficPad, 34, svg.Fit("Traffic of an all-reduce: "+title, big, trafficW-2*trafficPad), big)
	soft := svg.Type{Size: 12, Fill: inkSoft}
	v.c.Text(trafficPad, 55, svg.Fit(strings.Join(v.facts(), " · "), soft, trafficW-2*trafficPad), soft)
	x := trafficPad
	key := func(text string, draw func(x float64)) {
		draw(x)
		v.c.Text(x+30, 76, text, svg.Type{Size: 11, Fill: inkSoft})
		x += 30 + svg.TextWidth(text, svg.Type{Size: 11}) + 18
	}
	mark := func(color, dash string) func(float64) {
		return func(x float64) { v.c.Line(x, 72, x+24, 72, svg.Paint{Stroke: color, Width: 2.5, Dash: dash}) }
	}
	key("P2P between GPUs", mark(nvGreen, ""))
	if v.uses("SHM") {
		key("through host memory (SHM)", mark(amber, ""))
	}
	if len(v.NICs) > 0 {
		if v.net(true) {
			key("to the NIC, GPUDirect RDMA", mark(netViol, ""))
		}
		if v.net(false) {
			key("to the NIC through host memory", mark(red, "2 3"))
		}
		if v.proxied() {
			key("through another GPU's NIC (PXN)", mark(netViol, "6 3"))
		}
		what := "ring"
		if v.tree {
			what = "tree"
		}
		key("bars: bytes out and in per byte of the all-reduce ("+what+"); outlined: the busiest", func(x float64) {
			v.c.Rect(x, 65, 24, 12, 2, svg.Paint{Fill: amberBg, Stroke: amber, Width: 1.5})
		})
	}
	return 96
}

func (v *trafficView) uses(transport string) bool {
	for i := range v.Hops {
		if v.Hops[i].Transport == transport {
			return true
		}
	}
	return false
}

// net reports whether a hop over the network has GPUDirect RDMA, or has none.
func (v *trafficView) net(gdr bool) bool {
	for i := range v.Hops {
		if v.Hops[i].Transport == "NET" && v.Hops[i].GDR == gdr {
			return true
		}
	}
	return false
}

func (v *trafficView) proxied() bool {
	for i := range v.Hops {
		if v.Hops[i].Proxy >= 0 {
			return true
		}
	}
	return false
}

// facts are the few words below a title.
func (v *trafficView) facts() []string {
	list := []string{filepath.Base(v.Source)}
	if v.NCCL != "" {
		list = append(list, "NCCL "+v.NCCL)
	}
	if v.Comm != "" {
		list = append(list, "communicator "+v.Comm)
	}
	for i, t := range v.Transports {
		if i == 4 {
			break
		}
		list = append(list, fmt.Sprintf("%s %s", words.Plural(t.Hops, "hop"), t.Via))
	}
	return list
}

// oddities lists what is worth a look.
func (v *trafficView) oddities(y float64) float64 {
	if len(v.Odd) == 0 {
		return y
	}
	y = v.section(y, "Noteworthy", "")
	for i, o := range v.Odd {
		if i == 12 {
			break
		}
		for k, line := range svg.Wrap(o.Text, svg.Type{Size: 12}, trafficW-2*trafficPad-20, 2) {
			if k == 0 {
				v.c.Circle(trafficPad+5, y+1, 2.5, svg.Paint{Fill: amber})
			}
			v.c.Text(trafficPad+16, y+5, line, svg.Type{Size: 12, Fill: ink})
			y += 18
		}
	}
	return y
}

// section writes a heading inside the picture.
func (v *trafficView) section(y float64, title, tail string) float64 {
	y += 26
	v.c.Text(trafficPad, y, title, svg.Type{Size: 14, Bold: true, Fill: ink})
	v.c.Text(trafficPad+svg.TextWidth(title, svg.Type{Size: 14, Bold: true})+10, y, svg.Fit(tail, svg.Type{Size: 12}, 900), svg.Type{Size: 12, Fill: inkSoft})
	return y + 18
}

// hostFills tell hosts apart; they come again when there are more.
var hostFills = []string{
	"#cfe3f7", "#fbe0c3", "#d6ecc9", "#e6d8f5", "#fbd5d5", "#d2efee", "#f4ebb6", "#e0e0e0",
	"#b9cfee", "#f3c9a3", "#bfe0ad", "#d3bfec", "#f3bcbc", "#b5e0dc", "#e6d98a", "#c9c9c9",
}

func hostFill(i int) string {
	if i < 0 {
		return "#f4f4f4"
	}
	return hostFills[i%len(hostFills)]
}
