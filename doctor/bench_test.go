package doctor_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbar.dev/calibrate/truth"
	"busbar.dev/coll"
	"busbar.dev/doctor"
	"busbar.dev/finding"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/unit"
)

// TestBenchOnPublishedSweeps counts how many published sweeps raise a warning:
// healthy ones should not, those known to be slow should.
func TestBenchOnPublishedSweeps(t *testing.T) {
	if testing.Short() {
		t.Skip("predicts two thousand points")
	}
	name := filepath.Join(corpus.Dir(t), "truth", "collectives.jsonl")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Skip(err)
	}
	sweeps, _, err := truth.Read(name, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	type count struct{ judged, raised, unjudged int }
	var healthy, broken count
	for _, g := range sweeps {
		at := &healthy
		if g.Published.Anomalous {
			at = &broken
		}
		if !g.Published.Anomalous && g.Published.Grade == "C" {
			continue
		}
		c, err := truth.Prepare(g)
		if err != nil {
			at.unjudged++
			if g.Published.Anomalous {
				t.Logf("anomalous %s not judged: %v", g.ID, err)
			}
			continue
		}
		s, err := doctor.NewCurve(c)
		if err != nil {
			at.unjudged++
			continue
		}
		at.judged++
		r := doctor.Bench([]*doctor.Curve{s})
		var said []string
		for _, f := range r.Findings {
			if f.Severity != finding.Note {
				said = append(said, f.ID+": "+f.Title)
			}
		}
		if len(said) > 0 {
			at.raised++
			if !g.Published.Anomalous {
				t.Logf("healthy %s (%s): %s", g.ID, s.Class, strings.Join(said, "; "))
			}
		} else if g.Published.Anomalous {
			t.Logf("anomalous %s (%s) raises nothing above a note", g.ID, s.Class)
		}
	}
	t.Logf("healthy: %d of %d sweeps raise a warning (%d not judged); anomalous: %d of %d (%d not judged)", healthy.raised,
		healthy.judged, healthy.unjudged, broken.raised, broken.judged, broken.unjudged)
	if 20*healthy.raised > healthy.judged {
		t.Errorf("%d of %d healthy sweeps raise a warning", healthy.raised, healthy.judged)
	}
	// Bars through host memory and of RoCE are as wide as publishers left out say, so that some faults lie within.
	if 3*broken.raised < 2*broken.judged {
		t.Errorf("%d of %d sweeps that are known to be slow raise a warning", broken.raised, broken.judged)
	}
}

// sweepOf makes an all-reduce of 16 ranks on two nodes of eight 400 Gb/s NICs; slow says
// how many times as long as predicted a size takes.
func sweepOf(slow func(unit.Bytes) float64) *doctor.Curve {
	s := &doctor.Curve{
		Source: "t", Op: coll.AllReduce, Ranks: 16, Nodes: 2, Machine: "azure-ndv5",
		Class: "multi-node-infiniband", NICs: 8, NICRate: 50 * unit.GBps,
	}
	for size := 8 * unit.Bytes(1); size <= 8*unit.GiB; size *= 4 {
		want := unit.Micros(25 + float64(size)*1.875/380e3)
		p := doctor.CurvePoint{Size: size, Expected: want, Time: unit.Time(float64(want) * slow(size)), Margin: 1.3}
		p.BusBW = coll.Op{Kind: coll.AllReduce, Bytes: size}.BusBW(s.Ranks, p.Time).GBps()
		s.Points = append(s.Points, p)
	}
	return s
}

