package predict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"busbar/coll"
	"busbar/schedule"
	"busbar/unit"
)

// Advice is a change that is predicted to be worth its while. Setting is empty
// where no setting of NCCL brings it about without doing harm.
type Advice struct {
	Layout  string `json:"layout,omitempty"`
	Text    string `json:"text"`
	Setting string `json:"setting,omitempty"`
}

// gain is what a change brings at one size.
type gain struct {
	size     unit.Bytes
	from, to Row
}

func (g gain) factor() float64 { return float64(g.from.Time) / float64(g.to.Time) }

// Advise names settings under which NCCL would be faster by more than Worth at
// the sizes of a query. Every setting was tried: the times are those of what NCCL
// would take under it, and what it costs at the other sizes is part of the text.
func (p *Predictor) Advise(q Query) ([]Advice, error) {
	x := newForced(p)
	type group struct {
		change map[string]string
		gains  []gain
	}
	groups := map[string]*group{}
	var far []gain
	for _, size := range q.Sizes {
		op := coll.Op{Kind: q.Kind, Type: q.Type, Root: q.Root, Bytes: size}
		rows, from, err := x.improve(op)
		if err != nil {
			return nil, err
		}
		if clearly(from.Time, rows[0].Time) {
			change := x.change(op, from.Setting, rows[0])
			g := groups[settingText(change)]
			if g == nil {
				g = &group{change: change}
				groups[settingText(change)] = g
			}
			g.gains = append(g.gains, gain{size, from, rows[0]})
		}
		if len(rows) > 1 {
			far = append(far, gain{size, rows[0], rows[1]})
		}
	}
	var out []Advice
	var unfit []gain
	list := slices.Collect(maps.Values(groups))
	slices.SortFunc(list, func(a, b *group) int {
		return cmp.Or(cmp.Compare(len(b.gains), len(a.gains)), cmp.Compare(a.gains[0].size, b.gains[0].size))
	})
	for _, g := range list {
		a, fit, err := p.try(q, g.change, g.gains)
		switch {
		case err != nil:
			return nil, err
		case !fit:
			unfit = append(unfit, g.gains...)
		case a.Text != "":
			out = append(out, a)
		}
	}
	if len(unfit) > 0 {
		out = append(out, unfitAdvice(unfit))
	}
	if slices.Contains(q.Algos, Best) && len(far) > 0 {
		out = append(out, p.foreignAdvice(far))
	}
	return out, nil
}

// improve is what could be at one size, and what is.
func (x *forced) improve(op coll.Op) (rows []Row, from Row, err error) {
	auto, err := x.auto(op)
	if err != nil {
		return nil, Row{}, err
	}
	if from, err = x.row(op, auto, auto); err != nil {
		return nil, Row{}, err
	}
	rows, err = x.best(op, auto, "")
	return rows, from, err
}

