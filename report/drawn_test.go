package report

import (
	"bytes"
	"image/png"
	"io"
	"testing"

	"busbar.dev/cluster"
)

// drawn writes what a function draws.
func drawn(w io.Writer) func(*Picture, error) error {
	return func(p *Picture, err error) error {
		if err != nil {
			return err
		}
		return p.SVG(w)
	}
}

func asSVG(w io.Writer, c *cluster.Cluster) error { return Drawing(c).SVG(w) }

// Every character and colour that our pictures use can be drawn in pixels.
func TestPicturesAsPixels(t *testing.T) {
	for name, c := range shown() {
		p := Drawing(c)
		var b bytes.Buffer
		if err := p.PNG(&b); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := png.Decode(&b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		inked := 0
		for y := range got.Bounds().Dy() {
			for x := range got.Bounds().Dx() {
				if r, g, b, _ := got.At(x, y).RGBA(); r&g&b < 0x8000 {
					inked++
				}
			}
		}
		if all := got.Bounds().Dx() * got.Bounds().Dy(); inked < all/1000 || inked > all/2 {
			t.Errorf("%s: %d of %d pixels are dark", name, inked, all)
		}
		if missing := p.Undrawable(); missing != "" {
			t.Errorf("%s: the font has no %q", name, missing)
		}
	}
}
