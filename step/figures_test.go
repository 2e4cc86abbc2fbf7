package step

import (
	"slices"
	"strings"
	"testing"

	"busbar.dev/hardware"
)

// TestFigureTable: the rows stand in the order of the constants, and the figures in use are within their ranges.
func TestFigureTable(t *testing.T) {
	list := FigureTable()
	if len(list) != nFigures {
		t.Fatalf("%d rows of figures.csv, %d constants", len(list), nFigures)
	}
	own := int(perGen)
	for i, name := range map[int]string{
		0: "volta.ceiling", int(cdna)*own + int(memShare): "cdna.mem_share", gens * own: "prologue",
		(gens-1)*own + int(stepHost): "step_host", nFigures - 1: "eager_pieces",
	} {
		if list[i].Name != name {
			t.Errorf("row %d is %s; expected %s", i, list[i].Name, name)
		}
	}
	h100, _ := hardware.GPUByName("h100")
	for i, x := range list {
		if v := Default()[i]; !(x.Least < x.Most && v >= x.Least && v <= x.Most && x.Guess >= x.Least && x.Guess <= x.Most &&
			x.Doubt > 0) {
			t.Errorf("%+v, in use %g", x, v)
		}
		if want := !strings.Contains(x.Name, ".") || strings.HasPrefix(x.Name, "hopper."); Touches(i, h100) != want {
			t.Errorf("%s touches an H100: %v", x.Name, !want)
		}
	}
	if len(fitted) != len(list) || !slices.ContainsFunc(list, func(f Figure) bool { return f.Name == "gap" }) {
		t.Errorf("%d values in use, %d figures", len(fitted), len(list))
	}
}
