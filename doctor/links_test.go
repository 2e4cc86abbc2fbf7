package doctor

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"busbar.dev/doctor/evidence"
	"busbar.dev/fleet/health"
	"busbar.dev/unit"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// history makes an hourly history of a pair: in GB/s with some noise; below zero are failures, zero has no
// sample.
func history(seed uint64, noise float64, rates ...float64) *evidence.Link {
	r := rand.New(rand.NewPCG(seed, 21))
	l := &evidence.Link{File: "link.json", From: "gpu01", To: "gpu02"}
	for i, v := range rates {
		p := health.Point{Sweep: fmt.Sprint(i), Time: start.Add(time.Duration(i) * time.Hour), Failed: v < 0}
		if v > 0 {
			p.Rate = unit.Rate(1e9 * v * math.Exp(noise*r.NormFloat64()))
		}
		if v != 0 {
			l.Points = append(l.Points, p)
		}
	}
	return l
}

func repeated(n int, rates ...float64) (list []float64) {
	for range n {
		list = append(list, rates...)
	}
	return list
}

func TestTell(t *testing.T) {
	for _, c := range []struct {
		name  string
		rates []float64
		want  course
		words string
	}{
		{"steady", repeated(30, 12), steady, "not lower than before, median 1"},
		{"dropped", append(repeated(20, 12), repeated(10, 6)...), dropped, "dropped at 2026-01-01 20:00Z from 1"},
		{"a little", append(repeated(20, 12), repeated(10, 10.8)...), steady, "not lower than before"},
		{"recovered", append(append(repeated(10, 12), repeated(6, 5)...), repeated(10, 12)...), steady, "not lower"},
		{"rose", append(repeated(10, 6), repeated(10, 12)...), steady, "not lower than before"},
		{"every second", repeated(15, 12, 5), flapping, "flaps, 29 times between"},
		{"in threes", repeated(5, 12, 12, 12, 5, 5, 5), flapping, "flaps, 9 times"},
		{"failing by turns", repeated(10, 12, -1), flapping, "flaps"},
		{"failing", append(repeated(12, 12), -1, -1, -1), failing, "measurements fail since 2026-01-01 12:00Z"},
		{"a failure", append(repeated(12, 12), -1), steady, "not lower"},
		{"never worked", repeated(8, -1), failing, "measurements fail since 2026-01-01 00:00Z"},
		{"few", repeated(3, 12), young, "too few"},
		{"few with a rate", append(repeated(6, -1), 12, 12), young, "too few"},
		{"none", nil, young, ""},
	} {
		for seed := range uint64(20) {
			got := tell(history(seed, 0.02, c.rates...))
			if got.course != c.want || !strings.Contains(got.text, c.words) {
				t.Errorf("%s, seed %d: %s, %q; want %s, %q", c.name, seed, got.course, got.text, c.want, c.words)
			}
		}
	}
}

// TestTellSetups: sweeps with another message size are no drop.
func TestTellSetups(t *testing.T) {
	l := history(1, 0.02, append(repeated(20, 12), repeated(10, 3)...)...)
	for i := range l.Points {
		l.Points[i].Setup = []string{"4 MiB messages", "8 KiB messages"}[i/20]
	}
	if got := tell(l); got.course != steady || !strings.Contains(got.text, "10 samples from 2026-01-01 20:00Z") {
		t.Errorf("%s: %s", got.course, got.text)
	}
	for i := range l.Points {
		l.Points[i].Setup = "4 MiB messages"
	}
	if got := tell(l); got.course != dropped {
		t.Errorf("%s: %s", got.course, got.text)
	}
}

