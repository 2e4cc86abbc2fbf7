package schedule

import "fmt"

// Rename gives every rank another number: rank r of s becomes perm[r], blocks and root with it.
// The schedule stays what it was, for every collective but sendrecv, whose neighbours are
// defined by number.
func Rename(s *Schedule, perm []int) (*Schedule, error) {
	if err := permutation(perm, s.Ranks); err != nil {
		return nil, fmt.Errorf("rename: %w", err)
	}
	p := &renamed{Program: s.Program, ranks: int32(s.Ranks), to: make([]int32, s.Nodes()), from: make([]int32, s.Nodes())}
	for r := range p.to {
		p.to[r] = int32(r)
		if r < s.Ranks {
			p.to[r] = int32(perm[r])
		}
		p.from[p.to[r]] = int32(r)
	}
	t := *s
	t.Program = p
	t.Root = perm[s.Root]
	if s.Layout.Blocks == s.Ranks && s.Kind.Blocked() {
		t.Layout.Order = make([]int32, s.Ranks)
		for q := range t.Layout.Order {
			block := int32(q)
			if s.Layout.Order != nil {
				block = s.Layout.Order[q]
			}
			t.Layout.Order[q] = p.to[block]
		}
	}
	t.Switches = make([]Switch, len(s.Switches))
	for i, sw := range s.Switches {
		t.Switches[i] = Switch{sw.Kind, make([]int, len(sw.Members))}
		for k, r := range sw.Members {
			t.Switches[i].Members[k] = perm[r]
		}
	}
	return &t, nil
}

type renamed struct {
	Program
	ranks    int32
	to, from []int32
}

func (p *renamed) Len(rank, lane int) int { return p.Program.Len(int(p.from[rank]), lane) }

func (p *renamed) At(rank, lane, i int) Op {
	o := p.Program.At(int(p.from[rank]), lane, i)
	if !o.Verb.Local() && o.Verb != Nop {
		o.Peer = p.to[o.Peer]
	}
	if o.Class > 0 {
		from, to := (o.Class-1)/p.ranks, (o.Class-1)%p.ranks
		o.Class = 1 + p.to[from]*p.ranks + p.to[to]
	}
	return o
}
