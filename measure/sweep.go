package measure

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"busbar.dev/finding"
	"busbar.dev/internal/stats"
	"busbar.dev/result/pairs"
)

// Turn measures disjoint pairs at once, and says of each how long it took; 0: it came to no end. An error ends the
// sweep.
type Turn func(ctx context.Context, list [][2]int, limit time.Duration) ([]pairs.Measure, []time.Duration, error)

// Sweep measures pairs of members in turns, and some of them again where something stands out: what is slow every time
// remains.
type Sweep struct {
	Names, Hosts []string // of the members: ranks, hosts, or ports of theirs
	Turn         Turn
	// Away tells members that do not answer; nil: all do.
	Away func(member int) bool
	Show func(text string) // is told how far it is
	// First is how long a pair of the first round may take; 0 is firstTime.
	First time.Duration
	// All measures all rounds again where something stands out, and not only the worst of them. Once measures none.
	All, Once bool

	Turns  int // that were measured, with those again
	Passes int // over all rounds

	took    []time.Duration // by pairs that came to an end
	ended   map[int]bool    // members with such a pair
	strikes map[int]int     // how many pairs of a member came to none
	long    map[int]int     // how many took long, of this pass
	short   map[int]int     // and how many did not
}

// Turns of a sweep. A pair gets some times as long as pairs take in the middle, for it may be slow. A member that came
// to no end with so many others, and with none to one, is not asked again; one that takes long with everybody rests
// when enough is known of it, for all wait for the last pair of a round. Rounds are measured again, whole, so that what
// is named and what it is compared with were measured equally often.
const (
	mostTries   = 3
	manyRounds  = 64  // of more members than allMembers
	allMembers  = 128 // of which all pairs are measured
	againRounds = 16  // that are measured again
	mostStrikes = 3
	// pairs of a member that holds rounds up, each of which took longTimes as long as pairs take in the middle
	slowPairs  = 16
	longTimes  = 1.5
	firstTime  = 20 * time.Second // for a pair of the first round
	leastTime  = 3 * time.Second
	limitTimes = 6
)

// Rounds are those of n members, at most so many; 0 is as many as usual.
func Rounds(n, most int) [][][2]int {
	if most == 0 && n <= allMembers || most >= pairs.Count(n) {
		return pairs.Rounds(n)
	}
	return pairs.Sample(n, cmp.Or(most, manyRounds))
}

// Concurrently is a Turn of which each pair is measured by itself. Of one that came to no end, both directions say why.
func Concurrently(pair func(ctx context.Context, p [2]int, limit time.Duration) [2]pairs.Measure) Turn {
	return func(ctx context.Context, list [][2]int, limit time.Duration) ([]pairs.Measure, []time.Duration, error) {
		cells, took := make([]pairs.Measure, 2*len(list)), make([]time.Duration, len(list))
		var all sync.WaitGroup
		for i, p := range list {
			all.Go(func() {
				begin := time.Now()
				got := pair(ctx, p, limit)
				for k := range got {
					got[k].From, got[k].To = p[k], p[1-k]
				}
				if copy(cells[2*i:], got[:]); got[0].Failed == "" {
					took[i] = time.Since(begin)
				}
			})
		}
		all.Wait()
		return cells, took, nil
	}
}

// Measure measures rounds, again where something stands out, and then those pairs alone that are named.
func (s *Sweep) Measure(ctx context.Context, rounds [][][2]int) (*pairs.Table, error) {
	s.ended, s.strikes = map[int]bool{}, map[int]int{}
	table, err := s.pass(ctx, rounds)
	s.Passes++
	more := func(rounds [][][2]int) {
		var again *pairs.Table
		if again, err = s.pass(ctx, rounds); err == nil {
			table.Better(again)
		}
	}
	serious := func() bool { return finding.Serious(s.Findings(table)) }
	for try := 1; try < mostTries && err == nil && !s.Once && serious(); try++ {
		if try == 1 && len(rounds) > againRounds && !s.All {
			rounds = worstRounds(rounds, namedPairs(s.Findings(table)))
			table.Keep(rounds)
		}
		more(rounds)
		s.Passes++
	}
	for try := 1; try < mostTries && err == nil && !s.Once; try++ {
		// What is slow only while hosts have much else to do is no fault of theirs. Of many there is more to find than a few
		// pairs, and they are left.
		var alone [][][2]int
		for _, p := range namedPairs(s.Findings(table)) {
			alone = append(alone, [][2]int{p})
		}
		if len(alone) == 0 {
			break
		}
		more(alone[:min(len(alone), againRounds/2)])
	}
	return table, err
}