// TestTellNoise: histories of pairs on a shared machine, where single samples scatter and some sweeps are slow,
// are steady.
func TestTellNoise(t *testing.T) {
	for _, c := range []struct {
		noise, slow float64
		most        int // of 300
	}{{0.05, 0, 0}, {0.1, 0, 3}, {0.05, 0.05, 3}, {0.05, 0.15, 15}} {
		wrong := map[course]int{}
		for seed := range uint64(300) {
			r := rand.New(rand.NewPCG(seed, 22))
			rates := repeated(60, 12)
			for i := range rates {
				if r.Float64() < c.slow {
					rates[i] *= 0.4 + 0.5*r.Float64()
				}
			}
			if s := tell(history(seed, c.noise, rates...)); s.course == flapping ||
				s.course == dropped && float64(s.after) < worthTelling*float64(s.before) {
				wrong[s.course]++
			}
		}
		t.Logf("noise of %g, %g of sweeps slow: %v of 300", c.noise, c.slow, wrong)
		if wrong[flapping]+wrong[dropped] > c.most {
			t.Errorf("noise of %g, %g of sweeps slow: %v", c.noise, c.slow, wrong)
		}
	}
}

// linkReply is what a server answers about a pair.
func linkReply(there, back *evidence.Link) string {
	list := func(l *evidence.Link) []map[string]any {
		out := []map[string]any{}
		for _, p := range l.Points {
			m := map[string]any{"at": p.Time, "sweep": p.Sweep}
			if p.Failed {
				m["failed"] = true
			} else {
				m["rate_GBps"] = p.Rate.GBps()
			}
			out = append(out, m)
		}
		return out
	}
	text, _ := json.Marshal(map[string]any{"from": there.From, "to": there.To, "there": list(there), "back": list(back)})
	return string(text)
}

func TestPairDropped(t *testing.T) {
	const slow = `{"findings": [{"id": "slow-host:gpu01", "kind": "slow-host", "severity": "error", "nodes": ["gpu01"], "since": "2026-01-01T20:00:00Z", "confidence": 0.97, "evidence": ["x"], "text": "gpu01 is slow with all others", "fix": "y"}]}`
	good, bad := repeated(30, 12), append(repeated(20, 12), repeated(10, 6)...)
	for _, c := range []struct {
		name        string
		there, back []float64
		more        string
		id, title   string
		quote       string
		by          string // who explains pair-dropped
	}{
		{"steady", good, good, "", "", "", "", ""},
		{
			"dropped", bad, good, "", "pair-dropped", "gpu01 to gpu02 dropped to 50% at 2026-01-01 20:00Z",
			"dropped at 2026-01-01 20:00Z from 12", "",
		},
		{"a tenth", append(repeated(20, 12), repeated(10, 10.8)...), good, "", "", "", "", ""},
		{"flaps", repeated(15, 12, 5), good, "", "pair-dropped", "gpu01 to gpu02 flaps", "flaps", ""},
		{
			"fails", append(repeated(20, 12), repeated(5, -1)...), good, "", "pair-dropped", "cannot be measured since",
			"measurements fail", "",
		},
		{
			"the host's fault", bad, bad, slow, "fleet-fault", "gpu01 is slow with all others", "dropped at 2026-01-01 20:00Z",
			"fleet-fault",
		},
		{
			"the fleet says so and this pair is well", good, good, slow, "fleet-fault", "gpu01 is slow with all others",
			"not lower than before, median 12", "",
		},
	} {
		r := vocabulary().NewReader()
		back := history(1, 0.001, c.back...)
		back.From, back.To = "gpu02", "gpu01"
		for name, text := range map[string]string{
			"link.json": linkReply(history(0, 0.001, c.there...), back), "nodes.json": c.more,
		} {
			if text == "" {
				continue
			}
			if err := r.Read(name, strings.NewReader(text)); err != nil {
				t.Fatal(err)
			}
		}
		set, err := r.Set()
		if err != nil {
			t.Fatal(err)
		}
		found := Examine(set).Findings
		if c.id == "" {
			if len(found) > 0 {
				t.Errorf("%s: %+v", c.name, found)
			}
			continue
		}
		if len(found) == 0 || found[0].ID != c.id || !strings.Contains(found[0].Title, c.title) {
			t.Errorf("%s: %+v", c.name, found)
			continue
		}
		if text := fmt.Sprint(found[0].Evidence); !strings.Contains(text, c.quote) {
			t.Errorf("%s: %s", c.name, text)
		}
		if c.by != "" && (len(found) != 2 || found[1].ID != "pair-dropped" || found[1].ExplainedBy != c.by) {
			t.Errorf("%s: %+v", c.name, found)
		}
	}
}
