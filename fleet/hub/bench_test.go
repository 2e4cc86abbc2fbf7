package hub

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/health"
	"busbar.dev/hardware"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// BenchmarkFold folds one sweep over all pairs of a thousand nodes, and asks the statistics.
func BenchmarkFold(b *testing.B) {
	const n = 1000
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var list []Entry
	add := func(node fleet.Name, event fleet.Event) {
		event.Seq, event.At, event.Node = uint64(len(list)+1), at.Add(time.Duration(len(list))*time.Millisecond), node
		list = append(list, Entry{Seq: event.Seq, Stored: event.At, Publisher: node, Event: &event})
	}
	names := make([]fleet.Name, n)
	for i := range names {
		names[i] = fleet.Name(fmt.Sprintf("gpu%04d", i))
		add(names[i], fleet.Event{Kind: fleet.KindJoined, Joined: &fleet.Joined{Meet: "x:1"}})
	}
	o := pairOrder()
	o.ID, o.Sweep, o.State = "o", 1, fleet.Running
	add("", fleet.Event{Kind: fleet.KindOrder, Order: &o})
	for r := range pairs.Count(n) {
		for _, p := range pairs.Round(n, r) {
			x, y := names[p[0]], names[p[1]]
			add(x, fleet.Event{
				Kind: fleet.KindMeasured,
				Measured: &fleet.Measured{Order: "o", Part: "p", Sweep: 1, Pairs: []fleet.PairSample{
					{From: x, To: y, Rate: unit.Rate(1e10 + float64(r*1000)), Latency: 1e7},
					{From: y, To: x, Rate: 1e10, Latency: 1e7},
				}},
			})
		}
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		v := NewView()
		began := time.Now()
		for _, e := range list {
			v.Apply(e)
		}
		b.ReportMetric(float64(time.Since(began).Microseconds())/float64(len(list)), "µs/entry")
		began = time.Now()
		v.ask(func(h *health.History) { h.Findings(at.Add(time.Hour)) })
		b.ReportMetric(time.Since(began).Seconds(), "s/look")
		began = time.Now()
		v.heatOf(fleet.FigureRate)
		b.ReportMetric(time.Since(began).Seconds(), "s/heat")
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
		runtime.KeepAlive(v)
	}
}

// BenchmarkJoin makes one cluster of the maps of a thousand nodes.
func BenchmarkJoin(b *testing.B) {
	c, err := hardware.Preset("dgx-h100", 1)
	if err != nil {
		b.Fatal(err)
	}
	text, err := json.Marshal(c.Document())
	if err != nil {
		b.Fatal(err)
	}
	var list []nodeMap
	for i := range 1000 {
		list = append(list, nodeMap{fleet.Name(fmt.Sprintf("gpu%04d", i)), text})
	}
	b.ReportMetric(float64(len(text)), "B/map")
	for b.Loop() {
		if c := join(list, nil); c.Summary().GPUs != 8000 {
			b.Fatal(c.Summary())
		}
	}
}
