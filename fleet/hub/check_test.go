package hub

import (
	"testing"
	"testing/synctest"

	"busbar.dev/fleet"
)

// A check before a job is judged by itself; the heat map goes on showing what sweeps measured, for figures of other
// messages beside them would make whoever was not checked look slow, or fast.
func TestChecksStayOutOfTheHeatMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		nodes := m.join(4)
		h, _ := start(t, m, nil)
		s, err := h.Give(t.Context(), pairOrder())
		if err != nil {
			t.Fatal(err)
		}
		finish(t, h, s.ID)
		before := *h.View().heatOf(fleet.FigureRate).Values[0][1]
		nodes[0].slow.Store(30)
		o := pairOrder()
		o.Job, o.Nodes = "17", []fleet.Name{"n0", "n1", "n2"}
		if s, err = h.Give(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		finish(t, h, s.ID)
		if after := *h.View().heatOf(fleet.FigureRate).Values[0][1]; after != before {
			t.Errorf("the heat map shows %v GB/s after a check, %v before", after, before)
		}
		v, err := h.Verdict(s.ID)
		if err != nil {
			t.Fatal(err)
		}
		if len(v.Unhealthy) != 1 || v.Unhealthy[0].Node != "n0" {
			t.Errorf("the check's verdict: %+v", v)
		}
	})
}
