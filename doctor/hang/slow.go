package hang

import (
	"context"
	"fmt"
	"time"

	"busbar.dev/doctor/rates"
)

// slow says that a rank, or a node, comes late to most collectives: by the times that the recorder and Inspector have
// of those that ended.
func (x *judge) slow() (claim, bool) {
	const samples = 1 << 12
	dumps, inspected := rates.NewWindow(samples), rates.NewWindow(samples)
	x.rec.timed(dumps, x.job.world)
	for _, in := range x.c.inspect {
		inspected.AddInspector(in.records, time.Time{})
	}
	for _, s := range []struct {
		source string
		window *rates.Window
	}{{fromRecorder, dumps}, {fromInspector, inspected}} {
		r, err := rates.Join(context.Background(), rates.Bounds{}, s.window.Done())
		if err != nil || len(r.Jobs) == 0 {
			continue
		}
		if l := r.Jobs[0].Late; l != nil && l.Share >= rates.WarnShare {
			return claim{
				kind: Late, ranks: l.Ranks, source: s.source, sure: min(0.9, l.Confidence),
				why: fmt.Sprintf("%s comes last to most collectives: the median of the other ranks waits %.0f%% of the time "+
					"for it", rankList(l.Ranks), 100*l.Share),
			}, true
		}
	}
	return claim{}, false
}

// timed adds the recorder's times of completed collectives, where timing was on.
func (x *table) timed(w *rates.Window, world int) {
	for _, h := range x.order {
		for i := range h.entries {
			e := &h.entries[i]
			if e.DurationMs <= 0 || e.P2P {
				continue
			}
			g, sig := &x.set.Groups[e.Group], &x.set.Sigs[e.Sig]
			w.Add(rates.Member{
				Comm: groupName(g), Rank: h.rank, Ranks: len(g.Ranks), Global: h.rank, World: world, Local: -1, PID: h.rank + 1,
			}, opWord(sig.Op), sig.In, rates.Sample{Seq: uint64(e.Seq), At: e.Created / 1000, Us: 1000 * float64(e.DurationMs)})
		}
	}
}
