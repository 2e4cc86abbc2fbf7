package engine

import (
	"fmt"
	"time"
)

// waitWord is after how long a rank says for whom it waits.
const waitWord = 2 * time.Second

// Waiting is for whom a rank waits when the ranks meet.
type Waiting struct {
	Rank, Size int // who waits, and how many are to meet
	// who has not come: of rank 0 the others, of the others rank 0; none: it has, and waits for others itself
	For  []int
	Meet string // where
}

func (w Waiting) String() string {
	switch {
	case len(w.For) == 0:
		return fmt.Sprintf("rank %d of %d has found rank 0 at %s, which waits for others", w.Rank, w.Size, w.Meet)
	case w.Rank != 0:
		return fmt.Sprintf("rank %d of %d is waiting for rank 0 at %s", w.Rank, w.Size, w.Meet)
	}
	if len(w.For) == 2 {
		return fmt.Sprintf("waiting for ranks %d and %d of %d at %s", w.For[0], w.For[1], w.Size, w.Meet)
	}
	return fmt.Sprintf("waiting for %s of %d at %s", rankList(w.For), w.Size, w.Meet)
}

// reportMissing tells once for whom this rank waits, unless the ranks have met by then; the
// function it returns calls that off.
func (n *network) reportMissing() (stop func()) {
	t := time.AfterFunc(waitWord, func() {
		w := Waiting{Rank: n.cfg.Rank, Size: n.cfg.Size, Meet: n.cfg.Meet}
		switch {
		case n.coordinator != nil:
			if w.For = n.coordinator.missing(); len(w.For) == 0 {
				return
			}
		case !n.met.Load():
			w.For = []int{0}
		}
		n.cfg.OnWait(w)
	})
	return func() { t.Stop() }
}
