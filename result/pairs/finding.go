package pairs

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"busbar.dev/finding"
	"busbar.dev/internal/stats"
)

// What can be wrong in a table.
const (
	SlowHost finding.Kind = "slow-host" // with everybody
	SlowOut  finding.Kind = "slow-out"  // sending to everybody
	SlowIn   finding.Kind = "slow-in"   // receiving from everybody
	SlowPair finding.Kind = "slow-pair" // these two, both ways
	OneWay   finding.Kind = "one-way"   // these two, one way only
)

// A finding must be less than worth of what is usual and so many deviations away;
// deviations are at least noise, for a table can be all too quiet.
const (
	worth  = 0.85
	away   = 5.0
	noise  = 0.02
	latent = 0.6 // latencies scatter more
	// scattered is how many times as far as two measurements of one pair, in the middle of all pairs, something must stand
	// out.
	scattered = 6.0
)

// BothWays is the figure of a direction while the other one is in use as well.
const BothWays = "bandwidth both ways"

// Findings lists what stands out, worst first. A host explains its pairs: they are
// named only where they are slow beyond it.
func (t *Table) Findings() []finding.Finding {
	var list []finding.Finding
	for _, part := range t.parts() {
		list = append(list, part.findings()...)
	}
	list = append(list, t.wire()...)
	slices.SortStableFunc(list, func(a, b finding.Finding) int { return cmp.Compare(a.Factor, b.Factor) })
	return list
}

// findings are those of pairs of one sort.
func (t *Table) findings() []finding.Finding {
	var list []finding.Finding
	for k, f := range []struct {
		name  string
		of    value
		worth float64
	}{{"bandwidth", rate, worth}, {BothWays, both, worth}, {"latency", speed, latent}} {
		e, ok := t.polish(f.of)
		if !ok {
			continue
		}
		f.worth = min(f.worth, math.Exp(-scattered*t.Scatter[k]))
		list = append(list, t.merge(t.hosts(&e, f.name, f.worth))...)
		list = append(list, t.links(&e, f.name, f.worth)...)
	}
	for i := range list {
		list[i].Severity = severity(&list[i])
	}
	return list
}

// merge makes one finding of those that all ranks of a host share.
func (t *Table) merge(list []finding.Finding) []finding.Finding {
	if t.Hosts == nil {
		return list
	}
	var out []finding.Finding
	for i, f := range list {
		host := t.Hosts[f.Ranks[0]]
		mate := func(o finding.Finding) bool { return o.Kind == f.Kind && t.Hosts[o.Ranks[0]] == host }
		ranks := 0
		for _, h := range t.Hosts {
			if h == host {
				ranks++
			}
		}
		all := finding.Finding{Kind: f.Kind, Figure: f.Figure}
		for _, o := range list {
			if mate(o) {
				all.Ranks = append(all.Ranks, o.Ranks...)
				all.Factor += o.Factor / float64(ranks)
				all.Sigma += o.Sigma / float64(ranks)
			}
		}
		switch {
		case ranks < 2 || len(all.Ranks) != ranks:
			out = append(out, f)
		case !slices.ContainsFunc(list[:i], mate): // else it was told with the first
			all.Text = hostText(f.Kind, fmt.Sprintf("%s, with all its %d ranks,", host, ranks), part(f.Figure, all.Factor))
			out = append(out, all)
		}
	}
	return out
}

// hostText says what is slow about a rank or a host.
func hostText(kind finding.Kind, who, by string) string {
	how := "is slow with"
	switch kind {
	case SlowOut:
		how = "sends slowly to"
	case SlowIn:
		how = "receives slowly from"
	}
	return fmt.Sprintf("%s %s all others: %s", who, how, by)
}

// severity follows from the factor; latencies scatter more and matter less.
func severity(f *finding.Finding) finding.Severity {
	warn, bad := 0.75, 0.5
	if f.Figure == "latency" {
		warn, bad = 0.4, 0.1
	}
	switch {
	case f.Factor <= bad:
		return finding.Error
	case f.Factor <= warn:
		return finding.Warn
	}
	return finding.Note
}

