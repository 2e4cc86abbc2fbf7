package report

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// Trace writes the events of a run in the trace format of Chrome, which Perfetto
// (ui.perfetto.dev) and chrome://tracing open: a process for every rank, a thread
// for every lane and one more for its sends, since a lane receives while its send
// is under way and viewers want the events of a thread one after the other. name
// says where a rank runs; nil leaves it out. steady is the time that a table gives
// for the run, 0 where there is none: the file carries both, and why they differ.
func Trace(w io.Writer, r *result.Run, steady unit.Time, name func(rank int) string) error {
	if len(r.Events) == 0 {
		return fmt.Errorf("%s by %s: the run carries no events", r.Op.Kind, r.Algo)
	}
	b := bufio.NewWriter(w)
	head := fmt.Sprintf("%s %v by %s %s on %d ranks, %d channels", r.Op.Kind, r.Op.Bytes, r.Algo, r.Proto, r.Ranks,
		r.Channels)
	t := &tracer{w: b}
	events := launched(r)
	data, err := json.Marshal(about(r, events, head, steady))
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "{\"displayTimeUnit\":\"ns\",\"otherData\":%s,\n\"traceEvents\":[", data)
	rows := tracks(events)
	t.lanes(r, events, rows, name)
	for i := range events {
		t.event(&events[i], rows[i])
	}
	b.WriteString("\n]}\n")
	if t.err != nil {
		return t.err
	}
	return b.Flush()
}

// traceAbout is what a trace says of itself.
type traceAbout struct {
	Title  string    `json:"title"`
	Time   unit.Time `json:"time_us"`
	Last   unit.Time `json:"last_event_us"`
	Steady unit.Time `json:"table_time_us,omitempty"`
	Why    string    `json:"why,omitempty"`
}

func about(r *result.Run, events []result.Event, title string, steady unit.Time) traceAbout {
	a := traceAbout{Title: texttab.Clean(title), Time: r.Time, Steady: steady}
	for i := range events {
		a.Last = max(a.Last, events[i].To)
	}
	if steady > 0 {
		a.Why = playedAndSteady
	}
	return a
}

// PlayedAndSteady tells why a timeline and a table give different times.
const playedAndSteady = "time_us is from playing every message, table_time_us from the steady form, which the " +
	"model's figures were fitted with: " +
	"go by the table for how long it takes, by the timeline for what waits for what. After the last event comes what is " +
	"lost until links run at full speed, which no single message can be charged with"

// launched are the events of a run in the order in which they begin, with what
// passes before the first of them as an event of every rank.
func launched(r *result.Run) []result.Event {
	events := slices.Clone(r.Events)
	slices.SortStableFunc(events, func(a, b result.Event) int { return cmp.Compare(a.From, b.From) })
	first := events[0].From
	if first <= 0 {
		return events
	}
	var ranks []int
	seen := map[int]bool{}
	for i := range events {
		if e := &events[i]; e.Rank < r.Ranks && !seen[e.Rank] {
			seen[e.Rank] = true
			ranks = append(ranks, e.Rank)
		}
	}
	slices.Sort(ranks)
	out := make([]result.Event, 0, len(ranks)+len(events))
	for _, rank := range ranks {
		out = append(out, result.Event{Rank: rank, Op: -1, Name: launchName, Peer: -1, To: first})
	}
	return append(out, events...)
}

// launchName is the event before the first message: the start of the kernel.
const launchName = "launch"

// tracer writes events one to a line.
type tracer struct {
	w    *bufio.Writer
	some bool
	err  error
}

