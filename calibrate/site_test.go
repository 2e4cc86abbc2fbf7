package calibrate

import (
	"math"
	"slices"
	"strings"
	"testing"

	"busbar.dev/calibrate/truth"
	"busbar.dev/coll"
	"busbar.dev/predict"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// slowSite is a cluster whose network is slower and whose launches are later than usual.
var slowSite = map[string]float64{"rdma_share": 0.55, "hopper.launch": 2.5}

// suggested are the cases with the sizes nearest to those that are suggested, each measured twice, and with the others.
func suggested(cases []*truth.Case) (in, out []*truth.Case) {
	for _, c := range cases {
		var at []int
		for _, size := range Sizes {
			best := 0
			for i, op := range c.Ops {
				off := func(b unit.Bytes) float64 { return math.Abs(math.Log(float64(b) / float64(size))) }
				if off(op.Bytes) < off(c.Ops[best].Bytes) {
					best = i
				}
			}
			if !slices.Contains(at, best) {
				at = append(at, best)
			}
		}
		in = append(in, c.Pick(func(i int) bool { return slices.Contains(at, i) }),
			c.Pick(func(i int) bool { return slices.Contains(at, i) }))
		out = append(out, c.Pick(func(i int) bool { return !slices.Contains(at, i) }))
	}
	return in, out
}

func median(t *testing.T, cases []*truth.Case, f *sim.Figures) float64 {
	t.Helper()
	rows, err := truth.Rows(cases, f)
	if err != nil {
		t.Fatal(err)
	}
	return truth.Rate(rows).Median
}

// applied predicts cases on their cluster with a calibration, and without it.
func applied(t *testing.T, s *Site, out []*truth.Case) (before, after float64) {
	t.Helper()
	before = median(t, out, sim.Fitted())
	for _, c := range out {
		had := c.Predictor.Cluster.Calibration
		c.Predictor.Cluster.Calibration = s.Calibration(nil, "x")
		defer func() { c.Predictor.Cluster.Calibration, c.Predictor.Figures = had, sim.Fitted() }()
	}
	f, err := predict.Figures(out[0].Predictor.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	return before, median(t, out, f)
}

func site(t *testing.T, in []*truth.Case) *Site {
	t.Helper()
	s, err := Cluster(in, sim.Fitted(), false)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Five sizes, each measured twice, predict the others; what is written and applied is what was fitted, and bars narrow
// for what was measured alone.
func TestFiveSizes(t *testing.T) {
	in, out := suggested(synthetic(t, figures(t, slowSite), 0.005, 0))
	s := site(t, in)
	before, after := applied(t, s, out)
	if !s.Better() || s.Points != 10 || after > 0.07 || after > 0.6*before || s.After.Median > s.Before.Median/2 {
		t.Errorf("%d sizes: other sizes %.3f before, %.3f after; %+v", s.Points, before, after, s)
	}
	for _, m := range s.Moved {
		if !isLaunch(m.Name) && !isLink(m.Name) || m.Value < m.Low || m.Value > m.High {
			t.Errorf("%+v; expected launches and links", m)
		}
	}
	c := s.Calibration(nil, "x")
	if err := c.Check(); err != nil || len(c.Residuals) != 2 || c.Residuals[0].Error == 0 ||
		c.Residuals[0].Source != "x" ||
		!strings.HasPrefix(c.Residuals[0].NCCL, "2.") {
		t.Fatalf("%v: %+v", err, c.Residuals)
	}
	p := out[0].Predictor
	op := out[0].Ops[len(out[0].Ops)/2]
	usual := p.Margin(op)
	p.Cluster.Calibration = c
	defer func() { p.Cluster.Calibration = nil }()
	if own, ok := p.MeasuredMargin(op); !ok || p.Margin(op) > usual || p.Margin(op) > own {
		t.Errorf("bar ×%.2f, was ×%.2f; of what was measured ×%.2f, %v", p.Margin(op), usual, own, ok)
	}
	other := op
	other.Kind++
	if _, ok := p.MeasuredMargin(other); ok {
		t.Errorf("%s was not measured, and has a bar of its own", other.Kind)
	}
	// A second calibration keeps the first one's figures and curves of other calls.
	again := *s
	again.Moved, again.curves = nil, s.curves[:1]
	if next := again.Calibration(c, "y"); len(next.Residuals) != 2 || len(next.Figures) != len(c.Figures) ||
		next.Residuals[0].Source != "y" || next.Residuals[1].Source != "x" {
		t.Errorf("%+v", next)
	}
}

// One measurement that is wrong is left out by its repeat, and does little harm where it has none.
func TestPlantedOutlier(t *testing.T) {
	for _, by := range []float64{0.25, 2, 5} {
		in, out := suggested(synthetic(t, figures(t, slowSite), 0.005, 0)[:1])
		for k := range in[0].Times {
			for twice, cases := range map[bool][]*truth.Case{true: in, false: in[:1]} {
				was := in[0].Times[k]
				in[0].Times[k] = unit.Time(float64(was) * by)
				s := site(t, cases)
				before, after := applied(t, s, out)
				in[0].Times[k] = was
				if after > 1.2*before || twice && (len(s.Dropped) != 1 || s.Dropped[0].Size != in[0].Ops[k].Bytes) {
					t.Errorf("%s times %g, twice measured %v: other sizes %.3f before, %.3f after; left out %+v", in[0].Ops[k].Bytes,
						by, twice, before, after, s.Dropped)
				}
			}
		}
	}
}

// A sweep that no healthy cluster has is refused, slow or in another unit; a healthy one beside it counts.
func TestSickSweep(t *testing.T) {
	cases := synthetic(t, sim.Fitted(), 0.005, 0)
	for by, want := range map[float64]string{12: "busbar doctor", 300: "busbar doctor", 0.01: "another unit"} {
		var in []*truth.Case
		for _, c := range cases {
			sick := c.Pick(func(int) bool { return true })
			sick.Times = slices.Clone(sick.Times)
			in = append(in, sick)
		}
		for i := range in[0].Times {
			in[0].Times[i] = unit.Time(float64(in[0].Times[i]) * by)
		}
		s := site(t, in[:1])
		if s.Better() || len(s.Refused) != 1 || !strings.Contains(s.Refused[0].Reason, want) || s.Points != 0 ||
			math.Abs(math.Log(s.Refused[0].Factor/by)) > 0.1 {
			t.Errorf("times %g: %+v", by, s)
		}
		if s = site(t, in); len(s.Refused) != 1 || s.Points != len(in[1].Ops) {
			t.Errorf("times %g: %d points of the healthy sweep, refused %+v", by, s.Points, s.Refused)
		}
	}
}

// What was measured with an old release, another plugin or other settings says nothing of today's but for launches and
// links, which an old release does not change by much.
func TestOldRelease(t *testing.T) {
	now := synthetic(t, sim.Fitted(), 0.005, 0)
	old := synthetic(t, sim.Fitted(), 0.005, 0)
	for _, c := range old {
		version := c.Predictor.Plan.Version
		version.Minor -= 3
		c.Predictor.Plan.Version = version
		for i := range c.Times {
			c.Times[i] = c.Times[i] * 3 / 2
		}
	}
	s := site(t, old)
	if !s.Better() {
		t.Fatalf("%+v", s)
	}
	if _, own := applied(t, s, old); own > 0.1 {
		t.Errorf("the old release itself is off by %.3f", own)
	}
	before := median(t, now, sim.Fitted())
	bare := *s
	bare.Moved = nil
	if _, after := applied(t, &bare, now); math.Abs(after-before) > 1e-9 {
		t.Errorf("curves of another release: %.3f, were %.3f without", after, before)
	}
}

// Where predictions are right already nothing is kept, and nothing of one or two sizes.
func TestNothingToKeep(t *testing.T) {
	s := site(t, synthetic(t, sim.Fitted(), 0, 0))
	if s.Better() || len(s.Moved) != 0 || s.After.Median > 1e-6 {
		t.Errorf("%+v", s)
	}
	if c := s.Calibration(nil, "x"); len(c.Figures)+len(c.Residuals) != 0 {
		t.Errorf("%+v", c)
	}
	slow := synthetic(t, figures(t, slowSite), 0.01, 0)[0]
	for n := range Fewest {
		if n == 0 {
			continue
		}
		if s := site(t, []*truth.Case{slow.Pick(func(i int) bool { return i < n })}); s.Better() || s.Points != n {
			t.Errorf("%d sizes: %+v", n, s)
		}
	}
	if _, err := Cluster(nil, sim.Fitted(), false); err == nil {
		t.Error("no points were fitted")
	}
	// Firm figures stay where they are.
	s, err := Cluster([]*truth.Case{slow}, sim.Fitted(), true)
	if err != nil || len(s.Moved) != 0 || !s.Better() {
		t.Errorf("%v: %+v", err, s)
	}
}

// What NCCL does another way for another type says little of floats.
func TestOtherType(t *testing.T) {
	c := synthetic(t, sim.Fitted(), 0, 0)[0]
	for i := range c.Ops {
		c.Ops[i].Type = coll.Int8
		c.Settings[i], _ = c.Predictor.Auto(c.Ops[i])
		run, err := c.Predictor.Price(c.Ops[i], c.Settings[i])
		if err != nil {
			t.Fatal(err)
		}
		c.Times[i] = run.Time * 3 / 2
	}
	s := site(t, []*truth.Case{c})
	differ := 0
	for i, op := range c.Ops {
		op.Type = coll.Float
		way, _ := c.Predictor.Auto(op)
		if way.Algo == c.Settings[i].Algo {
			continue
		}
		differ++
		if by := s.curves[0].residual.At(op.Bytes); by > math.Log(1.5)/2 {
			t.Errorf("%s: floats go by %v, int8 by %v; corrected by %.3f", op.Bytes, way, c.Settings[i], by)
		}
	}
	if differ == 0 {
		t.Error("int8 goes as floats do")
	}
}

// Sizes that are off by turns this way and that say nothing of those between them.
func TestByTurns(t *testing.T) {
	for _, by := range []float64{1.2, 2} {
		c := synthetic(t, sim.Fitted(), 0, 0)[0]
		for i := range c.Times {
			c.Times[i] = unit.Time(float64(c.Times[i]) * math.Pow(by, float64(1-i%2*2)))
		}
		if s := site(t, []*truth.Case{c}); s.Better() {
			t.Errorf("by turns ×%g and as much less: kept", by)
		}
	}
}

// Sizes that are held out are predicted by the others alone: their own times do not matter.
func TestHeldOut(t *testing.T) {
	c := synthetic(t, figures(t, slowSite), 0.01, 0)[0]
	predicted := func() float64 {
		s, err := Cluster([]*truth.Case{c}, sim.Fitted(), true)
		if err != nil {
			t.Fatal(err)
		}
		x := s.estimate(nil)
		return x.spots[3].log - x.leftOut(3)
	}
	want := predicted()
	c.Times[3] = c.Times[3] * 11 / 10
	if got := predicted(); math.Abs(got-want) > 1e-9 || want == 0 {
		t.Errorf("%.6f, was %.6f", got, want)
	}
}
