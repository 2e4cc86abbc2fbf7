package svg

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"strings"
	"testing"
)

// pixels draws a picture of 40 by 40 units, two pixels each.
func pixels(t *testing.T, draw func(*Canvas)) image.Image {
	t.Helper()
	var c Canvas
	draw(&c)
	var b bytes.Buffer
	if err := c.Picture(40, 40, "", "#ffffff").PNG(&b); err != nil {
		t.Fatal(err)
	}
	m, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if s := m.Bounds().Size(); s != (image.Point{80, 80}) {
		t.Fatalf("size %v", s)
	}
	return m
}

// Shapes cover what they should and nothing beside it. Points are in units.
func TestPixels(t *testing.T) {
	red, white := "#ff0000", "#ffffff"
	for _, c := range []struct {
		name    string
		draw    func(*Canvas)
		in, out [][2]float64
	}{
		{"box", func(c *Canvas) { c.Rect(10, 10, 20, 10, 0, Paint{Fill: red}) }, [][2]float64{{10.3, 10.3}, {29.7, 19.7}}, [][2]float64{{9.7, 15}, {20, 20.3}}},
		{"round corners", func(c *Canvas) { c.Rect(10, 10, 20, 20, 5, Paint{Fill: red}) }, [][2]float64{{20, 10.3}, {12, 12}}, [][2]float64{{10.5, 10.5}, {29.5, 29.5}}},
		{"disc", func(c *Canvas) { c.Circle(20, 20, 10, Paint{Fill: red}) }, [][2]float64{{20, 10.5}, {26.5, 26.5}}, [][2]float64{{28, 28}, {12, 12}}},
		{"outline", func(c *Canvas) { c.Rect(10, 10, 20, 20, 0, Paint{Stroke: red, Width: 2}) }, [][2]float64{{9.3, 9.3}, {10.7, 20}, {30.7, 30.7}}, [][2]float64{{20, 20}, {8.5, 20}}},
		{"line", func(c *Canvas) { c.Line(5, 20, 35, 20, Paint{Stroke: red, Width: 4}) }, [][2]float64{{5.3, 18.3}, {34.7, 21.7}}, [][2]float64{{4.7, 20}, {20, 22.3}}},
		{"dashes", func(c *Canvas) { c.Line(0, 20, 40, 20, Paint{Stroke: red, Width: 4, Dash: "10 5"}) }, [][2]float64{{5, 20}, {20, 20}, {35, 20}}, [][2]float64{{12.5, 20}, {27.5, 20}}},
		{"round ends", func(c *Canvas) { c.Line(10, 20, 30, 20, Paint{Stroke: red, Width: 8, Round: true}) }, [][2]float64{{7, 20}, {33, 20}}, [][2]float64{{6.5, 16.5}, {5.5, 20}}},
		{"path", func(c *Canvas) {
			c.Path(new(Pen).Move(20, 5).Line(35, 35).Line(5, 35).Shut().String(), Paint{Fill: red})
		}, [][2]float64{{20, 10}, {8, 34}}, [][2]float64{{10, 10}, {30, 10}}},
		{"curve", func(c *Canvas) {
			c.Path(new(Pen).Move(5, 35).Curve(5, 5, 35, 5, 35, 35).String(), Paint{Stroke: red, Width: 3})
		}, [][2]float64{{20, 12.5}}, [][2]float64{{20, 35}, {20, 20}}},
		{"out of the picture", func(c *Canvas) { c.Rect(-1e9, 30, 2e9, 1e9, 0, Paint{Fill: red}) }, [][2]float64{{1, 39}, {39, 31}}, [][2]float64{{20, 29}}},
		{"not a number", func(c *Canvas) { c.Circle(math.NaN(), 20, 3, Paint{Fill: red}) }, nil, [][2]float64{{20, 20}}},
	} {
		m := pixels(t, c.draw)
		check := func(at [2]float64, want string) {
			got := m.At(int(at[0]*2), int(at[1]*2))
			if color.NRGBAModel.Convert(got) != color.Color(parseColor(want, 1)) {
				t.Errorf("%s: at %v %v, want %s", c.name, at, got, want)
			}
		}
		for _, at := range c.in {
			check(at, red)
		}
		for _, at := range c.out {
			check(at, white)
		}
	}
}

// A text stays in the room that pictures leave for it, at its anchor.
func TestTextInPixels(t *testing.T) {
	for _, s := range []string{"WWWWMMMM", "400 Gb/s", "10⁹", "iiiii"} {
		for _, a := range []Anchor{Start, Middle, End} {
			ty := Type{Size: 7, Anchor: a, Bold: true}
			m := pixels(t, func(c *Canvas) { c.Text(20, 20, s, ty) })
			ink := image.Rectangle{}
			for y := range 80 {
				for x := range 80 {
					if r, _, _, _ := m.At(x, y).RGBA(); r < 0xffff {
						ink = ink.Union(image.Rect(x, y, x+1, y+1))
					}
				}
			}
			wide := int(math.Ceil(2 * TextWidth(s, ty)))
			from := 40 - int(float64(wide)*[]float64{0, 0.5, 1}[a])
			room := image.Rect(max(from-2, 0), 40-16, min(from+wide+2, 80), 40+5)
			if ink.Empty() || !ink.In(room) {
				t.Errorf("%q %v: ink in %v, room %v", s, a, ink, room)
			}
		}
	}
}

// Pictures that would take too much memory are drawn coarser, or refused.
func TestHugePixels(t *testing.T) {
	var c Canvas
	var b bytes.Buffer
	if err := c.Picture(1e6, 1e6, "", "#fff").PNG(&b); err == nil || !strings.Contains(err.Error(), "SVG") {
		t.Errorf("a picture of 10¹² units: %v", err)
	}
	for _, side := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if err := c.Picture(side, 10, "", "#fff").PNG(&b); err == nil {
			t.Errorf("a picture %v wide was drawn", side)
		}
	}
}

// FuzzPath: whatever a path says, it is drawn or refused.
func FuzzPath(f *testing.F) {
	f.Add(new(Pen).Move(0, 0).Line(1, 1).Curve(1, 2, 3, 4, 5, 6).Shut().String(), "4 3")
	f.Add("M", "0")
	f.Add("L1 1", "1e-300 1")
	f.Fuzz(func(t *testing.T, d, dash string) {
		if len(d) > 200 || len(dash) > 20 {
			t.Skip()
		}
		var c Canvas
		c.Path(d, Paint{Stroke: "#123456", Dash: dash, Fill: "#fff"})
		_ = c.Picture(20, 20, "", "#fff").PNG(&bytes.Buffer{})
	})
}
