package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"busbar/internal/texttab"
	"busbar/result"
)

// Trace writes the events of a run in the trace format of Chrome, which Perfetto
// (ui.perfetto.dev) and chrome://tracing open: a process for every rank, a thread
// for every lane. name says where a rank runs; nil leaves it out.
func Trace(w io.Writer, r *result.Run, name func(rank int) string) error {
	if len(r.Events) == 0 {
		return fmt.Errorf("%s by %s: the run carries no events", r.Op.Kind, r.Algo)
	}
	b := bufio.NewWriter(w)
	head := fmt.Sprintf("%s %v by %s %s on %d ranks, %d channels", r.Op.Kind, r.Op.Bytes, r.Algo, r.Proto, r.Ranks, r.Channels)
	t := &tracer{w: b}
	fmt.Fprintf(b, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"title\":%s,\"time_us\":%s},\n\"traceEvents\":[", quoted(head), number(r.Time.Micros()))
	t.lanes(r, name)
	for i := range r.Events {
		t.event(&r.Events[i])
	}
	b.WriteString("\n]}\n")
	if t.err != nil {
		return t.err
	}
	return b.Flush()
}

// tracer writes events one to a line.
type tracer struct {
	w    *bufio.Writer
	some bool
	err  error
}

// traceEvent is one record. Names and order of fields are the format's.
type traceEvent struct {
	Name string         `json:"name"`
	Cat  string         `json:"cat,omitempty"`
	Ph   string         `json:"ph"`
	TS   *float64       `json:"ts,omitempty"`
	Dur  *float64       `json:"dur,omitempty"`
	PID  int            `json:"pid"`
	TID  int            `json:"tid"`
	Args map[string]any `json:"args,omitempty"`
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

// lanes names the ranks and lanes that have events, in order.
func (t *tracer) lanes(r *result.Run, name func(int) string) {
	type lane struct{ rank, lane int }
	seen := map[lane]bool{}
	var list []lane
	for i := range r.Events {
		l := lane{r.Events[i].Rank, r.Events[i].Lane}
		if !seen[l] {
			seen[l] = true
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b lane) int {
		if a.rank != b.rank {
			return a.rank - b.rank
		}
		return a.lane - b.lane
	})
	last := -1
	for _, l := range list {
		if l.rank != last {
			last = l.rank
			t.put(traceEvent{Name: "process_name", Ph: "M", PID: l.rank, Args: map[string]any{"name": rankName(r, l.rank, name)}})
			t.put(traceEvent{Name: "process_sort_index", Ph: "M", PID: l.rank, Args: map[string]any{"sort_index": l.rank}})
		}
		t.put(traceEvent{Name: "thread_name", Ph: "M", PID: l.rank, TID: l.lane, Args: map[string]any{"name": fmt.Sprintf("lane %d", l.lane)}})
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

func (t *tracer) event(e *result.Event) {
	from, dur := e.From.Micros(), (e.To - e.From).Micros()
	args := map[string]any{"bytes": int64(e.Bytes), "op": e.Op, "loop": e.Loop}
	text, cat := e.Name, "local"
	if e.Peer >= 0 {
		args["peer"], cat = e.Peer, "message"
		text = fmt.Sprintf("%s %d", e.Name, e.Peer)
	}
	t.put(traceEvent{Name: text, Cat: cat, Ph: "X", TS: &from, Dur: &dur, PID: e.Rank, TID: e.Lane, Args: args})
}

func quoted(s string) string {
	data, _ := json.Marshal(texttab.Clean(s))
	return string(data)
}

func number(v float64) string {
	data, _ := json.Marshal(v)
	return string(data)
}
