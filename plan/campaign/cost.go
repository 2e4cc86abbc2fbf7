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

// ParsePrice reads 2.50/gpu-hour, 2.50 (for the first of the units), "EUR 2.50/gpu-hour" or $20/node-hour: an
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

// Bill is what a time of a job takes and costs.
type Bill struct {
	Time unit.Span `json:"time_s"`
	Rent float64   `json:"rent"`
}

// Run is a job: steps of some tokens on some GPUs, some of them lost.
type Run struct {
	Step    unit.Span
	Tokens  float64 // of a step
	GPUs    int
	Rent    float64  // for a GPU and an hour
	Goodput *Goodput // nil: nothing fails and nothing is saved
}

// bill is what a time of all GPUs costs.
func (r Run) bill(t unit.Span) Bill { return Bill{t, r.Rent * float64(r.GPUs) * float64(t/unit.Hour)} }

// One is one step that nothing happens in.
func (r Run) One() Bill { return r.bill(r.Step) }

// Lasting is what a number of tokens takes, with what goes into checkpoints, restarts and steps that are
// done again. Whole steps are counted.
func (r Run) Lasting(tokens float64) Bill {
	return r.with(math.Ceil(tokens/r.Tokens - 1e-9))
}

// Each is what a number of tokens takes on average.
func (r Run) Each(tokens float64) Bill { return r.with(tokens / r.Tokens) }

// with is what steps take with what is lost beside them.
func (r Run) with(steps float64) Bill {
	useful := r.Step * unit.Span(steps)
	if r.Goodput != nil {
		useful /= unit.Span(r.Goodput.Share)
	}
	return r.bill(useful)
}
