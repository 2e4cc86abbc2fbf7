package campaign_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"busbar.dev/plan/campaign"
	"busbar.dev/unit"
)

func drawn(t *rapid.T) campaign.Failures {
	log := func(name string, lo, hi float64) unit.Span {
		return unit.Span(math.Exp(rapid.Float64Range(math.Log(lo), math.Log(hi)).Draw(t, name)))
	}
	return campaign.Failures{
		Between: log("between", 60, 1e9), Save: log("save", 0.01, 3600), Restart: log("restart", 0.01, 3600),
	}
}

// Shares lie in (0, 1] and add up; goodput grows with the time between failures, and falls with what
// saving and restarting take.
func TestGoodputIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawn(t)
		g, err := f.Goodput(0)
		if err != nil {
			t.Fatal(err)
		}
		if sum := g.Share + g.Saving + g.Redoing + g.Restarts; !(g.Share > 0 && g.Share <= 1) || math.Abs(sum-1) > 1e-9 ||
			g.Saving < 0 || g.Redoing < 0 || g.Restarts < 0 {
			t.Fatalf("%+v: %+v add up to %g", f, g, sum)
		}
		for name, worse := range map[string]campaign.Failures{
			"fails more often":  {Between: f.Between / 1.5, Save: f.Save, Restart: f.Restart},
			"saves slower":      {Between: f.Between, Save: f.Save * 1.5, Restart: f.Restart},
			"restarts slower":   {Between: f.Between, Save: f.Save, Restart: f.Restart * 1.5},
			"saves too often":   {Between: f.Between, Save: f.Save, Restart: f.Restart, Interval: g.Best * 0.6},
			"saves too seldom":  {Between: f.Between, Save: f.Save, Restart: f.Restart, Interval: g.Best * 1.6},
			"saves very seldom": {Between: f.Between, Save: f.Save, Restart: f.Restart, Interval: g.Best * 3},
		} {
			w, err := worse.Goodput(0)
			if err == nil && w.Share > g.Share*(1+1e-12) {
				t.Fatalf("%s: %g, before %g", name, w.Share, g.Share)
			}
		}
	})
}

// The best interval is what a search over all intervals finds, and Young's is near it where saving is
// short beside the time between failures.
func TestBestIsBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawn(t)
		g, err := f.Goodput(0)
		if err != nil {
			t.Fatal(err)
		}
		share := func(x float64) float64 {
			f := f
			f.Interval = unit.Span(math.Exp(x))
			g, err := f.Goodput(0)
			if err != nil {
				return 0
			}
			return g.Share
		}
		lo, hi := math.Log(1e-4), math.Log(1e10)
		for range 200 { // the share has one top
			a, b := lo+(hi-lo)/3, hi-(hi-lo)/3
			if share(a) < share(b) {
				lo = a
			} else {
				hi = b
			}
		}
		if found := share(lo); found > g.Share*(1+1e-9) {
			t.Fatalf("%+v: at %g s %.12f, at the best of %g s %.12f", f, math.Exp(lo), found, float64(g.Best), g.Share)
		}
		if f.Save < f.Between/1000 && math.Abs(float64(g.Young/g.Best)-1) > 0.05 {
			t.Fatalf("%+v: best %v, Young's %v", f, g.Best, g.Young)
		}
	})
}

// Runs played with random failures agree with the formula, from a few GPUs to a million.
func TestSimulation(t *testing.T) {
	for _, n := range []float64{8, 1024, 16384, 131072, 1 << 20} {
		f := campaign.Failures{Between: campaign.MTBF().Value / unit.Span(n), Save: 20, Restart: 300}
		g, err := f.Goodput(0)
		if err != nil {
			t.Fatal(err)
		}
		pool := campaign.Pool{Nodes: 1, Between: g.Between, Replica: 1}
		got := pool.Play(g.Failures, 20_000, 1)
		t.Logf("%.0f GPUs: a failure every %v, checkpoints every %v: goodput %.4f, played %.4f", n, g.Between, g.Interval,
			g.Share, got)
		if math.Abs(got/g.Share-1) > 0.02 {
			t.Errorf("%.0f GPUs: played %.4f; the formula says %.4f", n, got, g.Share)
		}
	}
}

// Llama 3's run: 419 interruptions in 54 days are one in about three hours, and with checkpoints and
// restarts of minutes more than nine tenths of the time are left, as its report says.
func TestLlama3(t *testing.T) {
	m := campaign.MTBF()
	job := m.Value / 16384
	if h := float64(job / unit.Hour); math.Abs(h-54*24/419.0) > 1e-9 || h < 3 || h > 3.2 {
		t.Errorf("an interruption every %v", job)
	}
	g, err := campaign.Failures{Between: job, Save: 30, Restart: 600}.Goodput(0)
	if err != nil || g.Share < 0.85 || g.Share > 0.95 {
		t.Errorf("%+v, %v", g, err)
	}
	if m.Source == "" || campaign.Restarting().Source == "" || campaign.Storage().Source == "" {
		t.Error("a figure without a source")
	}
}

func TestFailuresAreChecked(t *testing.T) {
	for _, f := range []campaign.Failures{
		{},
		{Between: -1},
		{Between: 1, Save: -1},
		{Between: unit.Span(math.NaN())},
		{Between: 1, Save: unit.Span(math.NaN())},
		{Between: 1, Save: 1e6, Restart: 1e6},
		{Between: 1, Restart: unit.Span(math.Inf(1))},
	} {
		if g, err := f.Goodput(0); err == nil {
			t.Errorf("%+v: %+v", f, g)
		}
	}
	// What costs nothing is saved after every step.
	g, err := campaign.Failures{Between: 1e6}.Goodput(2)
	if err != nil || g.Interval != 2 || g.Share < 0.999 {
		t.Errorf("%+v, %v", g, err)
	}
}
