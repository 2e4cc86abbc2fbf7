package report

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"slices"

	"busbar.dev/internal/texttab"
	"busbar.dev/unit"
)

// Span is something that took its time, in a group of such things.
type Span struct {
	Group, Track, Name string
	From, To           unit.Time
	Bytes              unit.Bytes // 0: none
}

// traceEvent is one record. Names and order of fields are the format's.
type traceEvent struct {
	Name  string         `json:"name"`
	Ph    string         `json:"ph"`
	TS    float64        `json:"ts"`
	Dur   float64        `json:"dur,omitempty"`
	Scope string         `json:"s,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Args  map[string]any `json:"args,omitempty"`
}

// threadsPerTrack is the distance of two tracks' thread numbers.
const threadsPerTrack = 1 << 12

// Spans writes spans in the trace format of Chrome, which Perfetto (ui.perfetto.dev) and chrome://tracing open: a
// process for every group, a thread for every track, both in the order in which they come. Spans of a track that
// overlap get threads of their own, since viewers want the events of a thread one after the other.
func Spans(w io.Writer, title string, list []Span) error {
	b := bufio.NewWriter(w) // which keeps what goes wrong until the end
	out, sep := json.NewEncoder(b), ""
	b.WriteString(`{"displayTimeUnit":"ns","otherData":`)
	_ = out.Encode(map[string]string{"title": texttab.Clean(title)})
	b.WriteString(`,"traceEvents":[`)
	put := func(e traceEvent) {
		b.WriteString(sep)
		sep = ","
		_ = out.Encode(e)
	}
	named := func(what string, pid, tid int, name string) {
		put(traceEvent{Name: what, Ph: "M", PID: pid, TID: tid, Args: map[string]any{"name": texttab.Clean(name)}})
	}
	pids, tids, ends := map[string]int{}, map[[2]string]int{}, map[int]unit.Time{}
	for _, s := range list {
		if _, known := pids[s.Group]; !known {
			pids[s.Group] = len(pids)
			named("process_name", pids[s.Group], 0, s.Group)
		}
		if track := [2]string{s.Group, s.Track}; tids[track] == 0 {
			tids[track] = (len(tids) + 1) * threadsPerTrack
		}
	}
	early := func(a, b Span) int { return cmp.Compare(a.From, b.From) }
	for _, s := range slices.SortedStableFunc(slices.Values(list), early) {
		pid, tid := pids[s.Group], tids[[2]string{s.Group, s.Track}]
		for ends[tid] > s.From {
			tid++
		}
		if _, known := ends[tid]; !known {
			named("thread_name", pid, tid, s.Track)
		}
		ends[tid] = s.To
		// Viewers add beginning and duration up in floating point; an event that touches
		// the next one would seem to end inside it.
		e := traceEvent{
			Name: texttab.Clean(s.Name), Ph: "X", TS: s.From.Micros(),
			Dur: max(0, s.To-s.From-unit.Nanosecond).Micros(), PID: pid, TID: tid,
			Args: map[string]any{"bytes": int64(s.Bytes)},
		}
		if e.Dur == 0 { // a moment
			e.Ph, e.Scope = "i", "t"
		}
		put(e)
	}
	b.WriteString("]}\n")
	return b.Flush()
}
