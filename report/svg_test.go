package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/svg"
)

// shape is a rectangle, line or text of a picture, with the class of its group.
type shape struct {
	kind, class string
	box         box
	text        string
}

// shapes reads a picture back. Of several boxes in one group (a pile) only the
// last, which lies on top, counts.
func shapes(t *testing.T, data []byte) (all []shape, w, h float64) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(data))
	var classes []string
	lastRect := map[int]int{} // depth → index of the group's box
	var open *shape
	for {
		tok, err := d.Token()
		if err == io.EOF {
			return all, w, h
		}
		if err != nil {
			t.Fatalf("the picture is not well formed: %v", err)
		}
		switch e := tok.(type) {
		case xml.StartElement:
			a := attrs(e)
			s := shape{kind: e.Name.Local}
			if len(classes) > 0 {
				s.class = classes[len(classes)-1]
			}
			switch e.Name.Local {
			case "svg":
				w, h = a.num("width"), a.num("height")
			case "g":
				classes = append(classes, a["class"])
				delete(lastRect, len(classes))
			case "rect":
				s.box = box{a.num("x"), a.num("y"), a.num("width"), a.num("height")}
				if k, ok := lastRect[len(classes)]; ok && s.class != "legend" && s.class != "" {
					all[k].kind = "below"
				}
				lastRect[len(classes)] = len(all)
				all = append(all, s)
			case "line":
				x1, x2, y1, y2 := a.num("x1"), a.num("x2"), a.num("y1"), a.num("y2")
				s.box = box{math.Min(x1, x2), math.Min(y1, y2), math.Abs(x2 - x1), math.Abs(y2 - y1)}
				all = append(all, s)
			case "path":
				all = append(all, s)
			case "text":
				s.box = box{a.num("x"), a.num("y"), 0, a.num("font-size")}
				s.kind = "text " + a["text-anchor"] + " " + a["font-weight"]
				open = &s
			}
		case xml.CharData:
			if open != nil {
				open.text += string(e)
			}
		case xml.EndElement:
			switch e.Name.Local {
			case "g":
				classes = classes[:len(classes)-1]
			case "text":
				all = append(all, setText(*open))
				open = nil
			}
		}
	}
}

type attrMap map[string]string

func attrs(e xml.StartElement) attrMap {
	m := make(attrMap)
	for _, a := range e.Attr {
		m[a.Name.Local] = a.Value
	}
	return m
}

func (m attrMap) num(k string) float64 {
	v, _ := strconv.ParseFloat(m[k], 64)
	return v
}

// setText turns the point of a text into the room it takes.
func setText(s shape) shape {
	ty := svg.Type{Size: s.box.h, Bold: strings.HasSuffix(s.kind, "bold")}
	w := svg.TextWidth(s.text, ty) / 1.1 // as Helvetica sets it
	switch {
	case strings.Contains(s.kind, "middle"):
		s.box.x -= w / 2
	case strings.Contains(s.kind, "end"):
		s.box.x -= w
	}
	s.box = box{s.box.x, s.box.y - 0.75*ty.Size, w, 0.8 * ty.Size}
	s.kind = "text"
	return s
}

func (b box) holds(o box) bool {
	return o.x >= b.x && o.right() <= b.right() && o.y >= b.y && o.bottom() <= b.bottom()
}

// checkPicture holds a picture to what a person would notice: everything lies on
// the canvas, no text runs over the edge of a box or over another text, no link
// of the PCIe tree runs through a box.
func checkPicture(t *testing.T, name string, data []byte) map[string]int {
	t.Helper()
	all, w, h := shapes(t, data)
	count := make(map[string]int)
	canvas := box{0, 0, w, h}
	var rects, texts []shape
	for i, s := range all {
		if i == 0 {
			continue // the background
		}
		if s.kind == "rect" {
			rects = append(rects, s)
			count[s.class]++
		}
		if s.kind == "text" {
			texts = append(texts, s)
		}
		if s.kind != "path" && !canvas.holds(s.box) {
			t.Errorf("%s: %s %q at %v is off the canvas of %v × %v", name, s.kind, s.class+s.text, s.box, w, h)
		}
	}
	for i, s := range texts {
		for _, r := range rects {
			if r.box.overlaps(s.box) && !r.box.holds(s.box) {
				t.Errorf("%s: text %q at %v runs over the edge of a box (%s) at %v", name, s.text, s.box, r.class, r.box)
			}
		}
		for _, o := range texts[i+1:] {
			if s.box.overlaps(o.box) {
				t.Errorf("%s: texts %q and %q overlap", name, s.text, o.text)
			}
		}
	}
	for _, l := range all {
		if l.kind != "line" || !strings.HasPrefix(l.class, "link pcie") {
			continue
		}
		inner := box{l.box.x - 0.5, l.box.y + 1.5, l.box.w + 1, l.box.h - 3}
		for _, r := range rects {
			if strings.Contains(" gpu nic pci numa switch host ", " "+strings.Fields(r.class + " ?")[0]+" ") &&
				r.box.overlaps(inner) {
				t.Errorf("%s: a link at %v runs through a box (%s) at %v", name, l.box, r.class, r.box)
			}
		}
	}
	return count
}

