package svg

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	var c Canvas
	c.Open("node", `a "tip" <&>`, "")
	c.Rect(1, 2.345, 30, 4, 2, Paint{Fill: "#fff", Stroke: "#000", Width: 1.5, Dash: "4 3"})
	c.Text(5, 5, "x < y", Type{Bold: true, Anchor: Middle})
	c.Path(Paint{Stroke: "red", Round: true}, "M", 0.0, 0.001, "L", 1, 1, "C", 1, 2, 3, 4, 5, 6.006, "Z")
	c.Line(0, 0, 1, 1, Paint{Stroke: "red", Opacity: 0.5})
	c.Close()
	c.Add(Mark{
		Is: Grid, X: 1, Y: 2, W: 3, H: 4, Type: &Type{Size: 10}, Paint: &Paint{Fill: "nic"},
		Cells: &Cells{Cols: 2, N: 3, DX: 5, DY: 6, Labels: []string{"a", "", "c"}},
	})
	var b strings.Builder
	if err := c.Picture("title & more", 100, 50).SVG(&b); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`viewBox="0 0 100 50"`, `<title>title &amp; more</title>`, `<title>a &#34;tip&#34; &lt;&amp;&gt;</title>`,
		`<rect x="1" y="2.35" width="30" height="4" rx="2" fill="#fff" stroke="#000" stroke-width="1.5" stroke-dasharray="4 3">`,
		`text-anchor="middle" font-weight="bold">x &lt; y</text>`,
		`<path d="M 0 0 L 1 1 C 1 2 3 4 5 6.01 Z" fill="none" stroke="red"`,
		`opacity="0.5"`, `<path d="M1 2h3v4h-3zm5 0h3v4h-3zM1 8h3v4h-3z" fill="#ede6fa">`, `<text x="2.5" y="13.6"`,
	}
	for _, w := range want {
		if !strings.Contains(b.String(), w) {
			t.Errorf("no %s in\n%s", w, b.String())
		}
	}
	wellFormed(t, b.String())
}

func wellFormed(t *testing.T, s string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(s))
	for {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, s)
		}
	}
}

func TestHostileText(t *testing.T) {
	var c Canvas
	c.Open("a\x00b", "\xff\x1b]]>", "")
	c.Text(0, 0, "\x01</text><script>", Type{})
	c.Close()
	var b strings.Builder
	if err := c.Picture("\x02", math.NaN(), math.Inf(1)).SVG(&b); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b.String())
	if strings.Contains(b.String(), "<script>") {
		t.Error("markup got through")
	}
}

func TestCent(t *testing.T) {
	for v, want := range map[float64]string{0: "0", -0.001: "0", 1.005: "1", 2.999: "3", 1.25: "1.25", -7.5: "-7.5"} {
		if got := fmt.Sprint(Cent(v)); got != want {
			t.Errorf("Cent(%v) = %s, want %s", v, got, want)
		}
	}
}

func TestMeasure(t *testing.T) {
	ten := Type{Size: 10}
	if w := TextWidth("0000000000", ten); math.Abs(w-10*5.56*slack) > 0.01 {
		t.Errorf("ten digits are %v wide", w)
	}
	if b := TextWidth("abc", Type{Size: 10, Bold: true}); b <= TextWidth("abc", ten) {
		t.Error("bold is not wider")
	}
	if got := Fit("ConnectX-7 adapter", ten, 60); TextWidth(got, ten) > 60 || !strings.HasSuffix(got, "…") {
		t.Errorf("Fit: %q", got)
	}
	if got := FitEnds("A09-P1-IBLEAF-01-03", ten, 70); TextWidth(got, ten) > 70 || !strings.HasPrefix(got, "A09") ||
		!strings.HasSuffix(got, "03") {
		t.Errorf("FitEnds: %q", got)
	}
	if got := Fit("ab", ten, 1); got != "" {
		t.Errorf("Fit into nothing: %q", got)
	}
	got := Wrap("shared by 4 GPUs: 6.25 GB/s each", ten, 90, 3)
	if !slices.Equal(got, []string{"shared by 4", "GPUs: 6.25 GB/s", "each"}) && len(got) > 3 {
		t.Errorf("Wrap: %q", got)
	}
	for _, l := range Wrap("a b c d e f g h", ten, 20, 2) {
		if TextWidth(l, ten) > 20 {
			t.Errorf("line %q too wide", l)
		}
	}
}
