package report

import (
	"cmp"
	"fmt"
	"io"
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
func Predict(w io.Writer, d *query.PredictDoc, o TextOptions) error {
	f := &forecast{d, o.Verbose, o.Width}
	if err := write(w, o, func(s style) string { return f.text(s, o.width()) }); err != nil {
		return err
	}
	for i := range d.Rows {
		if d.Rows[i].Links == nil {
			continue
		}
		if err := busyLinks(w, d.Rows[i].Links); err != nil {
			return err
		}
	}
	plans := d.Plans
	if len(plans) == 0 && len(d.Sides) > 0 {
		plans = []predict.LayoutPlan{{Layout: d.Sides[0].Layout, Plan: d.Plan}}
	}
	for _, p := range plans {
		if p.Plan == nil {
			continue
		}
		if _, err := fmt.Fprintf(w, "\nNCCL %v on %s\n%s", p.Plan.Version, p.Layout, p.Plan.Log); err != nil {
			return err
		}
	}
	return nil
}

// forecast is a prediction as text and pictures show it.
type forecast struct {
	*query.PredictDoc
	parts   bool // show what the time is made of
	columns int  // of the terminal; 0 is any number
}

func (f *forecast) text(s style, width int) string {
	var b strings.Builder
	b.WriteString(s.bold(f.title()) + "\n")
	b.WriteString(f.table(s))
	f.limits(&b, s, width)
	for _, t := range f.Caveats {
		paragraph(&b, "", s.yellow("note")+": "+t, width)
	}
	for _, r := range predict.GroupVerdicts(f.Compare) {
		paragraph(&b, "", "at "+predict.Span(f.sizes(), r.Sizes)+": "+r.Text, width)
	}
	f.verdictOnNCCL(&b, s, width)
	for _, a := range f.Advice {
		paragraph(&b, "", s.green("advice")+when(len(f.Sides) > 1, " for "+a.Layout)+": "+a.Text, width)
	}
	for _, t := range f.Skipped {
		paragraph(&b, "", s.yellow("left out")+": "+t, width)
	}
	return b.String()
}

// sizes are those asked for, in order.
func (f *forecast) sizes() []unit.Bytes {
	var list []unit.Bytes
	for _, r := range f.Rows {
		list = append(list, r.Asked)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// verdictOnNCCL answers "is there a better setting?" where no advice does.
func (f *forecast) verdictOnNCCL(b *strings.Builder, s style, width int) {
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
		b.WriteString(s.dim(f.runs()+"'s choice is the fastest of the candidates"+on(fine)) + "\n")
	}
	if len(stuck) > 0 {
		paragraph(b, "", fmt.Sprintf("%s's choice is not the fastest of the candidates%s (up to %.2g×), and no %[1]s "+
			"setting changes it", f.runs(), on(stuck), worst), width)
	}
}

func (f *forecast) title() string {
	text := f.Op.String() + " on " + f.Cluster
	if len(f.Sides) == 1 {
		x := f.Sides[0]
		text += fmt.Sprintf(", %s (%s on %s)", x.Layout, words.Plural(x.Ranks, "rank"), words.Plural(x.Nodes, "node"))
	} else {
		var names []string
		for _, x := range f.Sides {
			names = append(names, x.Layout)
		}
		text += ", " + strings.Join(names, " against ")
	}
	return text + ", " + library(f.PredictDoc) + "; predicted, model " + f.Model
}

// table is the rows. A star stands behind what NCCL chooses where there are rows
// that it does not, a plus behind what it cannot run.
func (f *forecast) table(s style) string {
	text := s.fit(f.rows(), f.columns)
	marks := f.marks()
	for _, k := range []struct{ mark, means string }{
		{"*", "* " + f.runs() + "'s choice"}, {"+", "+ not an " + f.runs() + " algorithm"},
	} {
		if slices.ContainsFunc(f.Rows, func(r predict.Row) bool { return marks(r) == k.mark }) {
			text += s.dim(k.means) + "\n"
		}
	}
	return text
}

func (f *forecast) rows() *texttab.Table {
	barred := slices.ContainsFunc(f.Rows, func(r predict.Row) bool { return r.Barred() })
	t := texttab.New(texttab.If(f.Compared, "layout"), ">size (B)|%d", ">count", "type", "algo", "proto", ">channels",
		">time (us)", texttab.If(barred, ">from", ">to"), texttab.If(f.parts, ">launch", ">latency", ">sync", ">moving"),
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
	star := ""
	for _, r := range f.Rows {
		if !r.Chosen {
			star = "*"
		}
	}
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
	us := t.Micros()
	switch {
	case us < 100:
		return fmt.Sprintf("%.2f", us)
	case us < 1000:
		return fmt.Sprintf("%.1f", us)
	}
	return fmt.Sprintf("%.0f", us)
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
func (f *forecast) limits(b *strings.Builder, s style, width int) {
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
		paragraph(b, "", s.dim(lead)+": "+r.Limit.Text, width)
	}
}

// paragraph writes a text, with following lines set in by two more.
func paragraph(b *strings.Builder, indent, text string, width int) {
	hanging(b, indent, indent+"  ", texttab.Wrap(text, width-len(indent)-2))
}

// hanging writes lines, the first behind something else than the others.
func hanging(b *strings.Builder, first, rest string, lines []string) {
	for i, l := range lines {
		if i > 0 {
			first = rest
		}
		b.WriteString(first + l + "\n")
	}
}

// busyLinks is the table of links below a prediction.
func busyLinks(w io.Writer, list []result.Links) error {
	t := texttab.New(">busy (%)|%.1f", ">bytes each", ">rate", "kind", "hosts", "links", "")
	for _, g := range list {
		hosts := cmp.Or(g.Hosts, "network")
		for _, u := range g.Uses {
			t.Add(100*u.Share, u.Bytes, known(u.Rate > 0, u.Rate.String()), u.Kind, clipped(hosts), several(u.Which),
				when(u.Tight, "bottleneck"))
		}
	}
	if _, err := fmt.Fprintln(w, "\nLink load, one direction:"); err != nil {
		return err
	}
	return t.Write(w)
}

// several are names as far as a line has room for them.
func several(names []string) string {
	const room = 4
	if len(names) <= room {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:room-1], ", "), len(names)-room+1)
}

// clipped is a hostlist as far as a line has room for it.
func clipped(hosts string) string {
	const room = 40
	if r := []rune(hosts); len(r) > room {
		return string(r[:room-1]) + "…"
	}
	return hosts
}
