package report

import (
	"fmt"
	"math"

	"busbar.dev/cluster"
	"busbar.dev/internal/svg"
	"busbar.dev/internal/words"
)

func (g *groupGrid) draw(pic *picture) {
	if g.rows() > 1 && !g.net.empty() {
		g.drawBus(pic)
	}
	for i := range g.groups {
		g.drawGroup(pic, &g.groups[i], &g.out[i])
	}
}

// rows is how many rows of groups there are.
func (g *groupGrid) rows() int { return (len(g.groups) + g.across - 1) / g.across }

// drawBus paints a bar above rows of groups, at which the cables from above end, and what leads from it to each of them.
func (g *groupGrid) drawBus(pic *picture) {
	paint := svg.Paint{Stroke: netViol, Width: unknownStroke, Opacity: 0.75}
	for i := range g.groups {
		b := g.groups[i].box
		x := b.x - g.side()
		if i+g.across >= len(g.groups) { // the last of its column
			pic.Line(x, g.frame.y, x, b.y+g.head/2, paint)
		}
		key, tip := "cables/", "cables of "
		if g.chips {
			key, tip = "uplinks/", "uplinks of "
		}
		pic.Open("link network", tip+g.out[i].Name)
		pic.about(key + g.out[i].ID)
		pic.Line(x, b.y+g.head/2, b.x, b.y+g.head/2, paint)
		pic.Close()
	}
	pic.Rect(g.frame.x, g.frame.y-1.5, g.frame.w, 3, 1.5, svg.Paint{Fill: netViol})
}

// side is how far on the left of a group the line to it runs.
func (g *groupGrid) side() float64 { return math.Min(9, g.gutter/2) }

func (g *groupGrid) drawGroup(pic *picture, x *hostGroup, as *Group) {
	b, c := x.box, g.net.v.c
	tip := as.Name + ": " + words.Plural(len(x.hosts), "node")
	if len(x.leaves) > 0 {
		tip += " behind " + tierCount(len(x.leaves), int(cluster.Leaf))
	}
	pic.Open("pod", tip)
	pic.about("pod/" + as.ID)
	pic.Rect(b.x, b.y, b.w, b.h, 6, svg.Paint{Fill: panelFill, Stroke: panelLine})
	ty := svg.Type{Size: math.Min(g.head*0.52, boxType+1), Fill: ink, Bold: true}
	name := fitList("", hostNames(c, x.hosts), ty, b.w-2*g.pad)
	pic.Text(b.x+g.pad, b.y+g.head*0.7, name, ty)
	note := svg.Type{Size: ty.Size, Fill: inkSoft, Anchor: svg.End}
	if count := words.Plural(len(x.hosts), "node"); svg.TextWidth(name, ty)+svg.TextWidth(count, note)+30 < b.w {
		pic.Text(b.right()-g.pad, b.y+g.head*0.7, count, note)
	}
	pic.Close()
	if g.chips {
		g.drawLeaves(pic, x, as.ID)
	}
	cells := Mark{
		Is: isCells, X: cent(b.x + g.pad), Y: cent(b.y + g.top()), W: g.w, H: g.h, R: 2, Paint: named(svg.Paint{Fill: paper, Stroke: idleLine}),
		Type:  &svg.Type{Size: boxType, Fill: role(ink), Anchor: svg.Middle},
		Cells: &Cells{What: "node", In: as.ID, Hosts: as.Hosts, Cols: g.cols, N: len(hostNames(c, x.hosts)), DX: g.w + g.gap, DY: g.h + g.gap},
	}
	if g.name {
		for _, n := range hostNames(c, x.hosts) {
			cells.Cells.Labels = append(cells.Cells.Labels, svg.FitEnds(n, *cells.Type, g.w-6))
		}
	}
	pic.add(cells)
}

// drawLeaves paints the switches of a group above its nodes.
func (g *groupGrid) drawLeaves(pic *picture, x *hostGroup, id string) {
	if len(x.leaves) == 0 {
		return
	}
	c := g.net.v.c
	n := float64(len(x.leaves))
	gap := math.Min(3, g.gap)
	w := (x.box.w - 2*g.pad - gap*(n-1)) / n
	ty := svg.Type{Size: smallType, Fill: role(ink), Anchor: svg.Middle}
	m := Mark{
		Is: isCells, X: cent(x.box.x + g.pad), Y: cent(x.box.y + g.head), W: cent(w), H: g.chip, R: 3, Type: &ty, Paint: named(svg.Paint{Fill: netFill, Stroke: netViol}),
		Cells: &Cells{What: "switch", In: id, Names: switchNames(c, x.leaves), Cols: len(x.leaves), N: len(x.leaves), DX: cent(w + gap)},
	}
	if g.chip > 10 {
		for _, id := range x.leaves {
			sw := &c.Network.Switches[id]
			label := sw.Name
			if svg.TextWidth(label, ty) > w-4 {
				if label = ""; sw.Rail >= 0 && w > 14 {
					label = fmt.Sprintf("r%d", sw.Rail)
				}
			}
			m.Cells.Labels = append(m.Cells.Labels, label)
		}
	}
	pic.add(m)
}

func (g *groupGrid) captions() []caption {
	list := g.row.captions()
	list[0].y = g.frame.y + math.Min(20, g.frame.h/2)
	if g.leaves.text != nil {
		list[0].y = g.leaves.y + 14*float64(len(g.leaves.text)+2)
		list = append(list, g.leaves)
	}
	return list
}
