package campaign

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"busbar.dev/unit"
)

// Price is an amount of money for something.
type Price struct {
	Amount   float64
	Currency string
	Per      string
}

// ParsePrice reads 2.50/gpu-hour, 2.50 (for the first of the units), "EUR 2.50/gpu-hour", $0.12/kWh or 60/MWh: an
// amount, with a currency before or after it, for one of the units. The currency is a word and nothing is converted.
func ParsePrice(text string, units ...string) (Price, error) {
	p := Price{Currency: "USD"}
	bad := func(why string) (Price, error) {
		return Price{}, fmt.Errorf("price %.60q: %s; expected an amount such as 2.50/%s", text, why, units[0])
	}
	amount, per, ok := strings.Cut(text, "/")
	if !ok {
		per = units[0]
	}
	for _, u := range units {
		if strings.EqualFold(strings.TrimSpace(per), u) {
			p.Per = u
		}
	}
	if p.Per == "" {
		return bad(fmt.Sprintf("for a %.20q", per))
	}
	word := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == '.' || r == ' ' || r == '_' {
			return -1
		}
		return r
	}, amount)
	number := strings.ReplaceAll(strings.TrimSpace(strings.Replace(amount, word, "", 1)), "_", "")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v >= 0 && v < 1e12) {
		return bad("no amount")
	}
	switch {
	case word == "$":
		p.Currency = "USD"
	case word == "€":
		p.Currency = "EUR"
	case word == "£":
		p.Currency = "GBP"
	case len(word) > 8 || strings.ContainsAny(word, "+-eE") && len(word) < 3:
		return bad(fmt.Sprintf("%.20q is no currency", word))
	case word != "":
		p.Currency = strings.ToUpper(word)
	}
	p.Amount = v
	return p, nil
}

// Prices are what a run pays for.
type Prices struct {
	Currency string
	Rent     float64 // for a GPU and an hour
	Energy   float64 // for a kWh
}

// Bill is what a time of a job takes and costs.
type Bill struct {
	Time  unit.Span `json:"time_s"`
	Rent  float64   `json:"rent"`
	Power float64   `json:"energy"` // money for energy
	Total float64   `json:"total"`
	KWh   float64   `json:"kWh"`
}

// times is so many of them.
func (b Bill) times(n float64) Bill {
	return Bill{b.Time * unit.Span(n), b.Rent * n, b.Power * n, b.Total * n, b.KWh * n}
}

// priced fills in the money.
func (p Prices) priced(t unit.Span, kWh float64, gpus int) Bill {
	b := Bill{Time: t, KWh: kWh, Rent: p.Rent * float64(gpus) * float64(t/unit.Hour), Power: p.Energy * kWh}
	b.Total = b.Rent + b.Power
	return b
}

// Run is a job: steps of some tokens on some GPUs, some of them lost.
type Run struct {
	Phases
	Tokens float64 // of a step
	Draw
	Prices
	Goodput *Goodput // nil: nothing fails and nothing is saved
}

// length is the time of a step.
func (r Run) length() unit.Span { return r.Computing + r.Waiting }

// Step is one step that nothing happens in.
func (r Run) Step() Bill { return r.priced(r.length(), r.Draw.Step(r.Phases).KWh(), r.GPUs) }

// Lasting is what a number of tokens takes, with what goes into checkpoints, restarts and steps that are
// done again. Whole steps are counted.
func (r Run) Lasting(tokens float64) Bill {
	return r.with(math.Ceil(tokens/r.Tokens - 1e-9))
}

// Each is what a number of tokens takes on average.
func (r Run) Each(tokens float64) Bill { return r.with(tokens / r.Tokens) }

// with is what steps take with what is lost beside them. Steps that are done again draw what steps
// draw, GPUs that wait for a checkpoint are waiting, and those of a job that restarts are idle.
func (r Run) with(steps float64) Bill {
	one := r.Step()
	if r.Goodput == nil {
		return one.times(steps)
	}
	g := r.Goodput
	useful := one.Time * unit.Span(steps)
	all := useful / unit.Span(g.Share)
	// Restarts are all that is left: a job that waits for nodes is idle too.
	idle := 1 - g.Share - g.Saving - g.Redoing
	beside := r.all(Waiting).For(all*unit.Span(g.Saving)) + r.all(Idle).For(all*unit.Span(idle))
	return r.priced(all, one.KWh*steps*(1+g.Redoing/g.Share)+beside.KWh(), r.GPUs)
}