func (t *Table) name(i int) string {
	if t.Names[i] == "" {
		return fmt.Sprintf("rank %d", i)
	}
	return t.Names[i]
}

// hosts finds ranks that are slow with everybody. Of two ranks nobody can say which.
func (t *Table) hosts(e *effects, what string, limit float64) []finding.Finding {
	if len(t.Names) < 3 {
		return nil
	}
	so, si := max(spread(e.out), noise), max(spread(e.in), noise)
	var list []finding.Finding
	for i := range t.Names {
		slow := func(v, s float64) bool { return math.Exp(v) < limit && -v > away*s }
		out, in := slow(e.out[i], so), slow(e.in[i], si)
		f := finding.Finding{Ranks: []int{i}, Figure: what}
		switch {
		case out && in:
			f.Kind, f.Factor, f.Sigma = SlowHost, math.Exp((e.out[i]+e.in[i])/2), -(e.out[i]/so+e.in[i]/si)/2
		case out:
			f.Kind, f.Factor, f.Sigma = SlowOut, math.Exp(e.out[i]), -e.out[i]/so
		case in:
			f.Kind, f.Factor, f.Sigma = SlowIn, math.Exp(e.in[i]), -e.in[i]/si
		default:
			continue
		}
		f.Text = hostText(f.Kind, t.name(i), part(what, f.Factor))
		list = append(list, f)
	}
	return list
}

// Compare finds the figures, of which more is better, that stand out below the others of a list, by their places in it.
// How far apart two usually are nobody can say.
func Compare(figures []float64) map[int]finding.Finding {
	usual, s := stats.Nearest(slices.Clone(figures), 0.5), noise
	off := make([]float64, len(figures))
	for i, v := range figures {
		off[i] = math.Log(v / usual)
	}
	if len(off) > 2 {
		s = max(s, spread(off))
	}
	low := map[int]finding.Finding{}
	for i, v := range off {
		if math.Exp(v) < worth && -v > away*s {
			f := finding.Finding{Factor: math.Exp(v), Sigma: -v / s}
			f.Severity = severity(&f)
			low[i] = f
		}
	}
	return low
}

// part says how much of what the others have.
func part(what string, factor float64) string {
	switch what {
	case "latency":
		return fmt.Sprintf("%.1f times the others' latency", 1/factor)
	case BothWays: // of which one alone may be slow
		return fmt.Sprintf("%.0f%% of the others' bandwidth when both send at once", 100*factor)
	}
	return fmt.Sprintf("%.0f%% of the others' %s", 100*factor, what)
}

// links finds pairs that are slow beyond what their hosts explain.
func (t *Table) links(e *effects, what string, limit float64) []finding.Finding {
	var rest []float64
	for _, v := range e.rest {
		rest = append(rest, v)
	}
	s := max(spread(rest), noise)
	slow := func(k [2]int) (float64, bool) {
		v, ok := e.rest[k]
		return v, ok && math.Exp(v) < limit && -v > away*s
	}
	var list []finding.Finding
	for k := range e.rest {
		v, bad := slow(k)
		if !bad {
			continue
		}
		back, also := slow([2]int{k[1], k[0]})
		f := finding.Finding{Ranks: []int{k[0], k[1]}, Figure: what, Kind: OneWay, Factor: math.Exp(v), Sigma: -v / s}
		text := "from %s to %s it is slow, and not the other way: %s"
		if also {
			if k[0] > k[1] {
				continue // named the other way round
			}
			f.Kind, f.Factor, f.Sigma = SlowPair, math.Exp((v+back)/2), -(v+back)/2/s
			text = "%s and %s are slow with each other and not with others: %s"
		}
		f.Text = fmt.Sprintf(text, t.name(k[0]), t.name(k[1]), part(what, f.Factor))
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b finding.Finding) int {
		return cmp.Or(cmp.Compare(a.Factor, b.Factor), slices.Compare(a.Ranks, b.Ranks))
	})
	return list
}
