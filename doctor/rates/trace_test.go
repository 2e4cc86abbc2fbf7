package rates

import (
	"testing"

	"busbar.dev/coll"
	"busbar.dev/result/trace"
	"busbar.dev/unit"
)

// The rank that computes longer comes last, and the time without waiting is the transfer: also where the profiler does
// not number calls, and not where the ranks recorded different calls.
func TestTraces(t *testing.T) {
	for _, numbered := range []bool{true, false} {
		var traces []*trace.Trace
		w := NewWindow(1 << 12)
		for rank, begin := range []int64{0, 4e6, 1e5, 0} {
			tr := &trace.Trace{
				Rank: rank, World: 4,
				Calls: []trace.Call{{Op: coll.AllReduce, Bytes: 1 << 20, Size: 4, Group: "0", Ranks: []int{0, 1, 2, 3}}},
			}
			for step := range int64(30) {
				e := trace.Event{Interval: trace.Interval{Start: step*1e7 + begin, End: step*1e7 + 45e5}, Kind: trace.Comm, Seq: -1}
				if numbered {
					e.Seq = step + 7
				}
				tr.Events = append(tr.Events, e)
			}
			traces = append(traces, tr)
			w.AddTrace(tr, rank)
		}
		r := joined(t, Bounds{}, w.Done())
		if len(r.Jobs) != 1 || r.Jobs[0].Late == nil || r.Jobs[0].Late.Ranks[0] != 1 ||
			r.Jobs[0].Rows[0].Transfer != 500*unit.Microsecond {
			t.Fatalf("numbered %v: %+v", numbered, r)
		}
		if f := r.Findings(); len(f) != 1 || f[0].Kind != "late-rank" || len(f[0].Nodes) != 0 {
			t.Errorf("%+v", f)
		}
		if c := &traces[0].Calls[0]; GroupOf(c) != r.Jobs[0].Rows[0].Comm {
			t.Errorf("a row of %q, the call's group is %q", r.Jobs[0].Rows[0].Comm, GroupOf(c))
		}
	}
}