// traceEvent is one record. Names and order of fields are the format's.
type traceEvent struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Ph    string         `json:"ph"`
	TS    *float64       `json:"ts,omitempty"`
	Dur   *float64       `json:"dur,omitempty"`
	Scope string         `json:"s,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Args  map[string]any `json:"args,omitempty"`
}

func (t *tracer) put(e traceEvent) {
	data, err := json.Marshal(e)
	if err != nil {
		t.err = err
		return
	}
	if t.some {
		t.w.WriteByte(',')
	}
	t.some = true
	t.w.WriteByte('\n')
	t.w.Write(data)
}

// tracksPerLane is the distance of two lanes' thread numbers, and the most threads
// that one is drawn as.
const tracksPerLane = 1 << 12

// tracks puts events into threads, lane by lane: receives and local work into the
// first, sends into the second, and what would overlap into one farther on.
func tracks(events []result.Event) []int {
	type lane struct{ rank, lane int }
	ends := map[lane][]unit.Time{} // of the last event of every thread
	rows := make([]int, len(events))
	for i := range events {
		e := &events[i]
		l := lane{e.Rank, e.Lane}
		row, list := 0, ends[l]
		if e.Name == "send" {
			row = 1
		}
		for row < len(list) && row+2 < tracksPerLane && list[row] > e.From {
			row += 2
		}
		for len(list) <= row {
			list = append(list, 0)
		}
		list[row] = max(list[row], e.To)
		ends[l] = list
		rows[i] = e.Lane*tracksPerLane + row
	}
	return rows
}

// lanes names the ranks and threads that have events, in order.
func (t *tracer) lanes(r *result.Run, events []result.Event, rows []int, name func(int) string) {
	type thread struct{ rank, row int }
	seen := map[thread]bool{}
	var list []thread
	for i := range events {
		l := thread{events[i].Rank, rows[i]}
		if !seen[l] {
			seen[l] = true
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b thread) int { return cmp.Or(a.rank-b.rank, a.row-b.row) })
	last := -1
	for _, l := range list {
		if l.rank != last {
			last = l.rank
			t.put(traceEvent{
				Name: "process_name", Ph: "M", PID: l.rank, Args: map[string]any{"name": rankName(r, l.rank, name)},
			})
			t.put(traceEvent{Name: "process_sort_index", Ph: "M", PID: l.rank, Args: map[string]any{"sort_index": l.rank}})
		}
		text := fmt.Sprintf("lane %d", l.row/tracksPerLane)
		if l.row%2 == 1 {
			text += " sends"
		}
		t.put(traceEvent{Name: "thread_name", Ph: "M", PID: l.rank, TID: l.row, Args: map[string]any{"name": text}})
		t.put(traceEvent{
			Name: "thread_sort_index", Ph: "M", PID: l.rank, TID: l.row, Args: map[string]any{"sort_index": l.row},
		})
	}
}

// rankName is what a process is called: participants beyond the ranks are switches.
func rankName(r *result.Run, rank int, name func(int) string) string {
	if rank >= r.Ranks {
		return fmt.Sprintf("switch %d", rank-r.Ranks)
	}
	text := fmt.Sprintf("rank %d", rank)
	if name != nil {
		if n := name(rank); n != "" {
			text += " " + texttab.Clean(n)
		}
	}
	return text
}

func (t *tracer) event(e *result.Event, row int) {
	// Viewers add beginning and duration up in floating point; an event that touches
	// the next one would seem to end inside it.
	from, dur := e.From.Micros(), max(0, e.To-e.From-unit.Nanosecond).Micros()
	args := map[string]any{"bytes": int64(e.Bytes), "lane": e.Lane, "op": e.Op, "loop": e.Loop}
	text, cat := e.Name, "local"
	switch {
	case e.Name == launchName && e.Op < 0:
		args, cat = nil, "launch"
	case e.Peer >= 0:
		args["peer"], cat = e.Peer, "message"
		text = fmt.Sprintf("%s from %d", e.Name, e.Peer)
		if e.Name == "send" {
			text = fmt.Sprintf("send to %d", e.Peer)
		}
	}
	x := traceEvent{Name: text, Cat: cat, Ph: "X", TS: &from, Dur: &dur, PID: e.Rank, TID: row, Args: args}
	if dur == 0 { // a moment
		x.Ph, x.Dur, x.Scope = "i", nil, "t"
	}
	t.put(x)
}

// mostCalls is how many kinds of collectives are printed without -v.
const mostCalls = 12

// Traced prints where the time of traced steps went, and the prediction beside it.
func Traced(w io.Writer, d *query.TraceDoc, o TextOptions) error {
	return write(w, o, func(s style) string { return tracedText(d, s, o) })
}

func tracedText(d *query.TraceDoc, s style, o TextOptions) string {
	var b strings.Builder
	b.WriteString(tracedHead(d) + "\n")
	b.WriteString(s.fit(tracedRanks(d), o.width()))
	if len(d.Calls) > 0 {
		b.WriteString("\n" + s.bold("Collectives") + tracedWhose(d) + "\n" + tracedCalls(d, s, o))
	}
	if d.Job != nil {
		b.WriteString("\n" + s.bold("Waiting") +
			fmt.Sprintf(": the median rank waits %.1f%% of the time for others in collectives\n", 100*d.Job.Waiting))
		b.WriteString(jobRanks(d.Job, s, o))
	}
	if d.Step != nil {
		b.WriteString("\n" + s.bold("Beside the prediction") + "\n" + s.fit(tracedStep(d), o.width()))
	}
	b.WriteString("\n")
	for _, l := range texttab.Wrap(d.Verdict, o.width()) {
		b.WriteString(s.bold(l) + "\n")
	}
	// The verdict on the step is above.
	b.WriteString(jobFindings(slices.DeleteFunc(slices.Clone(d.Findings),
		func(f finding.Finding) bool { return f.ID == "slow-step" }), s, o))
	return b.String()
}

func tracedHead(d *query.TraceDoc) string {
	r := &d.Ranks[0]
	text := words.Plural(len(d.Ranks), "trace") + " of " + r.Tool
	if r.GPU != "" {
		text += ", " + r.GPU
	}
	if r.World > 0 {
		text += ", " + words.Plural(r.World, "rank")
	}
	if r.Steps == 0 {
		return text + ": no marked steps, times are of the whole trace"
	}
	return text + ": time of a step, from " + words.Plural(r.Steps, "marked step")
}

func tracedRanks(d *query.TraceDoc) *texttab.Table {
	head := ">step"
	if d.Ranks[0].Steps == 0 {
		head = ">whole trace"
	}
	t := texttab.New("rank", head, ">compute", ">communication", ">exposed", ">copies only", ">idle", "file")
	for i := range d.Ranks {
		r := &d.Ranks[i]
		name := "?"
		if r.Rank != nil {
			name = fmt.Sprint(*r.Rank)
		} else if len(d.Ranks) > 1 {
			name = fmt.Sprintf("GPU %d", r.Device)
		}
		of := func(x unit.Span) string {
			if r.Step <= 0 {
				return x.Short()
			}
			return fmt.Sprintf("%s %3.0f%%", x.Short(), 100*float64(x/r.Step))
		}
		t.Add(name, r.Step, of(r.Compute), of(r.Comm), of(r.Exposed), of(r.Copy), of(r.Idle), path.Base(r.File))
	}
	return t
}

func tracedWhose(d *query.TraceDoc) string {
	if r := d.Ranks[0].Rank; r != nil && len(d.Ranks) > 1 {
		return fmt.Sprintf(" of rank %d", *r)
	}
	return ""
}

func tracedCalls(d *query.TraceDoc, s style, o TextOptions) string {
	var sized, matched, predicted bool
	for i := range d.Calls {
		c := &d.Calls[i]
		sized, matched, predicted = sized || c.Bytes > 0, matched || c.Transfer > 0, predicted || c.Expected > 0
	}
	t := texttab.New("operation", texttab.If(sized, "group", ">ranks", ">size"), ">calls|%.4g", ">time", ">exposed",
		">per call", texttab.If(matched, ">transfer"), texttab.If(sized, ">busbw GB/s"), texttab.If(predicted, ">expected"),
		"?algorithm")
	if !o.Verbose {
		t.Most = mostCalls
	}
	for i := range d.Calls {
		c := &d.Calls[i]
		t.Add(c.Op, c.Group, known(c.Ranks > 0, fmt.Sprint(c.Ranks)), known(c.Bytes > 0, c.Bytes.String()), c.Count,
			c.Time, c.Exposed, c.Median, known(c.Transfer > 0, c.Transfer.String()),
			known(c.BusBW > 0, fmt.Sprintf("%.1f", c.BusBW.GBps())),
			known(c.Expected > 0, fmt.Sprintf("%s to %s", c.Low, c.High)), c.Algo)
	}
	text := s.fit(t, o.width())
	if n := len(d.Calls) - mostCalls; n > 0 && !o.Verbose {
		text += fmt.Sprintf("and %d more with -v\n", n)
	}
	return text
}

func known(is bool, text string) string {
	if is {
		return text
	}
	return "-"
}

// tracedStep is the traced step beside the predicted one.
func tracedStep(d *query.TraceDoc) *texttab.Table {
	r, p := &d.Ranks[0], d.Step
	t := texttab.New("", ">traced", ">predicted", ">from", ">to")
	steps := "step"
	if r.Steps == 0 {
		steps = "whole trace"
	}
	t.Add(steps, r.Step, p.Step, p.Low, p.High)
	t.Add("compute", r.Compute, p.Compute+p.Optimizer)
	t.Add("communication", r.Comm, p.Comm)
	t.Add("exposed", r.Exposed, p.Exposed)
	t.Add("idle, copies", r.Idle+r.Copy, p.Bubble+p.Host)
	return t
}
