package report

import (
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/internal/svg"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// drawUplink paints the NVSwitches of a tray and their links to the second level.
func (r *rack) drawUplink(pic *picture, tr *tray, bar box, x1, x2 float64) {
	for i := range r.fast {
		s := &r.fast[i]
		if s.via < 0 || len(tr.gpus) == 0 || !slices.Contains(s.gpus, tr.gpus[0]) {
			continue
		}
		for _, k := range r.second {
			l := &r.t.Links[k]
			if l.A != s.via && l.B != s.via {
				continue
			}
			y := bar.y + bar.h/2
			pic.Open("link "+l.Kind.String(), linkTip(r.t, l))
			pic.about(linkKey(r.host, k))
			if tr.box.x > r.column.x {
				pic.Line(x1, y, bar.x, y, linkPaint(l))
			} else {
				pic.Line(bar.right(), y, x2, y, linkPaint(l))
			}
			pic.Close()
		}
		pic.Open("nvswitch", "NVSwitch")
		pic.about(deviceKey(r.host, r.t, s.via))
		pic.Rect(bar.x, bar.y, bar.w, bar.h, 5, svg.Paint{Fill: nvGreen})
		pic.Text(bar.mid(), bar.y+bar.h/2+3.5, "NVSwitch", svg.Type{Size: 10, Fill: onBar, Anchor: svg.Middle})
		pic.Close()
	}
}

// columnText says what the column is: the NVSwitches that all GPUs hang on, or the
// second level of those that join trays.
func (r *rack) columnText() []string {
	var text []string
	rates := func(lanes int, rate cluster.Fact[unit.Rate], duplex unit.Rate, per string) {
		if lanes > 0 {
			text = append(text, words.Plural(lanes, "link")+" per "+per)
		}
		if rate.Known() {
			text = append(text, rate.Value.String()+" per "+per, "one direction")
		}
		if duplex > 0 {
			text = append(text, "("+duplex.String()+" duplex)")
		}
	}
	if len(r.second) > 0 {
		l := &r.t.Links[r.second[0]]
		text = []string{"NVSwitch", "second level"}
		rates(l.Lanes, l.Rate, l.Duplex, "tray")
		text = append(text, "", "in a tray:")
	}
	for i := range r.fast {
		s := &r.fast[i]
		if s.via < 0 || len(s.bundles) == 0 || len(r.second) > 0 && i > 0 {
			continue
		}
		if len(r.second) == 0 {
			text = append(text, "NVSwitch")
		}
		text = append(text, s.name, words.Plural(len(s.gpus), "GPU"))
		rates(s.bundles[0].lanes, s.bundles[0].rate, s.bundles[0].duplex, "GPU")
	}
	return text
}

func (r *rack) drawColumn(pic *picture) {
	b := r.column
	pic.Open("nvswitch", "NVSwitch")
	if len(r.second) > 0 {
		pic.about(deviceKey(r.host, r.t, r.t.Links[r.second[0]].B))
	} else if at := slices.IndexFunc(r.fast, func(s fast) bool { return s.via >= 0 }); at >= 0 {
		pic.about(deviceKey(r.host, r.t, r.fast[at].via))
	}
	pic.Rect(b.x, b.y, b.w, b.h, 8, svg.Paint{Fill: nvGreen})
	text := r.columnText()
	text = text[:max(min(len(text), int(b.h/20)-1), 0)]
	y := b.y + b.h/2 - float64(len(text))*10 + 14
	for i, s := range text {
		ty := svg.Type{Size: 13, Fill: onBar, Anchor: svg.Middle, Bold: i == 0}
		if i == 0 {
			ty.Size = 17
		}
		pic.Text(b.mid(), y, svg.Fit(s, ty, b.w-8), ty)
		y += 20
	}
	pic.Close()
}
