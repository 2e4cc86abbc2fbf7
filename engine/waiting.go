package engine

import (
	"fmt"
	"time"
)

// waitWord is after how long a rank says for whom it waits.
const waitWord = 2 * time.Second

// waitingText says for whom a rank waits when the ranks meet: of rank 0 the others, of the others rank 0; for nobody
// where rank 0 has come and waits for others itself.
func (c *Config) waitingText(missing []int) string {
	switch {
	case len(missing) == 0:
		return fmt.Sprintf("rank %d of %d has found rank 0 at %s, which waits for others", c.Rank, c.Size, c.Meet)
	case c.Rank != 0:
		return fmt.Sprintf("rank %d of %d is waiting for rank 0 at %s", c.Rank, c.Size, c.Meet)
	case len(missing) == 2:
		return fmt.Sprintf("waiting for ranks %d and %d of %d at %s", missing[0], missing[1], c.Size, c.Meet)
	}
	return fmt.Sprintf("waiting for %s of %d at %s", rankList(missing), c.Size, c.Meet)
}

// reportMissing tells once for whom this rank waits, unless the ranks have met by then; the
// function it returns calls that off.
func (n *network) reportMissing() (stop func()) {
	t := time.AfterFunc(waitWord, func() {
		var missing []int
		switch {
		case n.coordinator != nil:
			if missing = n.coordinator.missing(); len(missing) == 0 {
				return
			}
		case !n.met.Load():
			missing = []int{0}
		}
		n.cfg.OnWait(n.cfg.waitingText(missing))
	})
	return func() { t.Stop() }
}
