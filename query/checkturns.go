package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"busbar.dev/finding"
	"busbar.dev/internal/stats"
	"busbar.dev/result/pairs"
)

// Turns of a check. A pair gets some times as long as pairs take in the middle, for it may be slow. A node that came to no end with so many
// others, and with none to one, is not asked again; one that takes long with everybody rests when enough is known of it, for all wait
// for the last pair of a round. Rounds are measured again, whole, so that what is named and what
// it is compared with were measured equally often.
const (
	checkTries   = 3
	checkRounds  = 64  // of more nodes than checkAll
	checkAll     = 128 // nodes of which all pairs are measured
	checkAgain   = 16  // rounds that are measured again
	checkStrikes = 3
	checkSlow    = 16 // pairs of a node that holds rounds up, each of which took checkLong times as long as pairs take in the middle
	checkLong    = 1.5
	checkFirst   = 20 * time.Second // for a pair of the first round
	checkLeast   = 3 * time.Second
	checkTimes   = 6
)

// checkPairs measures pairs in turns.
type checkPairs struct {
	names, hosts []string
	away         func(rank int) bool // it does not answer, or never came
	// turn measures disjoint pairs, and says of each how long it took; 0: it came to no end.
	turn func(ctx context.Context, list [][2]int, limit time.Duration) ([]pairs.Measure, []time.Duration)
	show func(string)
	// first is how long a pair of the first round may take; 0 is checkFirst.
	first time.Duration
	// every measures all rounds again where something stands out, and not only checkAgain of them.
	every bool

	took    []time.Duration // by pairs that came to an end
	ended   map[int]bool    // ranks with such a pair
	strikes map[int]int     // how many pairs of a rank came to none
	long    map[int]int     // how many took long, of this pass
	short   map[int]int     // and how many did not
	turns   int
}

// checkSchedule is the rounds of n nodes, at most so many; 0 is as many as usual.
func checkSchedule(n, most int) [][][2]int {
	if most == 0 && n <= checkAll || most >= pairs.Count(n) {
		return pairs.Rounds(n)
	}
	most = cmp.Or(most, checkRounds)
	return pairs.Sample(n, most)
}

// measure measures rounds, and some of them again where something stands out.
func (c *checkPairs) measure(ctx context.Context, rounds [][][2]int) (*pairs.Table, error) {
	c.ended, c.strikes = map[int]bool{}, map[int]int{}
	return measureAgain(rounds, c.every, func(rounds [][][2]int) (*pairs.Table, error) { return c.pass(ctx, rounds) })
}

// measureAgain measures rounds by pass, again where something stands out, and then those pairs alone that are named; what is slow every time
// remains. Of many rounds some are repeated, and the others are not judged, unless every says that all are.
func measureAgain(rounds [][][2]int, every bool, pass func([][][2]int) (*pairs.Table, error)) (*pairs.Table, error) {
	table, err := pass(rounds)
	more := func(rounds [][][2]int) {
		var again *pairs.Table
		if again, err = pass(rounds); err == nil {
			table.Better(again)
		}
	}
	for try := 1; try < checkTries && err == nil && standsOut(table); try++ {
		if try == 1 && len(rounds) > checkAgain && !every {
			rounds = worstRounds(rounds, table.Findings())
			table.Keep(rounds)
		}
		more(rounds)
	}
	for try := 0; try < checkTries-1 && err == nil; try++ {
		alone := namedPairs(table.Findings())
		if len(alone) == 0 {
			break
		}
		more(alone)
	}
	return table, err
}

// namedPairs are rounds of those pairs alone that findings name: what is slow only while hosts have much else to do is no fault of theirs. Of many
// there is more to find than a few pairs, and they are left.
func namedPairs(list []finding.Finding) (rounds [][][2]int) {
	for _, f := range list {
		if f.Severity == finding.Note || !pairs.OfPair(f.Kind) {
			continue
		}
		p := [2]int{min(f.Ranks[0], f.Ranks[1]), max(f.Ranks[0], f.Ranks[1])}
		if !slices.ContainsFunc(rounds, func(r [][2]int) bool { return r[0] == p }) {
			rounds = append(rounds, [][2]int{p})
		}
	}
	return rounds[:min(len(rounds), checkAgain/2)]
}

// pass measures rounds once.
func (c *checkPairs) pass(ctx context.Context, rounds [][][2]int) (*pairs.Table, error) {
	t := &pairs.Table{Names: c.names, Hosts: c.hosts}
	c.long, c.short = map[int]int{}, map[int]int{}
	for k, round := range rounds {
		c.show(fmt.Sprintf("pairs, round %d of %d", k+1, len(rounds)))
		var list [][2]int
		for _, p := range round {
			if !c.out(p[0]) && !c.out(p[1]) {
				list = append(list, p)
			}
		}
		if len(list) == 0 {
			continue
		}
		cells, took := c.turn(ctx, list, c.limit())
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		c.turns++
		c.note(list, took)
		t.Cells = append(t.Cells, cells...)
		for _, m := range cells {
			if m.Failed == "" {
				c.ended[m.From] = true
			} else {
				c.strikes[m.From]++
			}
		}
	}
	return t, nil
}

// note remembers how long pairs took.
func (c *checkPairs) note(list [][2]int, took []time.Duration) {
	for _, d := range took {
		if d > 0 {
			c.took = append(c.took, d)
		}
	}
	mid := c.middle()
	for i, p := range list {
		count := c.short
		if took[i] > time.Duration(checkLong*float64(mid)) {
			count = c.long
		}
		count[p[0]]++
		count[p[1]]++
	}
}

// out tells nodes that are not measured any more.
func (c *checkPairs) out(rank int) bool {
	return c.away(rank) || !c.ended[rank] && c.strikes[rank] >= checkStrikes || c.long[rank] >= checkSlow && c.long[rank] > 4*c.short[rank]
}

// middle is how long pairs take.
func (c *checkPairs) middle() time.Duration {
	if len(c.took) == 0 {
		return 0
	}
	list := make([]float64, len(c.took))
	for i, d := range c.took {
		list[i] = float64(d)
	}
	return time.Duration(stats.Median(list))
}

// limit is how long a pair may take.
func (c *checkPairs) limit() time.Duration {
	mid, first := c.middle(), cmp.Or(c.first, checkFirst)
	if mid == 0 {
		return first
	}
	return min(max(checkTimes*mid, checkLeast), 2*first)
}

// worstRounds are those with the pairs that findings name, and then the first ones: every node is in each of them.
func worstRounds(rounds [][][2]int, list []finding.Finding) [][][2]int {
	named := map[[2]int]int{}
	for _, f := range list {
		if f.Severity != finding.Note && pairs.OfPair(f.Kind) {
			named[[2]int{min(f.Ranks[0], f.Ranks[1]), max(f.Ranks[0], f.Ranks[1])}]++
		}
	}
	count := func(round [][2]int) (n int) {
		for _, p := range round {
			n += named[p]
		}
		return n
	}
	rounds = slices.Clone(rounds)
	slices.SortStableFunc(rounds, func(a, b [][2]int) int { return count(b) - count(a) })
	return rounds[:checkAgain]
}
