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

// Steps by hand: 8 GPUs at 2.50 an hour.
func TestBill(t *testing.T) {
	r := campaign.Run{Step: 1, Tokens: 1e6, GPUs: 8, Rent: 2.5}
	if b := r.One(); apart(b.Rent, 8*2.5/3600) || apart(float64(b.Time), 1) {
		t.Errorf("%+v", b)
	}
	all := r.Lasting(86400e6 - 1)
	if all.Time != unit.Day || apart(all.Rent, 8*24*2.5) {
		t.Errorf("a day: %+v", all)
	}
	g, err := campaign.Failures{Between: 3600, Save: 36, Interval: 360, Restart: 120}.Goodput(0)
	if err != nil {
		t.Fatal(err)
	}
	r.Goodput = &g
	lossy := r.Lasting(86400e6)
	if apart(float64(lossy.Time), float64(unit.Day)/g.Share) || apart(lossy.Rent, all.Rent/g.Share) {
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
			Step:   unit.Span(rapid.Float64Range(0.01, 120).Draw(t, "step")),
			Tokens: rapid.Float64Range(1, 1e8).Draw(t, "tokens"), GPUs: rapid.IntRange(1, 1<<20).Draw(t, "gpus"), Rent: 2,
		}
		n := rapid.Float64Range(1, 1e13).Draw(t, "n")
		free := r.Lasting(n)
		r.Goodput = &g
		one, two := r.Lasting(n), r.Lasting(2*n)
		if one.Time < free.Time || one.Rent < free.Rent || two.Time < one.Time || two.Rent < one.Rent {
			t.Fatalf("%+v, %+v, %+v", free, one, two)
		}
	})
}
