package svg

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
	"strconv"

	"golang.org/x/image/vector"
)

const (
	// sharp is how many pixels a unit has: a picture is read on screens that
	// have two for every point, and in documents that enlarge it.
	sharp = 2.0
	// maxPixels bounds memory; larger pictures get fewer pixels for a unit.
	maxPixels = 32 << 20
	// minSharp is where the smallest letters cannot be read any more.
	minSharp = 0.5
)

// PNG writes the whole picture in pixels, in Go's own font, since it needs one
// that is there everywhere.
func (p *Picture) PNG(out io.Writer) error {
	k := math.Min(sharp, math.Sqrt(maxPixels/(p.W*p.H)))
	w, h := int(math.Ceil(p.W*k)), int(math.Ceil(p.H*k))
	if !(k >= minSharp) || w < 1 || h < 1 {
		return fmt.Errorf("a PNG of %.0f by %.0f units has more than %d megapixels; write it as SVG", p.W, p.H, maxPixels>>20)
	}
	r := &raster{k: k, dst: image.NewRGBA(image.Rect(0, 0, w, h)), glyphs: make(map[glyphKey]*glyph)}
	draw.Draw(r.dst, r.dst.Bounds(), image.NewUniform(parseColor(p.background, 1)), image.Point{}, draw.Src)
	for i := range p.canvas.list {
		if err := r.element(&p.canvas.list[i]); err != nil {
			return err
		}
	}
	return (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(out, r.dst)
}

// raster paints elements into pixels.
type raster struct {
	k      float64 // pixels a unit
	dst    *image.RGBA
	fill   vector.Rasterizer
	glyphs map[glyphKey]*glyph
}

func (r *raster) element(e *element) error {
	var runs []run
	switch e.is {
	case box:
		runs = []run{rounded(e.x, e.y, e.w, e.h, e.r)}
	case disc:
		runs = []run{rounded(e.x-e.r, e.y-e.r, 2*e.r, 2*e.r, e.r)}
	case line:
		runs = []run{{at: []point{{e.x, e.y}, {e.w, e.h}}}}
	case path:
		var err error
		if runs, err = parsePath(e.text); err != nil {
			return err
		}
	case text:
		return r.text(e)
	default:
		return nil // groups only name things
	}
	p := e.paint
	if p.Fill == "" && p.Stroke == "" && e.is != path && e.is != line {
		p.Fill = "#000000" // as SVG does
	}
	if p.Fill != "" && p.Fill != "none" && e.is != line {
		r.paint(runs, parseColor(p.Fill, p.Opacity))
	}
	if p.Stroke != "" && p.Stroke != "none" {
		r.paint(outline(dashed(runs, p.Dash), p), parseColor(p.Stroke, p.Opacity))
	}
	return nil
}

// paint fills closed runs.
func (r *raster) paint(runs []run, c color.NRGBA) {
	bounds := r.dst.Bounds()
	low, high := point{math.Inf(1), math.Inf(1)}, point{math.Inf(-1), math.Inf(-1)}
	for _, u := range runs {
		for _, q := range u.at {
			q = r.pixel(q)
			low = point{math.Min(low.x, q.x), math.Min(low.y, q.y)}
			high = point{math.Max(high.x, q.x), math.Max(high.y, q.y)}
		}
	}
	if high.x < low.x {
		return
	}
	area := image.Rect(int(low.x), int(low.y), int(high.x)+1, int(high.y)+1).Intersect(bounds)
	if area.Empty() {
		return
	}
	r.fill.Reset(area.Dx(), area.Dy())
	for _, u := range runs {
		for i, q := range u.at {
			q = r.pixel(q)
			x, y := float32(q.x-float64(area.Min.X)), float32(q.y-float64(area.Min.Y))
			if i == 0 {
				r.fill.MoveTo(x, y)
			} else {
				r.fill.LineTo(x, y)
			}
		}
		r.fill.ClosePath()
	}
	r.fill.Draw(r.dst, area, image.NewUniform(c), image.Point{})
}

// pixel is where a point lies in the picture; what would lie outside lies on its edge.
func (r *raster) pixel(q point) point {
	b := r.dst.Bounds()
	in := func(v float64, most int) float64 {
		if math.IsNaN(v) {
			return 0
		}
		return math.Max(0, math.Min(v*r.k, float64(most)))
	}
	return point{in(q.x, b.Max.X), in(q.y, b.Max.Y)}
}

// parseColor reads #rgb and #rrggbb; what is neither is black, as in SVG.
func parseColor(s string, opacity float64) color.NRGBA {
	c := color.NRGBA{A: 255}
	if opacity > 0 && opacity < 1 {
		c.A = uint8(255*opacity + 0.5)
	}
	if len(s) == 4 && s[0] == '#' {
		s = string([]byte{'#', s[1], s[1], s[2], s[2], s[3], s[3]})
	}
	if len(s) == 7 && s[0] == '#' {
		if v, err := strconv.ParseUint(s[1:], 16, 32); err == nil {
			c.R, c.G, c.B = uint8(v>>16), uint8(v>>8), uint8(v)
		}
	}
	return c
}
