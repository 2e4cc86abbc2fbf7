package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"busbar.dev/calibrate"
	"busbar.dev/calibrate/truth"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/result"
	"busbar.dev/sim"
)

var once struct {
	sync.Once
	cases []*truth.Case
}

// corpusCases are the cases of the published sweeps.
func corpusCases(t testing.TB) []*truth.Case {
	t.Helper()
	dir := corpus.Dir(t)
	once.Do(func() { once.cases = readPublished(t, dir) })
	return once.cases
}

func readPublished(t testing.TB, dir string) []*truth.Case {
	t.Helper()
	var all result.Sweeps
	for _, name := range []string{"collectives.jsonl", "collectives-2.jsonl", "collectives-3.jsonl"} {
		f, err := os.Open(filepath.Join(dir, "truth", name))
		if err != nil {
			t.Fatal(err)
		}
		sweeps, _, err := truth.Read(name, f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, sweeps...)
	}
	cases, _ := truth.Gather(all, 0)
	return cases
}

// The fitted figures are what the fit gives, near enough.
func TestFittedIsTheFit(t *testing.T) {
	cases := corpusCases(t)
	p := published(cases)
	p.quick = true
	if err := p.run(); err != nil {
		t.Fatal(err)
	}
	rows, err := truth.Rows(cases, &p.f)
	if err != nil {
		t.Fatal(err)
	}
	best := truth.Rate(rows)
	if rows, err = truth.Rows(cases, sim.Fitted()); err != nil {
		t.Fatal(err)
	}
	got := truth.Rate(rows)
	if got.Median > best.Median+0.01 || got.P90 > best.P90+0.03 {
		t.Errorf("sim.Fitted has a median error of %.3f, p90 %.3f; a fit gives %.3f, %.3f: write it anew with make fit "+
			"FIT=-figures", got.Median, got.P90, best.Median, best.P90)
	}
}

// Machines of a publisher that the fit has not seen are predicted as docs/accuracy.md says.
func TestCross(t *testing.T) {
	if os.Getenv("BUSBAR_LONG") == "" {
		t.Skip("fits thirty times; BUSBAR_LONG=1m (make test-long) does, and TestSyntheticCross holds the method")
	}
	cases := corpusCases(t)
	rows, err := cross(cases, sim.Fitted(), publisher)
	if err != nil {
		t.Fatal(err)
	}
	refit(rows, publisher)
	for _, p := range truth.Split(rows, truth.ByMiB) {
		t.Logf("%s: %d points, median %.3f, p90 %.3f, %.3f in the bar", p.Name, p.Points, p.Median, p.P90, p.Covered)
		if p.Median > 0.28 || p.P90 > 0.70 || p.MachineCovered < 0.85 {
			t.Errorf("%s: median %.3f, p90 %.3f, %.3f in the bar", p.Name, p.Median, p.P90, p.Covered)
		}
	}
}

// Every other size of a sweep teaches the rest: the error on sizes that the fit did
// not see falls, on a cluster that sim.Fitted was not fitted on either.
func TestHeldOutSizes(t *testing.T) {
	all := corpusCases(t)
	var in, out []*truth.Case
	for _, c := range all {
		if c.Sweep.ID == "nf5688-h800-1x8-broadcast" {
			out = append(out, c)
		} else if c.Machine() != "nf5688/h800" {
			in = append(in, c)
		}
	}
	p := published(in)
	p.quick = true
	if err := p.run(); err != nil {
		t.Fatal(err)
	}
	s, err := calibrate.Cluster(out, &p.f, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("all: median %.3f to %.3f, p90 %.3f to %.3f; held out: median %.3f to %.3f, p90 %.3f to %.3f", s.Before.Median,
		s.After.Median, s.Before.P90, s.After.P90,
		s.HeldOut.Before.Median, s.HeldOut.After.Median, s.HeldOut.Before.P90, s.HeldOut.After.P90)
	for _, m := range s.Moved {
		t.Logf("%s %.4g to %.4g (%.4g to %.4g) %s", m.Name, m.Was, m.Value, m.Low, m.High, m.Unit)
	}
	if s.HeldOut.After.Median > 0.7*s.HeldOut.Before.Median {
		t.Errorf("on sizes that were held out the median error goes from %.3f to %.3f only", s.HeldOut.Before.Median,
			s.HeldOut.After.Median)
	}
}

// Who informs each figure is as the table of figures says.
func TestInformed(t *testing.T) {
	by, err := informed(corpusCases(t), sim.Fitted())
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range sim.FigureTable() {
		if got := (informers{x.Machines, x.Publishers}); got != by[i] {
			t.Errorf("sim/figures.csv: %s has %d machines and %d publishers; %d and %d feel it: make fit FIT=\"-figures "+
				"-write\"",
				x.Name, got.machines, got.publishers, by[i].machines, by[i].publishers)
		}
	}
}

// The last name is that of the last mechanism.
func TestMechanismNames(t *testing.T) {
	if 1<<len(collMechanisms)>>2 != sim.SimpleStart {
		t.Errorf("%d names, the last of %b", len(collMechanisms), sim.SimpleStart)
	}
}

// The program answers each question about the points of the manual's example.
func TestQuestions(t *testing.T) {
	for _, x := range []struct {
		q    question
		want string
	}{
		{question{figures: true}, "hopper.launch"},
		{question{cross: true}, "fitted without its points"},
		{question{cross: true, publishers: true, figures: true}, "bar,factor"},
		{question{sites: true, spoil: 1}, "machines: mean"},
		{question{ablation: true}, "simple-start"},
	} {
		var b bytes.Buffer
		x.q.out = &b
		err := x.q.read([]string{"../../docs/examples/points.jsonl"})
		if err == nil {
			err = x.q.run()
		}
		if err != nil || !strings.Contains(b.String(), x.want) {
			t.Errorf("%+v: %v, want %q in\n%s", x.q, err, x.want, b.String())
		}
	}
}

// The published measurements lie beside the repository, not beside this module.
func TestMain(m *testing.M) {
	if os.Getenv("BUSBAR_SHARED") == "" {
		os.Setenv("BUSBAR_SHARED", "../../../shared")
	}
	os.Exit(m.Run())
}
