package predict

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// Advice is a change that is predicted to be worth its while. Setting is empty
// where no setting of NCCL brings it about without doing harm.
type Advice struct {
	Layout  string  `json:"layout,omitempty"`
	Text    string  `json:"text"`
	Setting string  `json:"setting,omitempty"`
	Gain    float64 `json:"gain,omitempty"` // times as fast, at the size where that is most
}

// gain is what a change brings at one size.
type gain struct {
	size     unit.Bytes
	from, to Row
}

func (g gain) factor() float64 { return float64(g.from.Time) / float64(g.to.Time) }

// Recommendation is the answer of Advise.
type Recommendation struct {
	Advice []Advice
	// Gain is how many times as fast the fastest that NCCL can run is as what it
	// takes, at the size where that is most; 1 where it takes the fastest.
	Gain float64
}

// Advise names the setting under which NCCL would be faster by more than Worth at
// the sizes of a query: of several, the one that brings most over all sizes. Every
// setting was tried: the times are those of what NCCL would take under it, and what
// it costs at other sizes is part of the text.
func (p *Predictor) Advise(q Query) (Recommendation, error) {
	x := newForced(p)
	groups := map[string]*group{}
	out := Recommendation{Gain: 1}
	for _, size := range q.Sizes {
		if err := q.stopped(); err != nil {
			return out, err
		}
		op := coll.Op{Kind: q.Kind, Type: q.Type, Root: q.Root, Bytes: size}
		best, from, err := x.improve(op)
		if err != nil {
			return out, err
		}
		now := gain{size, from, best}
		if now.to.Time > 0 {
			out.Gain = max(out.Gain, now.factor())
		}
		if clearly(from.Time, best.Time) {
			change := x.change(op, from.setting, best)
			g := groups[settingText(change)]
			if g == nil {
				g = &group{change: change}
				groups[settingText(change)] = g
			}
			g.gains = append(g.gains, now)
		}
	}
	if a, err := p.recommend(q, groups); err != nil {
		return out, err
	} else if a.Text != "" {
		out.Advice = append(out.Advice, a)
	}
	return out, nil
}

// group is the sizes at which one change helps.
type group struct {
	change map[string]string
	gains  []gain
}

// recommend is the one change that brings most, or, where every one costs more
// than it brings, where NCCL's choice is not the fastest.
func (p *Predictor) recommend(q Query, groups map[string]*group) (Advice, error) {
	var best trial
	var unfit, all []gain
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		g := groups[key]
		t, err := p.try(q, g.change, g.gains)
		switch {
		case err != nil:
			return Advice{}, err
		case len(t.helped) == 0:
			continue
		case !t.fits():
			unfit = append(unfit, g.gains...)
		case t.score > best.score:
			best = t
		}
		all = append(all, g.gains...)
	}
	switch {
	case len(best.helped) > 0:
		all = slices.DeleteFunc(all, func(g gain) bool { return helps(best.helped, g.size) })
		return best.advice(q, len(all)), nil
	case len(unfit) > 0:
		return p.unfitAdvice(unfit, len(q.Sizes)), nil
	}
	return Advice{}, nil
}

// improve is what could be at one size, and what is.
func (x *forced) improve(op coll.Op) (best, from Row, err error) {
	auto, err := x.auto(op)
	if err != nil {
		return best, from, err
	}
	if from, err = x.row(op, auto, auto); err != nil {
		return best, from, err
	}
	rows, err := x.best(op, auto, "", false)
	if err != nil {
		return best, from, err
	}
	return rows[0], from, nil
}

// change is what the environment must say for NCCL to take a setting: the
// algorithm alone where NCCL then takes as good a protocol by itself. An empty
// value stands for a variable to remove.
func (x *forced) change(op coll.Op, auto Setting, best Row) map[string]string {
	env, v := x.p.Plan.Env, x.p.Plan.Version
	out := map[string]string{}
	to := best.setting
	if free, err := x.named(op, "", ""); err == nil && free.Algo == to.Algo && free.Proto == to.Proto {
		for _, key := range []string{"NCCL_ALGO", "NCCL_PROTO"} {
			if _, set := env[key]; set {
				out[key] = "" // what is set now is in the way
			}
		}
	} else if !paired(op.Kind) {
		proto := to.Proto != auto.Proto
		if to.Algo != auto.Algo {
			out["NCCL_ALGO"] = SettingFor(v, op.Kind, ncclWord(to.Algo))
			if alone, err := x.named(op, best.Algo, ""); err == nil {
				r, err := x.row(op, alone, auto)
				proto = err != nil || float64(r.Time) > 1.02*float64(best.Time)
			}
		}
		if proto {
			out["NCCL_PROTO"] = SettingFor(v, op.Kind, ncclWord(to.Proto))
		}
	}
	if to.Channels > x.p.Plan.Count() {
		out["NCCL_MIN_NCHANNELS"] = strconv.Itoa(to.Channels)
	}
	return out
}

// settingText prints a change as one would set it.
func settingText(change map[string]string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(change)) {
		switch v := change[key]; {
		case v == "":
			list = append(list, "unset "+key)
		case strings.ContainsAny(v, ";,"):
			list = append(list, key+"='"+v+"'")
		default:
			list = append(list, key+"="+v)
		}
	}
	return strings.Join(list, " ")
}

