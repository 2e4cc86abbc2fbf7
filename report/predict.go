package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/predict"
	"busbar.dev/query"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// library is what runs the collectives.
func library(d *query.PredictDoc) string {
	switch d.Library {
	case "rccl":
		return "RCCL " + d.NCCL
	case "hccl":
		return "HCCL"
	}
	return "NCCL " + d.NCCL
}

// runs is the library's name alone.
func (f *forecast) runs() string {
	name, _, _ := strings.Cut(library(f.PredictDoc), " ")
	return name
}

// Predict prints a prediction as nccl-tests prints a measurement, and below it
// what limits the rows, which setting would help and who wins; then how busy links
// are and what NCCL sets up, where that was asked for.
func Predict(p *Page, d *query.PredictDoc) {
	f := &forecast{d, p.Verbose}
	p.lines(p.bold(f.title()))
	if d.Floors {
		p.table(f.floors())
		f.branches(p)
		return
	}
	f.table(p)
	f.branches(p)
	f.grades(p)
	f.limits(p)
	for _, t := range f.Caveats {
		p.para("", p.yellow("note")+": "+t)
	}
	for _, r := range predict.GroupVerdicts(f.Compare) {
		p.para("", "at "+predict.Span(f.sizes(), r.Sizes)+": "+r.Text)
	}
	f.verdictOnNCCL(p)
	for _, a := range f.Advice {
		p.para("", p.green("advice")+when(len(f.Sides) > 1, " for "+a.Layout)+": "+a.Text)
	}
	for _, t := range f.Skipped {
		p.para("", p.yellow("left out")+": "+t)
	}
	for _, r := range d.Rows {
		if r.Links != nil {
			busyLinks(p, r.Links)
		}
	}
	plans := d.Plans
	if len(plans) == 0 && len(d.Sides) > 0 {
		plans = []predict.LayoutPlan{{Layout: d.Sides[0].Layout, Plan: d.Plan}}
	}
	for _, x := range plans {
		if x.Plan != nil {
			p.printf("\nNCCL %v on %s\n%s", x.Plan.Version, x.Layout, x.Plan.Log)
		}
	}
}

// forecast is a prediction as text and pictures show it.
type forecast struct {
	*query.PredictDoc
	parts bool // show what the time is made of
}

// floors are the lower ends of what is expected, as other programs check against.
func (f *forecast) floors() *texttab.Table {
	many := slices.ContainsFunc(f.Rows, func(r predict.Row) bool { return !r.Chosen })
	t := texttab.New(texttab.If(f.Compared, "layout"), ">size (B)|%d", texttab.If(many, "algo"), texttab.If(many, "proto"),
		">floor of busbw (GB/s)|%.2f", ">at most (us)",
		"grade")
	for _, r := range f.Rows {
		high := r.High
		for _, b := range r.Branches {
			high = max(high, b.High)
		}
		t.Add(r.Layout, r.Size, r.Algo, r.Proto, r.Floor.GBps(), micros(high), string(r.Grade))
	}
	return t
}

// branches tells of facts that nobody stated and that decide, each once, with the largest size that it decides.
func (f *forecast) branches(p *Page) {
	type fact struct{ layout, taken, other string }
	var facts grouped[fact, predict.Row]
	for _, r := range f.Rows {
		if len(r.Branches) > 1 {
			facts.put(fact{r.Layout, r.Branches[0].If, r.Branches[1].If}, r)
		}
	}
	for k, rows := range facts.all() {
		var last predict.Row
		for _, r := range rows {
			if r.Chosen || !last.Chosen {
				last = r
			}
		}
		b, list := last.Branches[1], sizesOf(rows)
		p.para("", fmt.Sprintf("%s%s: assumed %s; if %s, %v takes %v (%v to %v; %s %s) instead of %v; %s tells",
			p.yellow("fork"), when(len(f.Sides) > 1, " on "+k.layout)+when(len(list) < len(f.sizes()), " at "+
				predict.Span(f.sizes(), list)), k.taken, k.other, last.Asked, b.Time, b.Low, b.High, b.Algo, b.Proto, last.Time,
			b.Tell))
	}
}

// grades tells how good the error bars are, and what would narrow those that say little.
func (f *forecast) grades(p *Page) {
	var grades []string
	widest := predict.Row{}
	factor := func(r predict.Row) float64 { return float64(r.High) / float64(max(r.Time, 1)) }
	for _, r := range f.Rows {
		if text := string(r.Grade); r.Barred() && !slices.Contains(grades, text) {
			grades = append(grades, text)
		}
		if r.Barred() && factor(r) > factor(widest) {
			widest = r
		}
	}
	if len(grades) == 0 {
		return
	}
	text := fmt.Sprintf("bars: %s; ×%.2f at most (%s of such calls)", strings.Join(grades, ", "), factor(widest),
		words.Plural(widest.Publishers, "publisher"))
	if f.Measure != "" {
		text += "; half a minute narrows it: " + f.Measure
	}
	p.para("", p.dim(text))
}

// sizes are those asked for, in order.
func (f *forecast) sizes() []unit.Bytes { return sizesOf(f.Rows) }

