package campaign_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"busbar.dev/plan/campaign"
	"busbar.dev/unit"
)

func TestParsePrice(t *testing.T) {
	for in, want := range map[string]campaign.Price{
		"2.50":              {2.5, "USD", "gpu-hour"},
		"2.50/gpu-hour":     {2.5, "USD", "gpu-hour"},
		"$2/GPU-hour":       {2, "USD", "gpu-hour"},
		"EUR 20/node-hour":  {20, "EUR", "node-hour"},
		"1.9 chf/gpu-hour":  {1.9, "CHF", "gpu-hour"},
		"€1_000/node-hour":  {1000, "EUR", "node-hour"},
		"0 USD / gpu-hour ": {0, "USD", "gpu-hour"},
	} {
		if got, err := campaign.ParsePrice(in, "gpu-hour", "node-hour"); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "/gpu-hour", "2/kWh", "-2/gpu-hour", "two/gpu-hour", "1e999/gpu-hour", "1.2.3/gpu-hour",
		"2 thousands of dollars/gpu-hour",
	} {
		if got, err := campaign.ParsePrice(in, "gpu-hour", "node-hour"); err == nil {
			t.Errorf("%q: %+v", in, got)
		}
	}
}

func FuzzParsePrice(f *testing.F) {
	for _, s := range []string{"2.50/gpu-hour", "EUR 2/gpu-hour", "$1/kWh", "/", "é/gpu-hour"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := campaign.ParsePrice(s, "gpu-hour", "kWh"); err == nil &&
			(!(p.Amount >= 0) || math.IsInf(p.Amount, 0) || p.Per == "" || p.Currency == "") {
			t.Fatalf("%q: %+v", s, p)
		}
	})
}

// A step by hand: 8 GPUs of 700 W compute for 0.8 s and wait for 0.2 s.
func TestBill(t *testing.T) {
	r := campaign.Run{
		Phases: campaign.Phases{Computing: 0.8, Waiting: 0.2}, Tokens: 1e6,
		Draw:   campaign.Draw{TDP: 700, GPUs: 8, Overhead: 1},
		Prices: campaign.Prices{Currency: "USD", Rent: 2.5, Energy: 0.12},
	}
	b := r.Step()
	joules := 8 * 700 * (0.8 + 0.5*0.2)
	if apart(3.6e6*b.KWh, joules) || apart(b.Rent, 8*2.5/3600) || apart(b.Power, 0.12*joules/3.6e6) ||
		apart(float64(b.Time), 1) {
		t.Errorf("%+v", b)
	}
	all := r.Lasting(86400e6 - 1)
	if all.Time != unit.Day || apart(all.Rent, 8*24*2.5) || apart(all.Total, all.Rent+all.Power) {
		t.Errorf("a day: %+v", all)
	}
	g, err := campaign.Failures{Between: 3600, Save: 36, Interval: 360, Restart: 120}.Goodput(0)
	if err != nil {
		t.Fatal(err)
	}
	r.Goodput = &g
	lossy := r.Lasting(86400e6)
	if apart(float64(lossy.Time), float64(unit.Day)/g.Share) || apart(lossy.Rent, all.Rent/g.Share) ||
		lossy.KWh <= all.KWh || lossy.KWh >= all.KWh/g.Share {
		t.Errorf("with failures: %+v, without: %+v", lossy, all)
	}
	if e := r.Each(1e6); apart(e.Rent*86400, lossy.Rent) {
		t.Errorf("a million tokens: %+v", e)
	}
}

// near reports two numbers that are not.
func apart(a, b float64) bool { return math.Abs(a-b) > 1e-9*math.Max(math.Abs(a), math.Abs(b)) }

// More tokens take more of everything, and failures never make a run cheaper.
func TestBillGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawn(t)
		g, err := f.Goodput(0)
		if err != nil {
			t.Skip()
		}
		r := campaign.Run{
			Phases: campaign.Phases{
				Computing: unit.Span(rapid.Float64Range(0.01, 60).Draw(t, "computing")),
				Waiting:   unit.Span(rapid.Float64Range(0, 60).Draw(t, "waiting")),
			},
			Tokens: rapid.Float64Range(1, 1e8).Draw(t, "tokens"),
			Draw:   campaign.Draw{TDP: 700, GPUs: rapid.IntRange(1, 1<<20).Draw(t, "gpus"), Overhead: 1.5},
			Prices: campaign.Prices{Rent: 2, Energy: 0.1},
		}
		n := rapid.Float64Range(1, 1e13).Draw(t, "n")
		free := r.Lasting(n)
		r.Goodput = &g
		one, two := r.Lasting(n), r.Lasting(2*n)
		if one.Time < free.Time || one.KWh < free.KWh || one.Total < free.Total || two.Time < one.Time ||
			two.Total < one.Total {
			t.Fatalf("%+v, %+v, %+v", free, one, two)
		}
	})
}