func TestBenchPatterns(t *testing.T) {
	from := func(least unit.Bytes, r float64) func(unit.Bytes) float64 {
		return func(s unit.Bytes) float64 {
			if s >= least {
				return r
			}
			return 1
		}
	}
	capped := func(gbps float64) func(unit.Bytes) float64 {
		return func(s unit.Bytes) float64 {
			micros := 25 + float64(s)*1.875/380e3
			return max(1, float64(s)*1.875/micros/1e3/gbps)
		}
	}
	for _, x := range []struct {
		name string
		s    *doctor.Curve
		id   string
		says string
	}{
		{"healthy", sweepOf(func(unit.Bytes) float64 { return 1.1 }), "", ""},
		{"one NIC of eight", sweepOf(capped(46)), "bench-peak", "the rate of one NIC"},
		{"half", sweepOf(capped(190)), "bench-peak", "half of what is expected"},
		{"a quarter", sweepOf(capped(95)), "bench-peak", "a quarter"},
		{"sockets", sweepOf(func(unit.Bytes) float64 { return 90 }), "bench-peak", "TCP sockets"},
		{"small ones only", sweepOf(func(s unit.Bytes) float64 {
			if s < 64<<10 {
				return 3
			}
			return 1
		}), "bench-latency", "latency is not"},
		{"the middle only", sweepOf(func(s unit.Bytes) float64 {
			if s >= 64<<10 && s <= 16<<20 {
				return 2.5
			}
			return 1
		}), "bench-middle", "its middle is not"},
		{"one size", sweepOf(func(s unit.Bytes) float64 {
			if s == 32<<20 {
				return 14
			}
			return 1
		}), "bench-outside", "fall out of it"},
		{"thousands of GB/s", sweepOf(func(unit.Bytes) float64 { return 0.01 }), "bench-impossible", "another unit"},
		{"its end", sweepOf(from(8<<30, 8)), "bench-outside", "slower than smaller ones"},
	} {
		r := doctor.Bench([]*doctor.Curve{x.s})
		switch {
		case x.id == "" && finding.Serious(r.Findings):
			t.Errorf("%s: %s", x.name, r.Findings[0].Title)
		case x.id == "":
		case len(r.Findings) == 0 || r.Findings[0].ID != x.id || r.Findings[0].Severity == finding.Note ||
			!strings.Contains(r.Findings[0].Cause, x.says):
			t.Errorf("%s: %+v; want %s that says %q", x.name, r.Findings, x.id, x.says)
		}
	}
}

// A peak of 60% is not surely that of half of the NICs: one slow node is named beside it.
func TestBenchNearHalf(t *testing.T) {
	r := doctor.Bench([]*doctor.Curve{sweepOf(func(unit.Bytes) float64 { return 1 / 0.6 })})
	if len(r.Findings) == 0 || !strings.Contains(r.Findings[0].Cause, "One slow node") ||
		!strings.Contains(r.Findings[0].Cause, "near half of what is expected") {
		t.Errorf("%+v", r.Findings)
	}
}

// A row is slow from the end of its error bar on, which is the floor that predict names. On a guessed machine that is a
// question, and so is what stands below the rows.
func TestBenchVerdicts(t *testing.T) {
	s := sweepOf(func(unit.Bytes) float64 { return 1.35 })
	p := &s.Points[len(s.Points)-1]
	for ratio, want := range map[float64]string{1.29: "", 1.31: "slow", 9: "slow"} {
		p.Time = unit.Time(ratio * float64(p.Expected))
		s.Guessed = false
		if got := s.Verdict(p); got != want {
			t.Errorf("%.2f times as long: %q, want %q", ratio, got, want)
		}
		s.Guessed = true
		if got := s.Verdict(p); (got == "slow?") != (want == "slow" && ratio < 7) {
			t.Errorf("%.2f times as long on a guessed machine: %q", ratio, got)
		}
	}
	var b strings.Builder
	err := doctor.Text{}.Write(&b, doctor.Bench([]*doctor.Curve{s}))
	if err != nil || !strings.Contains(b.String(), "No verdict, as the machine was guessed") {
		t.Errorf("%v %s", err, b.String())
	}
}

// A curve of which some sizes lie beyond their error bars is never in order by silence.
func TestBenchOutside(t *testing.T) {
	r := doctor.Bench([]*doctor.Curve{sweepOf(func(s unit.Bytes) float64 {
		if s == 64<<20 || s == 128<<20 {
			return 1.9
		}
		return 1
	})})
	if len(r.Findings) == 0 || !strings.Contains(r.Findings[0].Title, "%") {
		t.Errorf("%+v", r.Findings)
	}
}

// A guessed network gives notes.
func TestBenchGuessed(t *testing.T) {
	s := sweepOf(func(unit.Bytes) float64 { return 2 })
	s.Guessed = true
	if r := doctor.Bench([]*doctor.Curve{s}); finding.Serious(r.Findings) || len(r.Findings) == 0 {
		t.Errorf("guessed: %+v", r.Findings)
	}
}

// One size that is twice beyond its bar is a note: healthy sweeps have such sizes too.
func TestBenchOneSizeIsANote(t *testing.T) {
	r := doctor.Bench([]*doctor.Curve{sweepOf(func(s unit.Bytes) float64 {
		if s == 8<<30 {
			return 2.5
		}
		return 1
	})})
	if len(r.Findings) != 1 || r.Findings[0].ID != "bench-outside" || r.Findings[0].Severity != finding.Note {
		t.Errorf("%+v", r.Findings)
	}
}