func sizesOf(rows []predict.Row) []unit.Bytes {
	var list []unit.Bytes
	for _, r := range rows {
		list = append(list, r.Asked)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// verdictOnNCCL answers "is there a better setting?" where no advice does.
func (f *forecast) verdictOnNCCL(p *Page) {
	var fine, stuck []string
	worst := 1.0
	for _, side := range f.Sides {
		advised := slices.ContainsFunc(f.Advice, func(a predict.Advice) bool { return a.Layout == side.Layout })
		switch {
		case side.Ranks < 2 || side.Gain == 0 || advised:
		case side.Gain <= predict.Worth:
			fine = append(fine, side.Layout)
		default:
			stuck = append(stuck, side.Layout)
			worst = max(worst, side.Gain)
		}
	}
	on := func(list []string) string { return when(len(f.Sides) > 1, " on "+strings.Join(list, ", ")) }
	if len(fine) > 0 {
		p.lines(p.dim(f.runs() + "'s choice is the fastest of the candidates" + on(fine)))
	}
	if len(stuck) > 0 {
		p.para("", fmt.Sprintf("%s's choice is not the fastest of the candidates%s (up to %.2g×), and no %[1]s "+
			"setting changes it", f.runs(), on(stuck), worst))
	}
}

func (f *forecast) title() string {
	text := f.Op.String() + " on " + f.Cluster
	if len(f.Sides) == 1 {
		text += ", " + f.side()
	} else {
		var names []string
		for _, x := range f.Sides {
			names = append(names, x.Layout)
		}
		text += ", " + strings.Join(names, " against ")
	}
	return text + ", " + library(f.PredictDoc) + "; predicted, model " + f.Model
}

// side is the layout of a forecast that has one.
func (f *forecast) side() string {
	x := f.Sides[0]
	return fmt.Sprintf("%s (%s on %s)", x.Layout, words.Plural(x.Ranks, "rank"), words.Plural(x.Nodes, "node"))
}

// table is the rows. A star stands behind what NCCL chooses where there are rows
// that it does not, a plus behind what it cannot run.
func (f *forecast) table(p *Page) {
	p.table(f.rows())
	marks := f.marks()
	for _, k := range []struct{ mark, means string }{
		{"*", "* " + f.runs() + "'s choice"}, {"+", "+ not an " + f.runs() + " algorithm"},
	} {
		if slices.ContainsFunc(f.Rows, func(r predict.Row) bool { return marks(r) == k.mark }) {
			p.lines(p.dim(k.means))
		}
	}
}

// barred reports whether any row has an error bar.
func (f *forecast) barred() bool {
	return slices.ContainsFunc(f.Rows, func(r predict.Row) bool { return r.Barred() })
}

func (f *forecast) rows() *texttab.Table {
	t := texttab.New(texttab.If(f.Compared, "layout"), ">size (B)|%d", ">count", "type", "algo", "proto", ">channels",
		">time (us)", texttab.If(f.barred(), ">from", ">to"), texttab.If(f.parts, ">launch", ">latency", ">sync", ">moving"),
		">algbw (GB/s)|%.2f", ">busbw (GB/s)|%.2f", "bottleneck")
	marks := f.marks()
	for _, r := range f.Rows {
		p := &r.Parts
		t.Add(r.Layout, r.Size, r.Count, r.Dtype, r.Algo+marks(r), r.Proto, r.Channels, micros(r.Time), micros(r.Low),
			micros(r.High), micros(p.Launch), micros(p.Latency), micros(p.Sync), micros(p.Moving), r.AlgBW.GBps(),
			r.BusBW.GBps(), f.where(r.Limit))
	}
	return t
}

// marks tells how to mark rows: those that NCCL takes only where others stand
// beside them.
func (f *forecast) marks() func(predict.Row) string {
	star := when(f.has(false), "*")
	return func(r predict.Row) string {
		switch {
		case r.Chosen:
			return star
		case r.Beyond:
			return "+"
		}
		return ""
	}
}

// micros prints µs with nccl-tests' digits.
func micros(t unit.Time) string {
	return rounded(t.Micros(), 100)
}

// rounded is a number with two digits behind the point below a bound, with one below ten times that, else with none.
func rounded(x, bound float64) string {
	switch {
	case x < bound:
		return fmt.Sprintf("%.2f", x)
	case x < 10*bound:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// where names what limits; AMD's links between GPUs by their own name.
func (f *forecast) where(l result.Limit) string {
	if l.Kind == result.ByNVLink && f.Library == "rccl" {
		l.Kind = "xgmi"
	}
	return where(l)
}

func where(l result.Limit) string { return strings.TrimSpace(string(l.Kind) + " " + l.Where) }

// limits explains every bottleneck of the table once.
func (f *forecast) limits(p *Page) {
	const most = 6
	seen, told := map[string]bool{}, 0
	for _, r := range f.Rows {
		side := when(f.Compared, r.Layout+" ")
		lead, text := side+f.where(r.Limit), side+r.Limit.Text
		if r.Limit.Kind == result.ByNothing || seen[lead] || f.Compared && seen[text] {
			continue
		}
		seen[lead], seen[text] = true, true
		if told++; told > most {
			return
		}
		p.para("", p.dim(lead)+": "+r.Limit.Text)
	}
}

// busyLinks is the table of links below a prediction.
func busyLinks(p *Page, list []result.Links) {
	t := texttab.New(">busy (%)|%.1f", ">bytes each", ">rate", "kind", "hosts", "links", "")
	for _, g := range list {
		hosts := cmp.Or(g.Hosts, "network")
		for _, u := range g.Uses {
			t.Add(100*u.Share, u.Bytes, orDash(u.Rate), u.Kind, cut(hosts, 40), several(u.Which, 4, 3),
				when(u.Tight, "bottleneck"))
		}
	}
	p.printf("\nLink load, one direction:\n")
	p.table(t)
}

// several are names as far as a line has room for them; of more, the first are shown.
func several(names []string, room, shown int) string {
	if len(names) <= room {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}
