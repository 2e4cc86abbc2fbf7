package svg

import (
	"fmt"
	"strings"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goitalic"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// fonts are parsed when a text is first set in them.
var fonts = [...]func() (*sfnt.Font, error){
	sync.OnceValues(func() (*sfnt.Font, error) { return sfnt.Parse(goregular.TTF) }),
	sync.OnceValues(func() (*sfnt.Font, error) { return sfnt.Parse(gobold.TTF) }),
	sync.OnceValues(func() (*sfnt.Font, error) { return sfnt.Parse(goitalic.TTF) }),
}

type glyphKey struct {
	face int
	r    rune
}

// glyph is a character's outline for a font size of one, its baseline at zero.
type glyph struct {
	runs    []run
	advance float64
}

// raised are characters that the fonts lack, drawn as smaller digits above the line.
const raised = "⁰¹²³⁴⁵⁶⁷⁸⁹"

// text sets a line. Where the font is wider than what the picture left room for
// (TextWidth), letters are drawn narrower.
func (r *raster) text(e *element) error {
	face := 0
	switch {
	case e.set.Bold:
		face = 1
	case e.set.Italic:
		face = 2
	}
	var list []*glyph
	wide := 0.0
	for _, c := range e.text {
		g, err := r.glyph(face, c)
		if err != nil {
			return err
		}
		list, wide = append(list, g), wide+g.advance
	}
	size := e.set.size()
	across := size
	if room := TextWidth(e.text, e.set); wide*size > room {
		across = room / wide
	}
	x := e.x - wide*across*[...]float64{Start: 0, Middle: 0.5, End: 1}[e.set.Anchor]
	var runs []run
	for _, g := range list {
		for _, u := range g.runs {
			moved := run{at: make([]point, len(u.at)), shut: true}
			for i, q := range u.at {
				moved.at[i] = point{x + q.x*across, e.y + q.y*size}
			}
			runs = append(runs, moved)
		}
		x += g.advance * across
	}
	r.paint(runs, parseColor(e.set.Fill, 1))
	return nil
}

// glyph finds a character's outline.
func (r *raster) glyph(face int, c rune) (*glyph, error) {
	key := glyphKey{face, c}
	if g := r.glyphs[key]; g != nil {
		return g, nil
	}
	g := &glyph{}
	if i := strings.IndexRune(raised, c); i >= 0 {
		digit, err := r.glyph(face, '0'+rune(len([]rune(raised[:i]))))
		if err != nil {
			return nil, err
		}
		const small, up = 0.6, -0.33
		g.advance = digit.advance * small
		for _, u := range digit.runs {
			at := make([]point, len(u.at))
			for i, q := range u.at {
				at[i] = point{q.x * small, q.y*small + up}
			}
			g.runs = append(g.runs, run{at, true})
		}
	} else if err := g.load(face, c); err != nil {
		return nil, err
	}
	r.glyphs[key] = g
	return g, nil
}

// load reads an outline from the font; a character that it lacks has the font's own sign for that.
func (g *glyph) load(face int, c rune) error {
	f, err := fonts[face]()
	if err != nil {
		return fmt.Errorf("the font of pictures: %w", err)
	}
	var buf sfnt.Buffer
	em := fixed.I(int(f.UnitsPerEm()))
	index, err := f.GlyphIndex(&buf, c)
	if err != nil {
		return fmt.Errorf("the font of pictures: %q: %w", c, err)
	}
	advance, err := f.GlyphAdvance(&buf, index, em, font.HintingNone)
	if err != nil {
		return fmt.Errorf("the font of pictures: %q: %w", c, err)
	}
	segments, err := f.LoadGlyph(&buf, index, em, nil)
	if err != nil {
		return fmt.Errorf("the font of pictures: %q: %w", c, err)
	}
	of := func(p fixed.Point26_6) point { return point{float64(p.X) / float64(em), float64(p.Y) / float64(em)} }
	g.advance = float64(advance) / float64(em)
	for _, s := range segments {
		if s.Op == sfnt.SegmentOpMoveTo {
			g.runs = append(g.runs, run{at: []point{of(s.Args[0])}, shut: true})
			continue
		}
		last := &g.runs[len(g.runs)-1]
		a := last.at[len(last.at)-1]
		switch s.Op {
		case sfnt.SegmentOpLineTo:
			last.at = append(last.at, of(s.Args[0]))
		case sfnt.SegmentOpQuadTo:
			const cuts = 6
			b, c := of(s.Args[0]), of(s.Args[1])
			for i := 1; i <= cuts; i++ {
				t := float64(i) / cuts
				last.at = append(last.at, between(between(a, b, t), between(b, c, t), t))
			}
		case sfnt.SegmentOpCubeTo:
			last.curve(of(s.Args[0]), of(s.Args[1]), of(s.Args[2]))
		}
	}
	return nil
}

// Undrawable is the characters of the picture's texts for which PNG has only the font's sign for a missing one.
func (p *Picture) Undrawable() string {
	var missing strings.Builder
	for i := range p.canvas.list {
		for _, c := range p.canvas.list[i].text {
			f, err := fonts[0]()
			if err != nil || p.canvas.list[i].is != text || strings.ContainsRune(raised, c) {
				continue
			}
			if index, err := f.GlyphIndex(nil, c); err != nil || index == 0 {
				missing.WriteRune(c)
			}
		}
	}
	return missing.String()
}
