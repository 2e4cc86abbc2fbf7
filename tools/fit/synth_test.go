package main

import (
	"bytes"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"busbar.dev/calibrate/truth"
	"busbar.dev/coll"
	"busbar.dev/internal/test/synth"
	"busbar.dev/sim"
)

// figures are the fitted ones with some changed by a factor.
func figures(t testing.TB, by map[string]float64) *sim.Figures {
	t.Helper()
	f := *sim.Fitted()
	for name, k := range by {
		i, err := sim.FigureByName(name)
		if err != nil {
			t.Fatal(err)
		}
		f[i] *= k
	}
	return &f
}

// synthetic are cases of machines whose times follow from figures, with noise of the given spread.
func synthetic(t testing.TB, f *sim.Figures, spread float64, machines ...int) []*truth.Case {
	t.Helper()
	var all []synth.Sweep
	for _, i := range machines {
		list, err := synth.Machines()[i].Sweeps(f, spread, synth.Sizes(10, 4), coll.AllReduce, coll.AllGather)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, list...)
	}
	text, err := synth.Lines(all)
	if err != nil {
		t.Fatal(err)
	}
	sweeps, _, err := truth.Read("synthetic.jsonl", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	cases, left := truth.Gather(sweeps, 0)
	if len(cases) != len(all) || len(left) != 0 {
		t.Fatalf("%d cases of %d, left %v", len(cases), len(all), left)
	}
	return cases
}

// off is how far a figure is from what it should be.
func off(t testing.TB, got, want *sim.Figures, name string) float64 {
	t.Helper()
	i, err := sim.FigureByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return math.Abs(got[i]/want[i] - 1)
}

// A fit finds the figures that the times were made of, from others that are off by up to a half, and moves no figure
// that is not free.
func TestFitRecoversFigures(t *testing.T) {
	by := map[string]float64{"hopper.launch": 1.4, "rdma_share": 0.8, "ll_net": 1.5, "hopper.multimem_share": 0.9}
	want := figures(t, by)
	pulledBy(t, 0)
	p := &search{cases: synthetic(t, want, 0, 0, 1), f: *sim.Fitted(), rounds: 60}
	for name := range by {
		i, err := sim.FigureByName(name)
		if err != nil {
			t.Fatal(err)
		}
		p.free[i] = true
	}
	if err := p.run(); err != nil {
		t.Fatal(err)
	}
	for name := range by {
		if d := off(t, &p.f, want, name); d > 0.02 {
			t.Errorf("%s is off by %.1f%%", name, 100*d)
		}
	}
	for i, v := range p.f {
		if !p.free[i] && v != sim.Fitted()[i] {
			t.Errorf("%s moved and was not free", sim.FigureTable()[i].Name)
		}
		if p.free[i] && p.points[i] == 0 {
			t.Errorf("no point depends on %s", sim.FigureTable()[i].Name)
		}
	}
}

// The fit to published sweeps explains synthetic ones down to their noise, from round values; held figures stay, all
// are in their range, and a second fit gives the same.
func TestSyntheticPublished(t *testing.T) {
	cases := synthetic(t, sim.Fitted(), 0.02, 0, 2, 3, 4)
	p := published(cases)
	p.rounds, p.quick = 12, true
	pulledBy(t, 0.2) // as many machines as published ones outweigh the pull; these few would not
	before, err := truth.Rows(cases, usual())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.run(); err != nil {
		t.Fatal(err)
	}
	after, err := truth.Rows(cases, &p.f)
	if err != nil {
		t.Fatal(err)
	}
	was, is := truth.Rate(before), truth.Rate(after)
	t.Logf("median %.3f to %.3f, 90%% %.3f to %.3f", was.Median, is.Median, was.P90, is.P90)
	if is.Median > 0.06 || is.Median > was.Median/3 || is.P90 > 0.2 {
		t.Errorf("median error %.3f, was %.3f; 90%% %.3f", is.Median, was.Median, is.P90)
	}
	for i, v := range p.f {
		x := sim.FigureTable()[i]
		if v < x.Least || v > x.Most {
			t.Errorf("%s is %g, out of %g to %g", x.Name, v, x.Least, x.Most)
		}
		if x.Publishers < fewestPublishers && v != x.Usual {
			t.Errorf("%s moved, which one publisher informs", x.Name)
		}
	}
	again := published(cases)
	again.rounds, again.quick = p.rounds, true
	if err := again.run(); err != nil || again.f != p.f {
		t.Errorf("a second fit differs: %v", err)
	}
}

