package hub

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/test/eventually"
)

// adds checks that every part of a sweep was measured, failed or left out, and that all that were not measured
// have a reason.
func adds(t *testing.T, s fleet.OrderState) {
	t.Helper()
	failed, left := 0, 0
	for _, r := range s.Reasons {
		if r.LeftOut {
			left += r.Parts
		} else {
			failed += r.Parts
		}
	}
	if s.Measured+s.Failed+s.LeftOut != s.Parts || failed != s.Failed || left != s.LeftOut {
		t.Errorf("%d measured, %d failed, %d left out of %d parts; reasons for %d and %d: %+v", s.Measured, s.Failed,
			s.LeftOut, s.Parts, failed, left, s.Reasons)
	}
}

// TestPartsAddUp: parts that fail without anybody's being accused, and those of a node that does not take part, are
// counted, with the reason.
func TestPartsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const why = "listen tcp 127.0.0.1:7643: bind: address already in use"
		m := newMemory()
		nodes := m.join(5)
		nodes[0].lie = func(out *fleet.Measured) { out.Failed, out.Pairs = why, nil }
		nodes[4].refuse.Store(true)
		h, _ := start(t, m, nil)
		s, err := h.Give(t.Context(), pairOrder())
		if err != nil {
			t.Fatal(err)
		}
		s = finish(t, h, s.ID)
		adds(t, s)
		if s.Parts != 10 || s.LeftOut != 4 || s.Failed < 1 || s.Measured+s.Failed != 6 {
			t.Errorf("%+v", s)
		}
		find := func(why string) fleet.Reason {
			i := slices.IndexFunc(s.Reasons, func(r fleet.Reason) bool { return r.Why == why })
			if i < 0 {
				t.Fatalf("%q is no reason: %+v", why, s.Reasons)
			}
			return s.Reasons[i]
		}
		if r := find(why); r.LeftOut || r.Parts != s.Failed || !slices.Equal(r.Nodes, []fleet.Name{"n0"}) {
			t.Errorf("%+v", r)
		}
		if r := find("refuses: measuring is not allowed here"); !r.LeftOut || r.Parts != 4 ||
			!slices.Equal(r.Nodes, []fleet.Name{"n4"}) {
			t.Errorf("%+v", r)
		}
	})
}

// TestPartsOfACancelledOrder: what was not reached is left out.
func TestPartsOfACancelledOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		nodes := m.join(4)
		for _, n := range nodes {
			n.hang.Store(true)
		}
		h, _ := start(t, m, nil)
		o := pairOrder()
		o.Caps.Time = fleet.MaxTime
		s, err := h.Give(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		eventually.Holds(t, "parts run", func() bool { return nodes[0].running() != "" })
		if s, err = h.Cancel(t.Context(), s.ID, "me"); err != nil || s.LeftOut != 6 || s.Measured+s.Failed != 0 {
			t.Errorf("%v %+v", err, s)
		}
	})
}

// TestACollectiveIsOnePart, however many nodes say that it failed.
func TestACollectiveIsOnePart(t *testing.T) {
	v := NewView()
	seq := uint64(0)
	apply := func(n *fleet.Event) {
		seq++
		n.Seq, n.At = seq, time.Unix(int64(seq), 0)
		v.Apply(Entry{Seq: seq, Stored: n.At, Publisher: n.Node, Event: n})
	}
	o := fleet.Order{ID: "o", Sweep: 1, State: fleet.Running, Parts: 1, What: fleet.What{Measure: fleet.MeasureCollective}}
	Fill(&o)
	apply(&fleet.Event{Kind: fleet.KindOrder, Order: &o})
	for i := range 4 {
		apply(&fleet.Event{
			Node: fleet.Name(fmt.Sprint("n", i)), Kind: fleet.KindMeasured,
			Measured: &fleet.Measured{Order: "o", Part: "p", Sweep: 1, Failed: "broken"},
		})
	}
	if s, _ := v.Order("o", time.Now()); s.Failed != 1 || s.Measured != 0 {
		t.Errorf("%+v", s)
	}
}