func draw(t *testing.T, c *cluster.Cluster) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Drawing(c).SVG(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSVG(t *testing.T) {
	for name, want := range map[string]map[string]int{
		"dgx-h100-2": {
			"node": 1, "host devices": 2, "gpu": 24, "nic": 24, "pci": 8, "root": 8, "numa": 2, "socket": 2, "nvswitch": 1,
			"switch leaf": 8,
		},
		"dgx-h100-16":   {"node": 1, "gpu": 8, "nic": 8, "pod": 1, "switch leaf": 8, "switch spine": 4},
		"baskerville-2": {"node": 1, "gpu": 12, "nic shared": 1, "nic": 2, "nvswitch": 0, "switch leaf": 1},
		"dgx-1v":        {"node": 1, "gpu": 8, "nic shared": 4, "pci": 4},
		"gb200-nvl72":   {"node": 1, "tray": 18, "gpu": 72, "numa": 36, "nic": 72, "nvswitch": 1},
		"two-levels":    {"node": 1, "tray": 4, "gpu": 16, "nvswitch": 5},
		"nvl72-4":       {"node": 1, "tray": 18, "pod": 1, "gpu": 72},
		"fabric":        {"pod": 4, "switch leaf": 4, "switch spine": 2, "node": 0},
		"fabric-wide":   {"node": 0, "switch spine": 10},
		"no-network":    {"node": 1, "cloud": 1},
		"sick":          {"node": 2, "gpu": 12, "switch leaf": 8},
		"empty":         {"node": 0},
		"type-only":     {"node": 1, "gpu": 8},
	} {
		pic := draw(t, shown()[name])
		got := checkPicture(t, name, pic)
		for class, n := range want {
			if got[class] != n {
				t.Errorf("%s: %d boxes of class %q, want %d (%v)", name, got[class], class, n, got)
			}
		}
	}
	golden(t, "baskerville-2.svg", draw(t, shown()["baskerville-2"]))
	golden(t, "fabric.svg", draw(t, shown()["fabric"]))
}

func TestSVGShowsWhatIsWrong(t *testing.T) {
	pic := string(draw(t, sick()))
	for _, want := range []string{
		"stroke-dasharray", "x8 of", "16 of 32", "shared", "4 GPUs, 3 NICs", "PCIe tree assumed", "down",
	} {
		if !strings.Contains(pic, want) {
			t.Errorf("no %q in the picture", want)
		}
	}
}

// TestSlowCableIsMarked slows one cable of a fabric of equal ones.
func TestSlowCableIsMarked(t *testing.T) {
	c := fabric(16, 4, 2)
	if n := checkPicture(t, "equal", draw(t, c))["label"]; n != 0 {
		t.Errorf("%d labels on cables of a fabric in order", n)
	}
	c.Network.Links[9].Rate.Value /= 4
	c.Network.Links[20].State = cluster.Down
	pic := draw(t, c)
	if n := checkPicture(t, "one slow, one down", pic)["label"]; n != 2 {
		t.Errorf("%d labels, want 2", n)
	}
	for _, want := range []string{">50 Gb/s<", ">down<"} {
		if !bytes.Contains(pic, []byte(want)) {
			t.Errorf("no %s in the picture", want)
		}
	}
}

func TestSVGOfEveryPreset(t *testing.T) {
	for _, p := range hardware.Presets() {
		counts := []int{1, 2, 40}
		switch {
		case p.GPUs == 1:
			counts = counts[:1] // a bare GPU, all of which look alike
		case p.GPUs > 16:
			counts = counts[:2]
		}
		for _, n := range counts {
			c, err := hardware.Preset(p.Name, n)
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("%s:%d", p.Name, n)
			got := checkPicture(t, name, draw(t, c))
			if got["gpu"] == 0 || got["node"]+got["node rack"] == 0 {
				t.Errorf("%s: no node or no GPU is drawn: %v", name, got)
			}
			want := p.GPUs
			if trays := c.Types[0].Trays; trays > maxTrays {
				want = 4 * p.GPUs / trays
			}
			if n == 1 && got["gpu"] != want {
				t.Errorf("%s: %d GPUs drawn, want %d", name, got["gpu"], want)
			}
			if n > 1 {
				continue // the node itself is the same
			}
			for what, show := range map[string]func(io.Writer, *cluster.Cluster) error{
				"matrix": Matrix,
				"text":   func(w io.Writer, c *cluster.Cluster) error { return Text(w, c, TextOptions{}) },
			} {
				if err := show(io.Discard, c); err != nil {
					t.Errorf("%s as %s: %v", name, what, err)
				}
			}
		}
	}
}
