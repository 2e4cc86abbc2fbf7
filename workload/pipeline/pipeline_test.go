package pipeline_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"busbar.dev/unit"
	"busbar.dev/workload/pipeline"
)

// even is stages that all take as long.
func even(s pipeline.Shape, f, b, w unit.Span) *pipeline.Times {
	t := &pipeline.Times{}
	for range s.Ranks * s.Chunks {
		t.Forward, t.Backward, t.Weight = append(t.Forward, f), append(t.Backward, b), append(t.Weight, w)
	}
	return t
}

func length(t interface {
	Helper()
	Fatal(...any)
}, s pipeline.Shape, x *pipeline.Times,
) unit.Span {
	t.Helper()
	p, err := pipeline.NewPlan(s)
	if err != nil {
		t.Fatal(s, err)
	}
	return p.Simulate(x, nil)
}

// Bubbles are those of the papers, for equal stages and messages that take no time.
func TestBubbles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.IntRange(2, 12).Draw(t, "ranks")
		v := rapid.IntRange(2, 5).Draw(t, "chunks")
		m := p * rapid.IntRange(2, 6).Draw(t, "rounds")
		f := unit.Span(rapid.Float64Range(0.5, 2).Draw(t, "forward"))
		b := unit.Span(rapid.Float64Range(0.5, 4).Draw(t, "backward"))
		for _, x := range []struct {
			s    pipeline.Shape
			f, b unit.Span
			w    unit.Span
			want float64 // idle time over that of computing
		}{
			// (p − 1)/(m + p − 1) of the step is (p − 1)/m of computing.
			{pipeline.Shape{Schedule: pipeline.GPipe, Ranks: p, Chunks: 1, Micros: m}, f, b, 0, float64(p-1) / float64(m)},
			{pipeline.Shape{Schedule: pipeline.Alternate, Ranks: p, Chunks: 1, Micros: m}, f, b, 0, float64(p-1) / float64(m)},
			{
				pipeline.Shape{Schedule: pipeline.Interleaved, Ranks: p, Chunks: v, Micros: m},
				f, b, 0,
				float64(p-1) / float64(v*m),
			},
			// (p − 1)(F + B − W), which is a third of 1F1B's when all are equal.
			{
				pipeline.Shape{Schedule: pipeline.ZeroBubble, Ranks: p, Chunks: 1, Micros: m}, f, f, f, float64(p-1) / float64(3*m),
			},
			{pipeline.Shape{Schedule: pipeline.ZeroBubble2, Ranks: p, Chunks: 1, Micros: m}, f, f, f, 0},
			{pipeline.Shape{Schedule: pipeline.ZeroBubbleV, Ranks: p, Chunks: 2, Micros: m}, f, f, f, 0},
		} {
			work := (x.f + x.b + x.w) * unit.Span(m*x.s.Chunks)
			got := float64(length(t, x.s, even(x.s, x.f, x.b, x.w))/work) - 1
			if math.Abs(got-x.want) > 1e-9 {
				t.Errorf("%+v: %.6f of the work is idle; expected %.6f", x.s, got, x.want)
			}
		}
	})
}