// A machine that is left out is predicted from the others, and by nothing of its own: its measured times do not matter.
func TestSyntheticCross(t *testing.T) {
	cases := synthetic(t, sim.Fitted(), 0.02, 0, 1, 3)
	pulledBy(t, 0.2)
	names := names(cases, (*truth.Case).Machine)
	rows, err := cross(cases, sim.Fitted(), (*truth.Case).Machine)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"synth1/h100", "synth2/h100", "synth4/a100-80"}; !slices.Equal(names, want) ||
		len(rows) != 3*2*10 {
		t.Errorf("%d rows of %v, want %v", len(rows), names, want)
	}
	by := map[string]truth.Score{}
	for _, p := range truth.Split(rows, truth.ByMachine) {
		by[p.Name] = p.Score
		t.Logf("%s: median %.3f, 90%% %.3f", p.Name, p.Median, p.P90)
	}
	// The two H100 machines teach about each other; nothing but round values is known about the A100s.
	for _, n := range names[:2] {
		if by[n].Median > 0.08 {
			t.Errorf("%s: median error %.3f although a machine of its kind was there", n, by[n].Median)
		}
	}
	if by[names[2]].Median < by[names[0]].Median {
		t.Errorf("%s is predicted as well as machines that others are like", names[2])
	}

	bars(t, rows)

	first := names[0]
	predicted := func(full *sim.Figures) (list []int64) {
		f, out, err := without(cases, first, full, (*truth.Case).Machine)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := truth.Rows(out, f)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			list = append(list, int64(rows[i].Predicted))
		}
		return list
	}
	want := predicted(sim.Fitted())
	// Nor do figures that were fitted to them.
	if got := predicted(figures(t, map[string]float64{"hopper.launch": 1.5, "rdma_share": 0.8})); !slices.Equal(got,
		want) {
		t.Errorf("predictions of %s follow figures that its times were part of: %v, were %v", first, got, want)
	}
	for _, c := range cases {
		if c.Machine() == first {
			for i := range c.Times {
				c.Times[i] *= 3
			}
		}
	}
	if got := predicted(sim.Fitted()); !slices.Equal(got, want) {
		t.Errorf("predictions of %s follow its own times: %v, were %v", first, got, want)
	}
}

// bars checks the error bars of cross-validated rows, and the table that is written of them.
func bars(t *testing.T, rows []truth.Row) {
	t.Helper()
	list := margins(rows)
	factor := map[string]float64{}
	for _, m := range list {
		factor[m.Name] = m.Factor
		if m.Factor < 1.05 || m.Points == 0 || m.Machines == 0 {
			t.Errorf("%+v", m)
		}
	}
	inside := 0
	for i := range rows {
		if r := rows[i].Ratio(); max(r, 1/r) <= factor[rows[i].Bar] {
			inside++
		}
	}
	if inside < len(rows)*85/100 {
		t.Errorf("%d of %d rows are inside their margins", inside, len(rows))
	}
	var b bytes.Buffer
	if err := writeBars(&b, list); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "\nnvlink-single-node/large,") || !strings.Contains(b.String(), ",2,1\n") {
		t.Errorf("%s", b.String())
	}
}

// pulledBy sets the force of the prior for a test.
func pulledBy(t *testing.T, force float64) {
	old := pull
	t.Cleanup(func() { pull = old })
	pull = force
}

// Figures are written into the table in their places, and nothing else of it changes.
func TestWriteFigures(t *testing.T) {
	data, err := os.ReadFile(figuresFile)
	if err != nil {
		t.Fatal(err)
	}
	var by [nFigures]informers
	for i, x := range sim.FigureTable() {
		by[i] = informers{x.Machines, x.Publishers}
	}
	if got, err := withFigures(figuresFile, sim.Fitted(), &by); err != nil || string(got) != string(data) {
		t.Errorf("the same figures changed the table: %v", err)
	}
	other := *sim.Fitted()
	other[0], by[0] = 7.5, informers{3, 2}
	if got, err := withFigures(figuresFile, &other, &by); err != nil ||
		!strings.Contains(string(got), "\nvolta.launch,us,1,60,8,1,7.5,3,2,\"a call") {
		t.Errorf("%s", got)
	}
}
