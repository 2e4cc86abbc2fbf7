package hub

import (
	"bytes"
	"testing"
	"time"

	"busbar.dev/fleet"
)

// FuzzView lets a node that is up to no good say anything that decodes; the view must stand, stay
// within its bounds, and show the others as they are.
func FuzzView(f *testing.F) {
	for _, s := range []string{
		`{"seq":9,"at":"2026-01-01T00:00:00Z","node":"bad","kind":"joined","joined":{"version":"","meet":"","map":{"version":1,"types":[],"nodes":[]}}}`,
		`{"seq":9,"at":"2026-01-01T00:00:00Z","node":"bad","kind":"link","link":{"port":"eth0","up":true,"rate_GBps":1e300}}`,
		`{"seq":9,"at":"2026-01-01T00:00:00Z","node":"bad","kind":"counters","counters":{"values":{"eth0":{"x":18446744073709551615}}}}`,
		`{"seq":9,"at":"9999-01-01T00:00:00Z","node":"bad","kind":"measured","measured":{"order":"o","part":"p","sweep":1,"round":0,"took_ns":1,"pairs":[{"from":"bad","to":"good","rate_GBps":1,"latency_us":1}]}}`,
		`{"seq":9,"at":"2026-01-01T00:00:00Z","node":"bad","kind":"measured","measured":{"order":"local","part":"p","sweep":1,"round":0,"took_ns":1,"records":[null]}}`,
		`{"seq":9,"at":"2026-01-01T00:00:00Z","node":"bad","kind":"measured","measured":{"order":"o","part":"p","sweep":1,"round":0,"took_ns":1,"failed":"x","peer":"good"}}`,
		`{"seq":9,"at":"2026-01-01T00:00:00Z","node":"bad","kind":"left"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v := NewView()
		seq := uint64(0)
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		apply := func(n *fleet.Event) {
			seq++
			v.Apply(Entry{Seq: seq, Stored: at.Add(time.Duration(seq) * time.Second), Publisher: n.Node, Event: n})
		}
		for _, n := range []fleet.Name{"good", "bad", "third"} {
			apply(&fleet.Event{Seq: 1, At: at, Node: n, Kind: fleet.KindJoined, Joined: &fleet.Joined{Meet: "x:1"}})
		}
		o := pairOrder()
		o.ID, o.Sweep, o.State = "o", 1, fleet.Running
		apply(&fleet.Event{Seq: 1, At: at, Kind: fleet.KindOrder, Order: &o})
		n, err := fleet.Decode[fleet.Event](data)
		if err != nil || n.Node == "" {
			return // the bus lets no node speak for the server
		}
		apply(n)
		apply(n)
		everything(v)
		h := New(Config{Bus: newMemory()})
		h.view = v
		h.Cluster()
		var page bytes.Buffer
		if err := h.Metrics(t.Context(), &page, false); err != nil {
			t.Error(err)
		}
		readMetrics(t, &page)
		if n.Node != "good" && n.Node != "third" {
			if s := v.Heat(fleet.FigureRate, fleet.TCP, []fleet.Name{"good", "third"}, ""); s.Values[0][1] != nil ||
				s.Values[1][0] != nil {
				t.Error("a node spoke for two others")
			}
		}
	})
}
