package schedule

import (
	"busbar.dev/coll"
	"busbar.dev/unit"
)

// Extent is where chunk lies in a rank's Data or Out, in bytes.
func (s *Schedule) Extent(op coll.Op, rank int, buf Buffer, chunk int) (at, size unit.Bytes) {
	block, piece := s.Layout.Place(chunk)
	base, total := unit.Bytes(block)*op.Block(s.Ranks), op.Block(s.Ranks)
	if op.Sizes != nil {
		base = 0
		for b := range block {
			base += s.pair(op, rank, b, buf)
		}
		total = s.pair(op, rank, block, buf)
	}
	elem := unit.Bytes(op.Type.Size())
	from, to := Elements(int64(total/elem), piece, s.Layout.Pieces())
	return base + unit.Bytes(from)*elem, unit.Bytes(to-from) * elem
}

func (s *Schedule) pair(op coll.Op, rank, block int, buf Buffer) unit.Bytes {
	if buf == Out {
		return op.Pair(s.Ranks, block, rank)
	}
	return op.Pair(s.Ranks, rank, block)
}

// Sent is what a rank sends and receives in all.
func (s *Schedule) Sent(op coll.Op, rank int) (sent, received unit.Bytes) {
	for lane := range s.Lanes {
		for i := range s.Len(rank, lane) {
			switch o := s.At(rank, lane, i); {
			case o.Verb == Send:
				sent += s.Bytes(op, o)
			case o.Verb.Receives():
				received += s.Bytes(op, o)
			}
		}
	}
	return sent, received
}

// Store copies a program into memory, so that it can be changed.
// Stored is a program kept in memory, by rank and lane.
type Stored [][][]Op

func (p Stored) Len(rank, lane int) int { return len(p[rank][lane]) }

func (p Stored) At(rank, lane, i int) Op { return p[rank][lane][i] }

// Store keeps a schedule's program.
func Store(s *Schedule) Stored {
	p := make(Stored, s.Nodes())
	for r := range p {
		p[r] = make([][]Op, s.Lanes)
		for l := range p[r] {
			p[r][l] = make([]Op, s.Len(r, l))
			for i := range p[r][l] {
				p[r][l][i] = s.At(r, l, i)
			}
		}
	}
	return p
}
