package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/internal/texttab"
	"busbar.dev/predict"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// Forecast is everything a prediction has to say.
type Forecast struct {
	Cluster  string
	Op       string
	NCCL     string // release
	Sides    []predict.Side
	Compared bool          // layouts side by side
	Rows     []ForecastRow // in the order they are shown
	Verdicts []predict.Verdict
	Skipped  []string
	Caveats  []string // what the prediction takes for granted
	Origin   string   // of the model's figures
	Parts    bool     // show what the time is made of
	// Unmeasured says that no measurements stand behind the margins.
	Unmeasured bool
}

// ForecastRow is a row and the layout it belongs to.
type ForecastRow struct {
	Layout string
	predict.Row
}

// Predictions prints a forecast as nccl-tests prints a measurement, and below it
// what limits the rows, which setting would help and who wins.
func Predictions(w io.Writer, f *Forecast, o TextOptions) error {
	_, err := io.WriteString(w, printed(o, func(s style) string { return f.text(s, o.width()) }))
	return err
}

func (f *Forecast) text(s style, width int) string {
	var b strings.Builder
	b.WriteString(s.bold(f.title()) + "\n")
	b.WriteString(f.table(s))
	f.limits(&b, s, width)
	for _, t := range f.Caveats {
		paragraph(&b, s.yellow("note")+": ", t, width)
	}
	for _, r := range predict.Rulings(f.Verdicts) {
		paragraph(&b, "at "+predict.Span(f.sizes(), r.Sizes)+": ", r.Text, width)
	}
	f.verdictOnNCCL(&b, s, width)
	for _, side := range f.Sides {
		for _, a := range side.Advice {
			lead := s.green("advice") + ": "
			if len(f.Sides) > 1 {
				lead = s.green("advice") + " for " + side.Layout + ": "
			}
			paragraph(&b, lead, a.Text, width)
		}
	}
	for _, t := range f.Skipped {
		paragraph(&b, s.yellow("left out")+": ", t, width)
	}
	return b.String()
}

