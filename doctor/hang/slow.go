package hang

import (
	"context"
	"fmt"

	"busbar.dev/doctor/rates"
)

// slow says that a rank comes late to most collectives: by the times that the recorder has of those that ended.
func (x *judge) slow() (claim, bool) {
	w := rates.NewWindow(1 << 12)
	x.rec.timed(w, x.job.world)
	r, err := rates.Join(context.Background(), rates.Bounds{}, w.Done())
	if err != nil || len(r.Jobs) == 0 {
		return claim{}, false
	}
	late := r.Jobs[0].Late
	if late == nil || late.Share < rates.WarnShare {
		return claim{}, false
	}
	c := newClaim(Late, x.rec.source)
	c.ranks = late.Ranks
	c.doubtful(late.Confidence)
	c.why = fmt.Sprintf("%s comes last to most collectives: the median of the other ranks waits %.0f%% of the time for it",
		rankList(c.ranks), 100*late.Share)
	return c, true
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
