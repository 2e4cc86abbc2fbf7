package msccl

import "busbar.dev/schedule"

// cut decides where messages become several steps: where the chunks of either end are not one piece
// of memory, and alike along a chain of instructions that pass them on.
func (l *lowering) cut() {
	l.cuts = newJoin(len(l.msgs))
	for _, x := range l.ranks {
		for i := range x.ops {
			if o := &x.ops[i]; o.next >= 0 {
				l.cuts.join(o.msg, x.ops[o.next].msg)
			}
		}
	}
	for _, x := range l.ranks {
		for i := range x.ops {
			o := &x.ops[i]
			if o.Verb != schedule.Send && !o.Verb.Receives() || o.taken {
				continue
			}
			m := &l.msgs[l.cuts.root(o.msg)]
			for k := 1; k < len(o.spots); k++ {
				if o.broken(k) {
					if m.at == nil {
						m.at = make([]bool, m.n)
					}
					m.at[k] = true
				}
			}
		}
	}
}

// broken reports whether chunk k of an op does not follow the one before it in memory.
func (o *op) broken(k int) bool {
	a, b := o.spots[k-1], o.spots[k]
	follows := func(x, y place) bool { return x.buf == y.buf && (x.buf == 0 || x.off+1 == y.off) }
	return !follows(a.src, b.src) || !follows(a.dst, b.dst)
}

// pieces calls f with the parts of an op that are one step each.
func (l *lowering) pieces(o *op, f func(from, to int) error) error {
	var at []bool
	remote := o.Verb == schedule.Send || o.Verb.Receives()
	if remote {
		at = l.msgs[l.cuts.root(o.msg)].at
	}
	from := 0
	for k := 1; k <= len(o.spots); k++ {
		if k < len(o.spots) && k-from < maxCount && !(at != nil && at[k]) && (remote || !o.broken(k)) {
			continue
		}
		if err := f(from, k); err != nil {
			return err
		}
		from = k
	}
	return nil
}