// sizes are those asked for, in order.
func (f *Forecast) sizes() []unit.Bytes {
	var list []unit.Bytes
	for _, r := range f.Rows {
		list = append(list, r.Asked)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// verdictOnNCCL answers "is there a better setting?" where no advice does.
func (f *Forecast) verdictOnNCCL(b *strings.Builder, s style, width int) {
	var fine, stuck []string
	worst := 1.0
	for _, side := range f.Sides {
		switch {
		case side.Ranks < 2 || side.Gain == 0 || len(side.Advice) > 0:
		case side.Gain <= predict.Worth:
			fine = append(fine, side.Layout)
		default:
			stuck = append(stuck, side.Layout)
			worst = max(worst, side.Gain)
		}
	}
	on := func(list []string) string {
		if len(f.Sides) == 1 {
			return ""
		}
		return " on " + strings.Join(list, ", ")
	}
	if len(fine) > 0 {
		b.WriteString(s.dim("NCCL's choice is the fastest of those weighed"+on(fine)) + "\n")
	}
	if len(stuck) > 0 {
		paragraph(b, "", fmt.Sprintf("NCCL's choice is not the fastest of those weighed%s (up to %.2g×), and no setting of NCCL changes it", on(stuck), worst), width)
	}
}

func (f *Forecast) title() string {
	text := f.Op + " on " + f.Cluster
	if len(f.Sides) == 1 {
		x := f.Sides[0]
		text += fmt.Sprintf(", %s (%s on %s)", x.Layout, plural(x.Ranks, "rank"), plural(x.Nodes, "node"))
	} else {
		var names []string
		for _, x := range f.Sides {
			names = append(names, x.Layout)
		}
		text += ", " + strings.Join(names, " against ")
	}
	return text + ", NCCL " + f.NCCL + "; predicted, model " + f.Origin
}

// table is the rows. A star stands behind what NCCL takes where there are rows
// that it does not, a plus behind what it cannot run.
func (f *Forecast) table(s style) string {
	right := texttab.Right
	var cols []texttab.Column
	if f.Compared {
		cols = append(cols, texttab.Column{Head: "layout"})
	}
	cols = append(cols, texttab.Column{Head: "size (B)", Align: right}, texttab.Column{Head: "count", Align: right}, texttab.Column{Head: "type"},
		texttab.Column{Head: "algo"}, texttab.Column{Head: "proto"}, texttab.Column{Head: "channels", Align: right}, texttab.Column{Head: "time (us)", Align: right})
	margin := false
	for _, r := range f.Rows {
		margin = margin || r.Margin > 1
	}
	if margin {
		cols = append(cols, texttab.Column{Head: "from", Align: right}, texttab.Column{Head: "to", Align: right})
	}
	if f.Parts {
		for _, head := range []string{"launch", "latency", "sync", "moving"} {
			cols = append(cols, texttab.Column{Head: head, Align: right})
		}
	}
	cols = append(cols, texttab.Column{Head: "algbw (GB/s)", Align: right}, texttab.Column{Head: "busbw (GB/s)", Align: right}, texttab.Column{Head: "bottleneck"})
	t := texttab.Table{Columns: cols, Style: s.dim}
	marks := f.marks()
	for _, r := range f.Rows {
		var cells []string
		if f.Compared {
			cells = append(cells, r.Layout)
		}
		cells = append(cells, fmt.Sprint(int64(r.Op.Size(r.Ranks))), fmt.Sprint(r.Op.Count(r.Ranks)), r.Op.Type.String(), r.Algo+marks(r), r.Setting.Proto, fmt.Sprint(r.Channels), micros(r.Time))
		if margin {
			cells = append(cells, micros(Low(r.Run)), micros(High(r.Run)))
		}
		if f.Parts {
			for _, part := range []unit.Time{r.Parts.Launch, r.Parts.Latency, r.Parts.Sync, r.Parts.Moving} {
				cells = append(cells, micros(part))
			}
		}
		t.Row(append(cells, fmt.Sprintf("%.2f", r.AlgBW().GBps()), fmt.Sprintf("%.2f", r.BusBW().GBps()), where(r.Limit))...)
	}
	text := t.String()
	for _, k := range []struct{ mark, means string }{{"*", "* what NCCL takes"}, {"+", "+ NCCL has no such algorithm"}} {
		if slices.ContainsFunc(f.Rows, func(r ForecastRow) bool { return marks(r) == k.mark }) {
			text += s.dim(k.means) + "\n"
		}
	}
	return text
}

// marks tells how to mark rows: those that NCCL takes only where others stand
// beside them.
func (f *Forecast) marks() func(ForecastRow) string {
	star := ""
	for _, r := range f.Rows {
		if !r.Chosen {
			star = "*"
		}
	}
	return func(r ForecastRow) string {
		switch {
		case r.Chosen:
			return star
		case r.Beyond:
			return "+"
		}
		return ""
	}
}

// Low is the shortest time that a prediction allows for.
func Low(r *result.Run) unit.Time {
	if r.Margin <= 1 {
		return r.Time
	}
	return unit.Time(float64(r.Time) / r.Margin)
}

// High is the longest.
func High(r *result.Run) unit.Time {
	if r.Margin <= 1 {
		return r.Time
	}
	return unit.Time(float64(r.Time) * r.Margin)
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

func where(l result.Limit) string {
	return strings.TrimSpace(string(l.Kind) + " " + l.Where)
}

// limits explains every bottleneck of the table once.
func (f *Forecast) limits(b *strings.Builder, s style, width int) {
	const most = 6
	seen, told := map[string]bool{}, 0
	for _, r := range f.Rows {
		keys := []string{where(r.Limit)}
		if f.Compared {
			keys = []string{r.Layout + " " + where(r.Limit), r.Layout + " " + r.Limit.Text}
		}
		if r.Limit.Kind == result.ByNothing || slices.ContainsFunc(keys, func(k string) bool { return seen[k] }) {
			continue
		}
		for _, k := range keys {
			seen[k] = true
		}
		if told++; told > most {
			return
		}
		lead := where(r.Limit)
		if f.Compared {
			lead = r.Layout + " " + lead
		}
		paragraph(b, s.dim(lead)+": ", r.Limit.Text, width)
	}
}

// paragraph writes a text behind a lead, with following lines set in.
func paragraph(b *strings.Builder, lead, text string, width int) {
	for i, l := range texttab.Wrap(texttab.Strip(lead)+text, width-2) {
		if i == 0 {
			if rest, ok := strings.CutPrefix(l, texttab.Strip(lead)); ok {
				l = lead + rest
			}
			b.WriteString(l + "\n")
			continue
		}
		b.WriteString("  " + l + "\n")
	}
}
