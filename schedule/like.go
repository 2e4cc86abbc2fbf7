package schedule

// Repeat is a schedule with n times as many channels, which do what the first ones do, in turn. The algorithm must be
// one whose channels do so: rings and trees from outside, switches, and trees over groups across them.
func (s *Schedule) Repeat(n int) *Schedule {
	r := *s
	r.Lanes, r.Channels, r.Temp = n*s.Lanes, n*s.Channels, n*s.Temp
	r.Layout.Chunks, r.Layout.Channels = n*s.Layout.Chunks, n*s.Layout.Channels
	return &r
}

// Like numbers the kinds of channels of a stage: those of one number send the same, between the same participants.
func (st *Stage) Like(channel int) int {
	if st.part == nil {
		return channel
	}
	b, _ := st.part.some(0)
	if x, ok := b.(repeating); ok {
		return x.like(channel)
	}
	return channel
}

// repeating is a body or a shape that knows which of its channels are alike.
type repeating interface{ like(channel int) int }

func (r ring) like(channel int) int {
	if r.both {
		return channel % 2
	}
	return 0
}

func (r *rings) like(channel int) int {
	if r.both {
		return channel
	}
	return r.seating.like(channel)
}

func (k kept) like(channel int) int { return channel % len(k) }

func (t *turned) like(channel int) int {
	if !t.equal {
		return channel
	}
	return channel % t.rails
}

func (t *tree) like(channel int) int {
	if x, ok := t.shape.(repeating); ok {
		return x.like(channel)
	}
	return channel
}

func (nvls) like(int) int { return 0 }

func (direct) like(int) int { return 0 }

func (chain) like(int) int { return 0 }

func (binomial) like(int) int { return 0 }

func (star) like(int) int { return 0 }

func (g *Trees) like(channel int) int { return g.tree(channel) }

func (d dtree) like(channel int) int {
	k := 0
	switch {
	case d.turn && !d.equal:
		return channel
	case d.turn:
		k = 2 * (channel % d.rails)
	}
	if d.second(channel) {
		k++
	}
	return k
}