// change is what the environment must say for NCCL to take a setting: the
// algorithm alone where NCCL then takes as good a protocol by itself. An empty
// value stands for a variable to remove.
func (x *forced) change(op coll.Op, auto Setting, best Row) map[string]string {
	env, v := x.p.Plan.Env, x.p.Plan.Version
	out := map[string]string{}
	to := best.Setting
	if free, err := x.named(op, "", ""); err == nil && free.Algo == to.Algo && free.Proto == to.Proto {
		for _, key := range []string{"NCCL_ALGO", "NCCL_PROTO"} {
			if _, set := env[key]; set {
				out[key] = "" // what is set now is in the way
			}
		}
	} else if !paired(op.Kind) {
		proto := to.Proto != auto.Proto
		if to.Algo != auto.Algo {
			out["NCCL_ALGO"] = settingFor(v, op.Kind, ncclWord(to.Algo))
			if alone, err := x.named(op, best.Algo, ""); err == nil {
				r, err := x.row(op, alone, auto)
				proto = err != nil || float64(r.Time) > 1.02*float64(best.Time)
			}
		}
		if proto {
			out["NCCL_PROTO"] = settingFor(v, op.Kind, ncclWord(to.Proto))
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

// try sets a change and looks at all sizes of the query: where it helps, and what
// it costs elsewhere. It does not fit where it costs more than it brings. No text:
// it does not help after all.
func (p *Predictor) try(q Query, change map[string]string, gains []gain) (a Advice, fit bool, err error) {
	if len(change) == 0 {
		return Advice{}, true, nil
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
	other, err := New(p.Cluster, p.Layout, p.Plan.Version, env, p.Figures)
	if err != nil {
		return Advice{}, true, err
	}
	want := map[unit.Bytes]bool{}
	for _, g := range gains {
		want[g.size] = true
	}
	x, y := newForced(p), newForced(other)
	var helped []gain
	worst := gain{}
	for _, size := range q.Sizes {
		op := coll.Op{Kind: q.Kind, Type: q.Type, Root: q.Root, Bytes: size}
		g := gain{size: size}
		if g.from, err = x.now(op); err != nil {
			return Advice{}, true, err
		}
		if g.to, err = y.now(op); err != nil {
			return Advice{}, true, err
		}
		switch {
		case want[size] && clearly(g.from.Time, g.to.Time):
			helped = append(helped, g)
		case clearly(g.to.Time, g.from.Time) && (worst.from.Run == nil || g.factor() < worst.factor()):
			worst = g
		}
	}
	if len(helped) == 0 {
		return Advice{}, true, nil
	}
	fit = worst.from.Run == nil || 1/worst.factor() < most(helped).factor()
	return settingAdvice(q, settingText(change), helped, worst), fit, nil
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

// settingAdvice puts a change into words.
func settingAdvice(q Query, setting string, gains []gain, worst gain) Advice {
	g := most(gains)
	kind, sizes := q.Kind, span(q.Sizes, gains)
	text := fmt.Sprintf("with %s, %s of %s would take %v instead of %v (%s instead of %s)",
		setting, kind, sizes, g.to.Time, g.from.Time, way(g.to), way(g.from))
	if len(gains) > 1 {
		text = fmt.Sprintf("with %s, %s of %s would be up to %.2g× as fast (at %v: %v by %s instead of %v by %s)",
			setting, kind, sizes, g.factor(), g.size, g.to.Time, way(g.to), g.from.Time, way(g.from))
	}
	if m := g.to.Margin; m > g.factor() {
		text += fmt.Sprintf("; the difference is within the model's error (×%.2f): measure before setting it", m)
	}
	if g.to.Setting.Channels > g.from.Setting.Channels && strings.Contains(setting, "NCHANNELS") {
		text += "; more channels take more of the GPU from what it computes meanwhile"
	}
	if worst.from.Run != nil {
		text += fmt.Sprintf("; at %v it would be %.2g× slower", worst.size, 1/worst.factor())
	}
	return Advice{Text: text, Setting: setting}
}

// unfitAdvice tells of sizes at which NCCL's choice is not the fastest and no
// setting helps that does not cost more elsewhere.
func unfitAdvice(gains []gain) Advice {
	slices.SortFunc(gains, func(a, b gain) int { return cmp.Compare(b.factor(), a.factor()) })
	const most = 3
	var list []string
	for _, g := range gains[:min(most, len(gains))] {
		list = append(list, fmt.Sprintf("at %v (%v by %s instead of %v by %s)", g.size, g.to.Time, way(g.to), g.from.Time, way(g.from)))
	}
	if n := len(gains) - most; n > 0 {
		list = append(list, fmt.Sprintf("at %d more sizes", n))
	}
	return Advice{Text: "NCCL's choice is not the fastest " + and(list) + "; a setting for these sizes would cost more at others than it brings: a tuner plugin can choose by size, or ask again with the one size that matters"}
}

// way is an algorithm and protocol for a sentence.
func way(r Row) string {
	if r.Setting.Channels == 1 {
		return fmt.Sprintf("%s %s on 1 channel", r.Algo, r.Setting.Proto)
	}
	return fmt.Sprintf("%s %s on %d channels", r.Algo, r.Setting.Proto, r.Setting.Channels)
}

// span is the sizes of gains: runs of neighbours among those asked for.
func span(sizes []unit.Bytes, gains []gain) string {
	var runs []string
	for i := 0; i < len(gains); {
		at := slices.Index(sizes, gains[i].size)
		j := i + 1
		for j < len(gains) && at+j-i < len(sizes) && sizes[at+j-i] == gains[j].size {
			j++
		}
		text := gains[i].size.String()
		if j > i+1 {
			text += "–" + gains[j-1].size.String()
		}
		runs = append(runs, text)
		i = j
	}
	const most = 4
	if len(runs) > most {
		return fmt.Sprintf("%s and %d more ranges of sizes", strings.Join(runs[:most], ", "), len(runs)-most)
	}
	return and(runs)
}

// foreignAdvice tells of algorithms that NCCL does not have.
func (p *Predictor) foreignAdvice(gains []gain) Advice {
	g := most(gains)
	command := fmt.Sprintf("busbar sched --op %s --algo %s -n %d", g.to.Op.Kind, g.to.Setting.Algo, g.to.Ranks)
	if b, err := schedule.Find(g.to.Setting.Algo); err == nil && b.Needs == "groups" {
		command += fmt.Sprintf(" --groups %d", p.Plan.MaxLocalRanks)
	}
	return Advice{Text: fmt.Sprintf("%s would take %v at %v where the best of NCCL takes %v; NCCL has no such algorithm: %s -o msccl writes it for RCCL and MSCCL, which run it at a speed of their own",
		g.to.Algo, g.to.Time, g.size, g.from.Time, command)}
}
