package report

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
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

// Spans writes spans in the trace format of Chrome, as Trace does: a process for every group, a
// thread for every track. Spans of a track that overlap get threads of their own, since viewers
// want the events of a thread one after the other.
func Spans(w io.Writer, title string, list []Span) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"title\":%s},\n\"traceEvents\":[", quoted(title))
	type thread struct {
		group, track string
		k            int
	}
	ends := map[thread]unit.Time{}
	groups, threads := map[string]int{}, map[thread]int{}
	sep := "\n"
	event := func(format string, args ...any) {
		fmt.Fprintf(b, sep+format, args...)
		sep = ",\n"
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	for _, s := range list {
		pid, ok := groups[s.Group]
		if !ok {
			pid = len(groups)
			groups[s.Group] = pid
			event(`{"name":"process_name","ph":"M","pid":%d,"args":{"name":%s}}`, pid, quoted(s.Group))
		}
		t := thread{s.Group, s.Track, 0}
		for ends[t] > s.From {
			t.k++
		}
		ends[t] = s.To
		tid, ok := threads[t]
		if !ok {
			tid = len(threads)
			threads[t] = tid
			event(`{"name":"thread_name","ph":"M","pid":%d,"tid":%d,"args":{"name":%s}}`, pid, tid, quoted(s.Track))
		}
		event(`{"name":%s,"ph":"X","pid":%d,"tid":%d,"ts":%.3f,"dur":%.3f,"args":{"bytes":%d}}`, quoted(s.Name), pid, tid, s.From.Micros(), (s.To - s.From).Micros(), int64(s.Bytes))
	}
	b.WriteString("\n]}\n")
	return b.Flush()
}

func quoted(s string) string {
	data, err := json.Marshal(texttab.Clean(s))
	if err != nil {
		return `""`
	}
	return string(data)
}
