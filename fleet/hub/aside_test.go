package hub

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/test/hostile"
)

// TestHostileMaps folds maps that stand for millions of hosts, as a node's own credentials can send them. Each is set
// aside with a finding that names the node, and costs next to nothing; the node's next good map ends that.
func TestHostileMaps(t *testing.T) {
	v := NewView()
	seq := uint64(0)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	join := func(m json.RawMessage) {
		seq++
		at = at.Add(time.Second)
		v.Apply(Entry{
			Seq: seq, Stored: at, Publisher: "evil", Event: &fleet.Event{
				Node: "evil", Seq: seq, At: at, Kind: fleet.KindJoined, Joined: &fleet.Joined{Meet: "127.0.0.1:1", Map: m},
			},
		})
	}
	good := json.RawMessage(`{"version":1,"types":[{"name":"t","devices":[{"kind":"gpu","name":"gpu0"}]}],"nodes":[{"hosts":"x","type":"t"}]}`)
	maps := map[string]json.RawMessage{
		"one list": hostile.Map(1), "a hundred lists": hostile.Map(100), "a thousand lists": hostile.Map(1000),
	}
	for _, d := range hostile.Documents() {
		if strings.HasSuffix(d.Name, ".json") && len(d.Data) <= maxMap {
			maps[d.Name] = d.Data
		}
	}
	for name, m := range maps {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			join(m)
			c := joinedOf(v)
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			mb := (after.TotalAlloc - before.TotalAlloc) >> 20
			t.Logf("%d bytes: %d MB allocated, %v", len(m), mb, took.Round(time.Millisecond))
			if mb > 64 {
				t.Errorf("a map of %d bytes takes %d MB; want at most 64", len(m), mb)
			}
			if c != 1 {
				t.Errorf("the fleet has %d hosts; want 1", c)
			}
			list := v.notices.findings()
			if len(list) != 1 || len(list[0].Nodes) != 1 || list[0].Nodes[0] != "evil" {
				t.Errorf("findings %+v; want one about evil", list)
			}
			if drains(list[0]) {
				t.Error("the finding drains the node")
			}
			if join(good); len(v.notices.findings()) != 0 {
				t.Error("the finding holds after a good map")
			}
		})
	}
}

// joinedOf is how many hosts the joined cluster has.
func joinedOf(v *View) int {
	list, _ := v.allMaps()
	return len(join(list, nil).Hosts)
}

// TestBrokenFold has the fold break: the message is set aside, and those after it are folded.
func TestBrokenFold(t *testing.T) {
	v := NewView()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	entry := func(seq uint64, n fleet.Name) Entry {
		return Entry{Seq: seq, Stored: at, Publisher: n, Event: &fleet.Event{Node: n, Seq: seq, At: at, Kind: fleet.KindLeft}}
	}
	nodes := v.nodes
	v.nodes = nil // a fault of ours
	if v.Apply(entry(1, "evil")) {
		t.Error("a message that broke the fold counts as taken")
	}
	v.nodes = nodes
	if !v.Apply(entry(2, "n1")) || v.Seq() != 2 {
		t.Errorf("the next message was not folded; at %d", v.Seq())
	}
	list := v.notices.findings()
	if len(list) != 1 || list[0].Nodes[0] != "evil" || !strings.Contains(fmt.Sprint(list[0].Evidence), "message 1 broke") {
		t.Errorf("findings %+v; want one about evil", list)
	}
}
