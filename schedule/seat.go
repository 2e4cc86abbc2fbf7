package schedule

// body is an algorithm over positions 0 to n-1 (and, from n on, its switches) and over blocks
// of one channel's data. It knows neither the numbers of ranks nor chunks; a seat translates.
// Scratch is counted in chunks already.
type body interface {
	size(p, lane int) int
	op(p, lane, i int) Op
}

// seat is where a body's positions and blocks are.
type seat struct {
	members  []int32 // the rank at each position; nil: from first on, with skip between two
	first    int32
	skip     int32
	switches int32 // the participant that is the body's first switch
	n        int32 // positions that are ranks

	bounds    []int32 // the chunk at which each block begins, and the end; nil: blocks are equal parts of
	lo, width int32   // the chunks from lo on,
	blocks    int32   // into so many
}

func (s *seat) bound(b int32) int32 {
	if s.bounds != nil {
		return s.bounds[b]
	}
	if s.width == s.blocks {
		return s.lo + b
	}
	return s.lo + int32(int64(b)*int64(s.width)/int64(s.blocks))
}

func (s *seat) rank(p int32) int32 {
	switch {
	case p >= s.n:
		return s.switches + p - s.n
	case s.members != nil:
		return s.members[p]
	}
	return s.first + p + p*s.skip
}

// place translates an op. The channel's chunks begin at data in Data and Out, and at temp in
// Temp.
func (s *seat) place(o *Op, data, temp int32) {
	if !o.Verb.Local() {
		o.Peer = s.rank(o.Peer)
	} else if o.Dst == Temp {
		o.At += temp
	} else {
		o.At = s.bound(o.At) + data
	}
	if o.Buf == Temp {
		o.From, o.To = o.From+temp, o.To+temp
	} else {
		o.From, o.To = s.bound(o.From)+data, s.bound(o.To)+data
	}
}

// flat is one body over all ranks.
type flat struct {
	body body
	seat seat
	pos  []int32 // the position of each rank; nil is the rank itself
	per  int     // lanes of a channel
	temp int32   // scratch of a channel
	// ranks is how many there are of all_to_all_v, whose ops have classes; 0 for all others. Only algorithms whose
	// messages go straight from source to destination do it.
	ranks int32
}

func (f *flat) mark(o *Op, rank int) {
	if f.ranks == 0 {
		return
	}
	from, to := int32(rank), int32(rank)
	if o.Verb == Send {
		to = o.Peer
	} else if o.Verb == Recv {
		from = o.Peer
	}
	o.Class = 1 + from*f.ranks + to
}

func (f *flat) where(rank int) int {
	switch {
	case rank >= int(f.seat.n):
		return rank - int(f.seat.switches) + int(f.seat.n)
	case f.pos != nil:
		return int(f.pos[rank])
	}
	return rank
}

func (f *flat) Len(rank, lane int) int { return f.body.size(f.where(rank), lane) }

func (f *flat) At(rank, lane, i int) Op {
	channel := int32(lane / f.per)
	o := f.body.op(f.where(rank), lane, i)
	f.seat.place(&o, channel*f.seat.width, channel*f.temp)
	f.mark(&o, rank)
	return o
}

// seq is one body after another, in the same lane.
type seq struct{ a, b body }

func (s seq) size(p, lane int) int { return s.a.size(p, lane) + s.b.size(p, lane) }

func (s seq) op(p, lane, i int) Op {
	if n := s.a.size(p, lane); i >= n {
		return s.b.op(p, lane, i-n)
	}
	return s.a.op(p, lane, i)
}

// mirror is a body run backwards with the arrows turned round. What spread copies of a block
// along a tree collects them along the same tree: an all-gather becomes a reduce-scatter, a
// broadcast a reduce and, without adding, a gather a scatter. The body has no waits, and uses
// scratch for packing only.
type mirror struct {
	body body
	add  bool
}

func (m mirror) size(p, lane int) int { return m.body.size(p, lane) }

func (m mirror) op(p, lane, i int) Op {
	o := m.body.op(p, lane, m.body.size(p, lane)-1-i)
	switch o.Verb {
	case Send:
		o.Verb = Recv
		if m.add && o.Buf != Temp {
			o.Verb = RecvReduce
		}
	case Recv, RecvReduce:
		o.Verb = Send
	case Copy:
		n := o.To - o.From
		if m.add && o.Buf != Temp {
			o.Verb = Fold
		}
		o.Buf, o.Dst, o.From, o.At = o.Dst, o.Buf, o.At, o.From
		o.To = o.From + n
	}
	return o
}

// wrap is x modulo n for -n <= x < 2n; it costs less than a division.
func wrap(x, n int) int {
	switch {
	case x < 0:
		return x + n
	case x >= n:
		return x - n
	}
	return x
}

// mod is x modulo n, never negative.
func mod(x, n int) int {
	x %= n
	if x < 0 {
		x += n
	}
	return x
}