// trial is a change that was set in the model, over all sizes of a query.
type trial struct {
	setting string
	helped  []gain
	worst   gain    // where it costs most; no run: nowhere
	score   float64 // the sum of the logarithms of all gains
}

// fits reports a change that brings more than it costs.
func (t *trial) fits() bool {
	return t.score > 0 && (t.worst.from.run == nil || 1/t.worst.factor() < most(t.helped).factor())
}

// try sets a change and looks at all sizes of the query: where it helps, and what
// it costs elsewhere.
func (p *Predictor) try(q Query, change map[string]string, gains []gain) (trial, error) {
	t := trial{setting: settingText(change)}
	if len(change) == 0 {
		return t, nil
	}
	env := maps.Clone(p.Plan.Env)
	if env == nil {
		env = map[string]string{}
	}
	for k, v := range change {
		if env[k] = v; v == "" {
			delete(env, k)
		}
	}
	other, err := p.under(env)
	if err != nil {
		return t, err
	}
	x, y := newForced(p), newForced(other)
	for _, size := range q.Sizes {
		if err := q.stopped(); err != nil {
			return t, err
		}
		op := coll.Op{Kind: q.Kind, Type: q.Type, Root: q.Root, Bytes: size}
		g := gain{size: size}
		if g.from, err = x.now(op); err != nil {
			return t, err
		}
		if g.to, err = y.now(op); err != nil {
			return t, err
		}
		if g.from.Time > 0 && g.to.Time > 0 {
			t.score += math.Log(g.factor())
		}
		switch {
		case clearly(g.from.Time, g.to.Time):
			t.helped = append(t.helped, g)
		case clearly(g.to.Time, g.from.Time) && (t.worst.from.run == nil || g.factor() < t.worst.factor()):
			t.worst = g
		}
	}
	if !slices.ContainsFunc(gains, func(g gain) bool { return helps(t.helped, g.size) }) {
		t.helped = nil // not where it was meant to
	}
	return t, nil
}

// helps reports whether a size is among gains.
func helps(gains []gain, size unit.Bytes) bool {
	return slices.ContainsFunc(gains, func(g gain) bool { return g.size == size })
}

// now is the row that NCCL takes.
func (x *forced) now(op coll.Op) (Row, error) {
	auto, err := x.auto(op)
	if err != nil {
		return Row{}, err
	}
	return x.row(op, auto, auto)
}

// most is the greatest gain.
func most(gains []gain) gain {
	return slices.MaxFunc(gains, func(a, b gain) int { return cmp.Compare(a.factor(), b.factor()) })
}

// advice puts a change into words. others is the number of sizes at which another
// change would help.
func (t *trial) advice(q Query, others int) Advice {
	g := most(t.helped)
	text := fmt.Sprintf("with %s, %s of %s would take %v instead of %v (%s instead of %s)",
		t.setting, q.Kind, g.size, g.to.Time, g.from.Time, algoAndProto(g.to), algoAndProto(g.from))
	if len(t.helped) > 1 {
		text = fmt.Sprintf("with %s, %s of %s would be up to %.2g× as fast (at %v %v instead of %v)",
			t.setting, q.Kind, span(q.Sizes, t.helped), g.factor(), g.size, g.to.Time, g.from.Time)
	}
	if m := g.to.run.Margin; m > g.factor() {
		text += fmt.Sprintf("; within the model's error (×%.2f): measure before setting it", m)
	}
	if g.to.setting.Channels > g.from.setting.Channels && strings.Contains(t.setting, "NCHANNELS") {
		text += "; more channels leave fewer SMs for compute"
	}
	if t.worst.from.run != nil {
		text += fmt.Sprintf("; at %v it would be %.2g× slower", t.worst.size, 1/t.worst.factor())
	}
	if others > 0 {
		text += fmt.Sprintf("; at %s another setting would help (ask about one size)", words.Plural(others, "size"))
	}
	return Advice{Text: text, Setting: t.setting, Gain: math.Round(g.factor()*1e4) / 1e4}
}

// unfitAdvice tells of sizes at which NCCL's choice is not the fastest and no
// setting helps that does not cost more elsewhere.
func (p *Predictor) unfitAdvice(gains []gain, sizes int) Advice {
	g := most(gains)
	return Advice{Text: fmt.Sprintf("%s's choice is not the fastest at %d of %s; the largest difference is at %v: %v "+
		"with %s instead of %v. No single setting helps at all sizes: ask about one size, or use a tuner plugin",
		p.Library(), len(gains), words.Plural(sizes, "size"), g.size, g.to.Time, algoAndProto(g.to), g.from.Time)}
}

// algoAndProto is an algorithm and protocol for a sentence.
func algoAndProto(r Row) string {
	if r.setting.Channels == 1 {
		return fmt.Sprintf("%s %s on 1 channel", r.Algo, r.setting.Proto)
	}
	return fmt.Sprintf("%s %s on %d channels", r.Algo, r.setting.Proto, r.setting.Channels)
}

func span(sizes []unit.Bytes, gains []gain) string {
	var list []unit.Bytes
	for _, g := range gains {
		list = append(list, g.size)
	}
	return Span(sizes, list)
}