// Every schedule does every pass once, in an order that ends, whatever the numbers; no rank does
// two things at once, and what is held is what Held says.
func TestOrdersAreWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := pipeline.Shape{
			Schedule: rapid.SampledFrom(pipeline.Schedules()).Draw(t, "schedule"), Ranks: rapid.IntRange(1, 9).Draw(t, "ranks"),
			Chunks: 1, Micros: rapid.IntRange(1, 40).Draw(t, "micros"),
		}
		switch s.Schedule {
		case pipeline.Interleaved:
			s.Chunks = rapid.IntRange(2, 4).Draw(t, "chunks")
			s.Micros = s.Ranks * (1 + s.Micros/8)
		case pipeline.ZeroBubbleV:
			s.Chunks = 2
		}
		x := uneven(t, s)
		p, err := pipeline.NewPlan(s)
		if err != nil {
			t.Fatal(err)
		}
		count := map[[4]int]int{}
		ends := make([]unit.Span, s.Ranks)
		held, most := make([]int, s.Ranks), make([]int, s.Ranks)
		frees := pipeline.Backward
		if s.Schedule.Splits() {
			frees = pipeline.Weight
		}
		total := p.Simulate(x, func(y pipeline.Event) {
			count[[4]int{y.Rank, int(y.Pass.Chunk), int(y.Pass.Micro), int(y.Pass.Kind)}]++
			if y.From < ends[y.Rank] {
				t.Fatalf("%+v: %+v begins before the one before it ends", s, y)
			}
			ends[y.Rank] = y.To
			switch y.Pass.Kind {
			case pipeline.Forward:
				held[y.Rank]++
				most[y.Rank] = max(most[y.Rank], held[y.Rank])
			case frees:
				held[y.Rank]--
			}
		})
		kinds := 2
		if s.Schedule.Splits() {
			kinds = 3
		}
		if want := s.Ranks * s.Chunks * s.Micros * kinds; len(count) != want {
			t.Fatalf("%+v: %d passes; expected %d", s, len(count), want)
		}
		for k, n := range count {
			if n != 1 {
				t.Fatalf("%+v: pass %v comes %d times", s, k, n)
			}
		}
		for r, n := range most {
			got, said := float64(n)/float64(s.Chunks), s.Held(r)
			if got > said+1e-9 || got < said-1e-9 && s.Micros >= 2*s.Ranks {
				t.Errorf("%+v: rank %d holds %g micro-batches; Held says %g", s, r, got, said)
			}
		}
		for place := range s.Ranks * s.Chunks {
			r, c := s.Owner(place)
			if s.Place(r, c) != place {
				t.Fatalf("%+v: place %d is rank %d, chunk %d, at %d", s, place, r, c, s.Place(r, c))
			}
		}
		busiest := unit.Span(0)
		for r := range s.Ranks {
			work := unit.Span(0)
			for c := range s.Chunks {
				k := s.Place(r, c)
				work += x.Forward[k] + x.Backward[k] + x.Weight[k]
			}
			busiest = max(busiest, work*unit.Span(s.Micros))
		}
		if total < busiest-1e-9 {
			t.Errorf("%+v: takes %g, its busiest rank %g", s, total, busiest)
		}
	})
}

// uneven is stages and messages of any time.
func uneven(t *rapid.T, s pipeline.Shape) *pipeline.Times {
	x := even(s, 0, 0, 0)
	for i := range x.Forward {
		x.Forward[i] = unit.Span(rapid.Float64Range(0.8, 1.2).Draw(t, "f"))
		x.Backward[i] = unit.Span(rapid.Float64Range(0.8, 1.6).Draw(t, "b"))
		x.Weight[i] = unit.Span(rapid.Float64Range(0.6, 1.2).Draw(t, "w"))
	}
	x.Message = unit.Span(rapid.Float64Range(0, 0.3).Draw(t, "message"))
	return x
}

// What is played of many micro-batches says what all of them take.
func TestSteady(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := pipeline.Shape{
			Schedule: rapid.SampledFrom(pipeline.Schedules()).Draw(t, "schedule"), Ranks: rapid.IntRange(2, 24).Draw(t, "ranks"),
			Chunks: 1, Micros: rapid.IntRange(1, 300).Draw(t, "micros"),
		}
		if s.Schedule == pipeline.Interleaved || s.Schedule == pipeline.ZeroBubbleV {
			s.Chunks = 2
			s.Micros += (s.Ranks - s.Micros%s.Ranks) % s.Ranks
		}
		x := uneven(t, s)
		p, err := pipeline.NewSteady(s)
		if err != nil {
			t.Fatal(err)
		}
		got := p.Time(x)
		if want := length(t, s, x); math.Abs(float64(got/want)-1) > 0.02 {
			t.Errorf("%+v: %g from the steady part, %g played", s, got, want)
		}
	})
}

func TestShapesAreChecked(t *testing.T) {
	for want, s := range map[string]pipeline.Shape{
		"7 are not a multiple of it":    {Schedule: pipeline.Interleaved, Ranks: 4, Chunks: 2, Micros: 7},
		"vpp=2 or more":                 {Schedule: pipeline.Interleaved, Ranks: 4, Chunks: 1, Micros: 8},
		"is for the interleaved":        {Schedule: pipeline.GPipe, Ranks: 4, Chunks: 2, Micros: 8},
		"vpp=3 should be 2":             {Schedule: pipeline.ZeroBubbleV, Ranks: 4, Chunks: 3, Micros: 8},
		"expected one of gpipe, 1f1b, ": {Schedule: "dualpipe", Ranks: 4, Chunks: 1, Micros: 8},
		"at least 1":                    {Schedule: pipeline.GPipe, Ranks: 4, Chunks: 1},
	} {
		if _, err := pipeline.NewPlan(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; expected %q", s, err, want)
		}
	}
}

func BenchmarkSteady(b *testing.B) {
	s := pipeline.Shape{Schedule: pipeline.Alternate, Ranks: 8, Chunks: 1, Micros: 256}
	p, err := pipeline.NewSteady(s)
	if err != nil {
		b.Fatal(err)
	}
	x := even(s, 1, 2, 0)
	for b.Loop() {
		p.Time(x)
	}
}
