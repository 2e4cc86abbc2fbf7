package engine

import "time"

// A rank that leaves while others wait for it on a board sends nothing that they could miss:
// no message is expected of it. What tells them is the end of its link or, of rank 0, which
// keeps its links until the others have left, the word that it would like to go.

// deserted is an error when some call waits for a rank that has left. It is asked when nothing
// has moved for a while: the last that such a rank wrote on its pages has been seen by then.
func (g *Group) deserted(idle time.Duration) error {
	parting := g.net != nil && g.net.parting.Load() && idle > g.cfg.Timeout/4
	for _, c := range g.active {
		if c.boards() {
			for r := range c.board.pages {
				l := c.board.pages[r].link
				if l == nil || c.board.lacks(r) == "" {
					continue
				}
				if l.ended != nil && c.board.stage != boardVotes { // votes that have come are still counted
					return &linkError{l, l.ended}
				}
				if parting && l.peer == 0 {
					return g.peerError(0, Left, "while others still needed it")
				}
			}
		}
		for i := range c.lanes {
			if ln := &c.lanes[i]; parting && (ln.state == awaitsMessage || ln.state == receives) && ln.steps[ln.pc].peer == 0 {
				return g.peerError(0, Left, "while others still needed it")
			}
		}
	}
	return nil
}
