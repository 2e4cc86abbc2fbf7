package hub

import (
	"fmt"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/fleet"
	"busbar.dev/fleet/health"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// TestStraggler: a node whose own work takes longer before collective after collective is named,
// and nobody where all take about as long, whatever rank 0 says of the others.
func TestStraggler(t *testing.T) {
	for slow, want := range map[string]string{"": "", "n3": "straggler:n3"} {
		v := NewView()
		at := time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)
		seq := uint64(0)
		apply := func(publisher fleet.Name, n *fleet.Event) {
			seq++
			at = at.Add(time.Second)
			n.Seq, n.At = seq, at
			if !v.Apply(Entry{Seq: seq, Stored: n.At, Publisher: publisher, Event: n}) {
				t.Fatalf("%+v was not taken", n)
			}
		}
		var names []fleet.Name
		for i := range 8 {
			n := fleet.Name(fmt.Sprintf("n%d", i))
			names = append(names, n)
			apply(n, &fleet.Event{Node: n, Kind: fleet.KindJoined, Joined: &fleet.Joined{Meet: "x:1"}})
		}
		for sweep := 1; sweep <= 12; sweep++ {
			o := &fleet.Order{
				ID: "o", State: fleet.Running, Sweep: sweep,
				What: fleet.What{Measure: fleet.MeasureCollective, Op: coll.AllReduce, Sizes: []unit.Bytes{8}, Iters: 1},
			}
			apply("", &fleet.Event{Kind: fleet.KindOrder, Order: o})
			m := &fleet.Measured{Order: "o", Part: "p", Sweep: sweep, Results: result.Sweeps{{
				Source: result.Measured, Op: coll.AllReduce, Redop: "sum", Dtype: "float", Ranks: 8, Transport: "tcp",
				Points: []result.Point{{Size: 8, Out: &result.Timing{Time: result.Times{Min: 1, Median: 1, P99: 1, Mean: 1}}}},
			}}}
			for i, n := range names {
				spent := unit.Micros(1000 + float64((sweep*5+i*3)%8)) // another is last every time
				if string(n) == slow {
					spent = spent * 6 / 5
				}
				said := &fleet.Measured{Order: "o", Part: "p", Sweep: sweep, Own: []fleet.OwnTime{{Node: n, Spent: spent}}}
				if i == 0 { // what rank 0 says of others, and of itself what cannot be, counts for nothing
					said.Results = m.Results
					said.Own = append(said.Own, fleet.OwnTime{Node: "stranger", Spent: unit.Second}, fleet.OwnTime{
						Node: "n0", Spent: -1,
					})
					for _, victim := range names[1:] {
						said.Own = append(said.Own, fleet.OwnTime{Node: victim, Spent: unit.Second})
					}
				}
				apply(n, &fleet.Event{Node: n, Kind: fleet.KindMeasured, Measured: said})
			}
		}
		got := ""
		v.ask(func(h *health.History) {
			for _, f := range h.Findings(at) {
				if f.Kind == health.Straggler {
					got += f.ID
				}
			}
		})
		if got != want {
			t.Errorf("with %q slow: found %q, want %q", slow, got, want)
		}
	}
}