// Findings are those of a table, but for members that have left: what was measured of them as they ended says nothing
// of them, and is not measured again.
func (s *Sweep) Findings(t *pairs.Table) []finding.Finding {
	return slices.DeleteFunc(t.Findings(), func(f finding.Finding) bool {
		return s.Away != nil && slices.ContainsFunc(f.Ranks, s.Away)
	})
}

// namedPairs are the pairs that findings name, each once.
func namedPairs(list []finding.Finding) (named [][2]int) {
	for _, f := range list {
		if f.Severity == finding.Note || !pairs.OfPair(f.Kind) {
			continue
		}
		if p := [2]int{min(f.Ranks[0], f.Ranks[1]), max(f.Ranks[0], f.Ranks[1])}; !slices.Contains(named, p) {
			named = append(named, p)
		}
	}
	return named
}

// worstRounds are those with the most pairs that are named, and then the first ones: every member is in each of them.
func worstRounds(rounds [][][2]int, named [][2]int) [][][2]int {
	count := func(round [][2]int) (n int) {
		for _, p := range round {
			if slices.Contains(named, p) {
				n++
			}
		}
		return n
	}
	rounds = slices.Clone(rounds)
	slices.SortStableFunc(rounds, func(a, b [][2]int) int { return count(b) - count(a) })
	return rounds[:againRounds]
}

// pass measures rounds once.
func (s *Sweep) pass(ctx context.Context, rounds [][][2]int) (*pairs.Table, error) {
	t := &pairs.Table{Names: s.Names, Hosts: s.Hosts}
	s.long, s.short = map[int]int{}, map[int]int{}
	for k, round := range rounds {
		s.Show(fmt.Sprintf("pairs, round %d of %d", k+1, len(rounds)))
		list := slices.DeleteFunc(slices.Clone(round), func(p [2]int) bool { return s.out(p[0]) || s.out(p[1]) })
		if len(list) == 0 {
			continue
		}
		cells, took, err := s.Turn(ctx, list, s.limit())
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		s.Turns++
		s.noteTimes(list, took)
		t.Cells = append(t.Cells, cells...)
		for _, m := range cells {
			if m.Failed == "" {
				s.ended[m.From] = true
			} else {
				s.strikes[m.From]++
			}
		}
	}
	return t, nil
}

// noteTimes remembers how long pairs took.
func (s *Sweep) noteTimes(list [][2]int, took []time.Duration) {
	for _, d := range took {
		if d > 0 {
			s.took = append(s.took, d)
		}
	}
	mid := stats.MedianLow(s.took)
	for i, p := range list {
		count := s.short
		if float64(took[i]) > longTimes*float64(mid) {
			count = s.long
		}
		count[p[0]]++
		count[p[1]]++
	}
}

// out tells members that are not measured any more.
func (s *Sweep) out(member int) bool {
	return s.Away != nil && s.Away(member) || !s.ended[member] && s.strikes[member] >= mostStrikes ||
		s.long[member] >= slowPairs && s.long[member] > 4*s.short[member]
}

// limit is how long a pair may take.
func (s *Sweep) limit() time.Duration {
	mid, first := stats.MedianLow(s.took), cmp.Or(s.First, firstTime)
	if mid == 0 {
		return first
	}
	return min(max(limitTimes*mid, leastTime), 2*first)
}
