package report

import (
	"math"

	"busbar.dev/internal/svg"
)

// Scene is a drawing of a cluster or of one of its nodes: where everything stands, how it looks and what it is about.
// The SVG writer and the page draw the same scene; nobody else computes positions. Coordinates grow to the right and
// downwards, one unit is a pixel at the natural size.
type Scene struct {
	Title  string  `json:"title"`
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
	Marks  []Mark  `json:"marks"`
	// Groups are the nodes that hang on the same switches, where nodes are drawn as cells.
	Groups []Group `json:"groups,omitempty"`
	// Legend explains the kinds of links and boxes that the scene has.
	Legend []Sample `json:"legend,omitempty"`
}

// Mark is one element of a scene. Is says which: a rect, line, path or text has a place and a look; a group holds marks
// that belong together; cells are many equal boxes in rows.
type Mark struct {
	Is    string   `json:"is"`
	Class string   `json:"class,omitempty"` // group: what it is, such as gpu or switch leaf
	Tip   string   `json:"tip,omitempty"`   // group: for those who point at it
	Key   string   `json:"key,omitempty"`   // group: the thing that it stands for, such as device/node0/gpu0
	Names []string `json:"names,omitempty"` // group: the switches or devices it stands for, where those are several
	Marks []Mark   `json:"marks,omitempty"` // group: painted in this order

	X  float64 `json:"x,omitempty"`
	Y  float64 `json:"y,omitempty"`
	W  float64 `json:"w,omitempty"`
	H  float64 `json:"h,omitempty"`
	R  float64 `json:"r,omitempty"`  // rect, cells: radius of corners
	X2 float64 `json:"x2,omitempty"` // line: where it ends
	Y2 float64 `json:"y2,omitempty"`
	D  string  `json:"d,omitempty"` // path: as SVG writes it

	Text  string     `json:"text,omitempty"`
	Type  *svg.Type  `json:"type,omitempty"`
	Paint *svg.Paint `json:"paint,omitempty"`
	Cells *Cells     `json:"cells,omitempty"`
}

// Names of marks.
const (
	isRect  = "rect"
	isLine  = "line"
	isPath  = "path"
	isText  = "text"
	isGroup = "group"
	isCells = "cells"
)

// Cells are equal boxes, the first of which is at the place and of the size of their mark, row by row.
type Cells struct {
	What   string   `json:"what"`             // node or switch
	In     string   `json:"in"`               // the group that they belong to
	Hosts  string   `json:"hosts,omitempty"`  // the nodes, as a hostlist
	Names  []string `json:"names,omitempty"`  // the switches
	Labels []string `json:"labels,omitempty"` // of each, where there is room for words
	Cols   int      `json:"cols"`             // in a row
	N      int      `json:"n"`                // in all
	DX     float64  `json:"dx"`               // from one to the next
	DY     float64  `json:"dy"`
}

// at is the place of a cell.
func (m *Mark) at(i int) box {
	c := m.Cells
	return box{m.X + float64(i%c.Cols)*c.DX, m.Y + float64(i/c.Cols)*c.DY, m.W, m.H}
}

// Group is nodes that hang on the same switches, drawn as a box with a cell for each.
type Group struct {
	ID     string   `json:"id"`
	Name   string   `json:"name"`
	Hosts  string   `json:"hosts"` // a hostlist
	Leaves []string `json:"leaves,omitempty"`
	X      float64  `json:"x"`
	Y      float64  `json:"y"`
	W      float64  `json:"w"`
	H      float64  `json:"h"`
}

// palette gives the colours of a scene names, so that a page can have others in the dark.
var palette = map[string]string{
	"paper": paper, "ink": ink, "soft": inkSoft, "panel": panelFill, "panel-line": panelLine,
	"nvlink": nvGreen, "gpu": nvFill, "pcie": pcieBlue, "pci": pcieFill, "net": netViol, "nic": netFill,
	"smp": smpBrown, "numa": cpuFill, "numa-line": cpuLine, "xgmi": xgmiTeal, "c2c": c2cOlive, "socket": sockFill,
	"shared": amberBg, "shared-line": amber, "shared-ink": amberInk, "wrong": redBg, "wrong-line": red,
	"idle": idleFill, "idle-line": idleLine, "cloud": cloudFill, "tray-line": trayLine, onBar: paper,
}

var roles = func() map[string]string {
	m := make(map[string]string, len(palette))
	for role, hex := range palette {
		if role != onBar {
			m[hex] = role
		}
	}
	return m
}()

// role is the name of a colour in a scene.
func role(color string) string {
	if r, ok := roles[color]; ok {
		return r
	}
	return color
}

// picture is a scene by itself, in the colours for paper.
func (s *Scene) picture() *svg.Picture {
	c := &svg.Canvas{}
	drawMarks(c, s.Marks)
	return c.Picture(s.Width, s.Height, s.Title, paper)
}

func drawMarks(c *svg.Canvas, list []Mark) {
	for i := range list {
		m := &list[i]
		switch m.Is {
		case isGroup:
			c.Open(m.Class, m.Tip)
			drawMarks(c, m.Marks)
			c.Close()
		case isRect:
			c.Rect(m.X, m.Y, m.W, m.H, m.R, printColours(m.Paint))
		case isLine:
			c.Line(m.X, m.Y, m.X2, m.Y2, printColours(m.Paint))
		case isPath:
			c.Path(m.D, printColours(m.Paint))
		case isText:
			ty := *m.Type
			ty.Fill = palette[ty.Fill]
			c.Text(m.X, m.Y, m.Text, ty)
		case isCells:
			drawCells(c, m)
		}
	}
}

// drawCells paints each cell with its label.
func drawCells(c *svg.Canvas, m *Mark) {
	for i := range m.Cells.N {
		b := m.at(i)
		c.Rect(b.x, b.y, b.w, b.h, m.R, printColours(m.Paint))
		if m.Cells.Labels != nil {
			ty := *m.Type
			ty.Fill = palette[ty.Fill]
			c.Text(b.mid(), b.y+b.h/2+ty.Size*0.36, m.Cells.Labels[i], ty)
		}
	}
}

func printColours(p *svg.Paint) svg.Paint {
	q := *p
	q.Fill, q.Stroke = palette[q.Fill], palette[q.Stroke]
	return q
}

// cent rounds a coordinate to what a picture shows of it.
func cent(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return math.Round(v*100) / 100
}
