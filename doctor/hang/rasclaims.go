package hang

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/input/ras"
)

// rasView is what RAS says about one moment, by global rank where that is known.
type rasView struct {
	report *ras.Report
	behind map[int]bool // launched fewer operations than others of a communicator
	ahead  map[int]bool
	both   map[int]*ras.Comm // ahead with one collective and behind with another on the same communicator
	gone   []int
	lost   []ras.Process // gone, and not known by rank
	broken bool          // a rank reports that a peer is gone
	comm   map[int]*ras.Comm
	counts map[rasCount]uint64 // for telling whether the job moves
}

// rasCount is what was counted: all operations of a rank, or one where only that is listed.
type rasCount struct {
	comm uint64
	rank int
	op   string
}

// rank is the global rank of a rank of a communicator.
func (j *job) rank(c *ras.Comm, r *ras.Rank) int {
	if g := j.ofPID(r.PID); g >= 0 && r.PID > 0 {
		return g
	}
	if c.Size == j.world && j.world > 0 {
		return r.Rank
	}
	return -1
}

// newRASView reads one report.
func newRASView(r *ras.Report, j *job) *rasView {
	v := &rasView{
		report: r, behind: map[int]bool{}, ahead: map[int]bool{}, both: map[int]*ras.Comm{}, comm: map[int]*ras.Comm{},
		counts: map[rasCount]uint64{},
	}
	gone := map[int]bool{}
	for i := range r.Comms {
		c := &r.Comms[i]
		for k := range c.Ranks {
			x := &c.Ranks[k]
			v.broken = v.broken || x.Async == "Remote process error" ||
				x.Async == "remote process exited or there was a network error"
			if r.JSON {
				n := &x.Counts
				v.counts[rasCount{comm: c.Hash, rank: x.Rank}] = n[0] + n[1] + n[2] + n[3] + n[4]
			}
		}
		for k := range c.Missing {
			if g := j.rank(c, &c.Missing[k]); g >= 0 {
				gone[g] = true
				v.keep(g, c)
			} else if p := c.Missing[k].Process; p.PID > 0 && !slices.Contains(v.lost, p) {
				v.lost = append(v.lost, p)
			}
		}
		v.compare(c, j)
	}
	for _, p := range slices.Concat(r.Missing, r.Dead) {
		if g := j.ofPID(p.PID); g >= 0 {
			gone[g] = true
		}
	}
	v.gone = slices.Sorted(maps.Keys(gone))
	return v
}

// keep remembers the smallest communicator on which something is wrong with a rank.
func (v *rasView) keep(g int, c *ras.Comm) {
	if old := v.comm[g]; old == nil || c.Size < old.Size && c.Size > 0 {
		v.comm[g] = c
	}
}

// lags are how many of each operation in which its members differ they launched: as a text lists it, and from the
// counts of all ranks.
func lags(c *ras.Comm) []ras.Lag {
	list := c.Lags
	for o, op := range ras.Ops {
		by := map[uint64][]ras.Rank{}
		for k := range c.Ranks {
			n := c.Ranks[k].Counts[o]
			by[n] = append(by[n], c.Ranks[k])
		}
		for _, n := range slices.Sorted(maps.Keys(by)) {
			if len(by) > 1 {
				list = append(list, ras.Lag{Op: op, Count: n, N: len(by[n]), Ranks: by[n]})
			}
		}
	}
	return list
}

// compare says who of a communicator is behind, and who calls another collective: who is behind with one and ahead with
// another, or launched a kind that no other member ever launched. Of two members either could be the one.
func (v *rasView) compare(c *ras.Comm, j *job) {
	list := lags(c)
	most, least, levels := map[string]uint64{}, map[string]uint64{}, map[string]int{}
	for _, l := range list {
		if n, ok := least[l.Op]; !ok || l.Count < n {
			least[l.Op] = l.Count
		}
		most[l.Op] = max(most[l.Op], l.Count)
		levels[l.Op]++
	}
	low, high, alone := map[int]bool{}, map[int]bool{}, map[int]bool{}
	for _, l := range list {
		for k := range l.Ranks {
			x := &l.Ranks[k]
			if !v.report.JSON {
				v.counts[rasCount{c.Hash, x.Rank, l.Op}] = l.Count
			}
			g := j.rank(c, x)
			if g < 0 {
				continue
			}
			if l.Count < most[l.Op] {
				v.behind[g], low[g] = true, true
				v.keep(g, c)
			}
			if l.Count > least[l.Op] {
				v.ahead[g], high[g] = true, true
				alone[g] = alone[g] || len(c.Ranks) > 2 && l.N == 1 && least[l.Op] == 0 && levels[l.Op] == 2
			}
		}
	}
	odd, pair := oddOfPair(c)
	for g := range high {
		if (low[g] || alone[g]) && (!pair || g == j.rank(c, &c.Ranks[odd])) {
			v.both[g] = c
		}
	}
}

// oddOfPair is who of two members calls another collective: each launched one that the other did not, and of one of
// them the other never launched any, while both used the second before.
func oddOfPair(c *ras.Comm) (int, bool) {
	if len(c.Ranks) != 2 {
		return 0, false
	}
	a, b := &c.Ranks[0].Counts, &c.Ranks[1].Counts
	newTo := func(x, y *[5]uint64) bool { // x launched a kind that y never did
		for o := range x {
			if x[o] > 0 && y[o] == 0 {
				return true
			}
		}
		return false
	}
	switch odd := newTo(a, b); {
	case odd && !newTo(b, a):
		return 0, true
	case !odd && newTo(b, a):
		return 1, true
	}
	return 0, false
}

// rasViews are all reports, in the order of their time; those without one in the order they were given.
func rasViews(c *Case, j *job) []*rasView {
	list := slices.Clone(c.ras)
	slices.SortStableFunc(list, func(a, b *ras.Report) int {
		if a.Time == "" || b.Time == "" {
			return 0
		}
		return cmp.Compare(a.Time, b.Time)
	})
	var views []*rasView
	for _, r := range list {
		views = append(views, newRASView(r, j))
	}
	return views
}

// moved reports whether the job launched collectives between two reports of it that have the counts of all ranks, and
// whether there are two such reports at different times.
func moved(views []*rasView) (yes, known bool) {
	var first, last *rasView
	for _, v := range views {
		if v.report.Time == "" {
			continue // a text of unknown time
		}
		first = cmp.Or(first, v)
		last = v
	}
	if first == nil || first == last || first.report.Time == last.report.Time {
		return false, false
	}
	if len(first.counts) == 0 && len(last.counts) == 0 {
		return false, false // nothing differs, and nothing was counted
	}
	for k, n := range last.counts {
		if old, ok := first.counts[k]; ok && n > old {
			return true, true
		}
	}
	return false, true
}

// rasComm describes a communicator for the verdict.
func (j *job) rasComm(c *ras.Comm) *Communicator {
	out := &Communicator{Hash: fmt.Sprintf("%016x", c.Hash)}
	for _, list := range [][]ras.Rank{c.Ranks, c.Missing} {
		for k := range list {
			if g := j.rank(c, &list[k]); g >= 0 {
				out.Ranks = append(out.Ranks, g)
			}
		}
	}
	slices.Sort(out.Ranks)
	out.Ranks = slices.Compact(out.Ranks)
	if c.Size == j.world {
		out.Group = "world"
	} else if len(out.Ranks) == c.Size {
		out.Group = parallelGroup("", out.Ranks, j.world)
	}
	out.Name = out.Group
	out.Name = cmp.Or(out.Name, out.Hash)
	return out
}

// rasClaims are what RAS alone concludes: differing operations, processes that do not answer, ranks that are behind.
func rasClaims(views []*rasView, j *job) []claim {
	var list []claim
	if len(views) == 0 {
		return nil
	}
	if yes, known := moved(views); yes && known {
		return nil
	}
	last := views[len(views)-1]
	for _, v := range views { // a text lists only some ranks
		if v.report.JSON {
			last = v
		}
	}
	for _, g := range slices.Sorted(maps.Keys(last.both)) {
		c := last.both[g]
		if !last.report.JSON && len(last.both) > 1 {
			break
		}
		// who launched a collective that nobody else did, and lacks one that all others have
		if _, odd := oddOfPair(c); !odd && !aloneWith(c, j, g) {
			continue
		}
		list = append(list, claim{
			kind: OpMismatch, ranks: []int{g}, source: fromRAS, sure: 0.88, comm: j.rasComm(c),
			quotes: []finding.Quote{{File: last.report.Name, Text: rasLine(c, g, j)}},
			why:    fmt.Sprintf("rank %d launched a collective that the others did not, and lacks one that they launched", g),
		})
	}
	// the first report in which somebody is missing: later ones also miss who left because of that
	for _, v := range views {
		if len(v.gone) == 0 && len(v.lost) == 0 {
			continue
		}
		c := claim{
			kind: Stopped, ranks: v.gone, source: fromRAS, sure: 0.8,
			why: fmt.Sprintf("%s does not answer the RAS service", rankList(v.gone)),
		}
		if v.broken {
			c.kind, c.sure, c.most = Killed, 0.65, 0.7 // RAS does not say how
			c.why += ", and its connections are closed"
		}
		if len(v.gone) != 1 { // who left first, and who because of that, or which rank that is, it does not say either
			c.sure, c.most = 0.5, 0.6
		}
		if len(v.gone) == 0 {
			c.why = strings.Replace(c.why, rankList(nil),
				fmt.Sprintf("process %d on %s, whose rank is not known,", v.lost[0].PID, v.lost[0].Host), 1)
		}
		if len(v.gone) > 0 {
			if comm := v.comm[v.gone[0]]; comm != nil {
				c.comm = j.rasComm(comm)
			}
		}
		c.quotes = []finding.Quote{{File: v.report.Name, Text: goneLine(v)}}
		list = append(list, c)
		break
	}
	return append(list, behindClaim(last, j)...)
}

// behindClaim says who launched fewer collectives than others and is ahead of nobody.
func behindClaim(v *rasView, j *job) []claim {
	var ranks []int
	for g := range v.behind {
		if !v.ahead[g] {
			ranks = append(ranks, g)
		}
	}
	if len(ranks) == 0 || len(v.both) > 0 {
		return nil
	}
	slices.Sort(ranks)
	c := claim{kind: Late, ranks: ranks, source: fromRAS, sure: 0.8}
	if len(ranks) > len(v.ahead) && len(v.ahead) > 0 {
		c.sure = 0.5 // or the few completed a collective that these still wait in, as one of another size does
	}
	if comm := v.comm[ranks[0]]; comm != nil {
		c.comm = j.rasComm(comm)
		c.op, c.seq = nextOp(comm, j, ranks[0])
		c.quotes = []finding.Quote{{File: v.report.Name, Text: rasLine(comm, ranks[0], j)}}
	}
	c.why = fmt.Sprintf("%s has launched fewer collectives than the other members of %s", rankList(ranks), c.what())
	for g := range v.ahead {
		c.waiting = append(c.waiting, g)
	}
	slices.Sort(c.waiting)
	return []claim{c}
}

// aloneWith reports a rank that alone launched a kind of collective, or that alone has other counts than all others.
func aloneWith(c *ras.Comm, j *job, g int) bool {
	by := map[string][]int{}
	for k := range c.Ranks {
		by[fmt.Sprint(c.Ranks[k].Counts)] = append(by[fmt.Sprint(c.Ranks[k].Counts)], j.rank(c, &c.Ranks[k]))
	}
	if len(by) > 1 {
		few, clear := minority(by)
		return clear && slices.Contains(few, g)
	}
	return len(c.Lags) > 0
}

// nextOp is the collective that a rank is behind with, as far as the counts tell.
func nextOp(c *ras.Comm, j *job, g int) (string, int) {
	list := lags(c)
	for _, l := range list {
		more := slices.ContainsFunc(list, func(o ras.Lag) bool { return o.Op == l.Op && o.Count > l.Count })
		if more && slices.ContainsFunc(l.Ranks, func(x ras.Rank) bool { return j.rank(c, &x) == g }) {
			return opWord(l.Op), int(l.Count) + 1
		}
	}
	return "", 0
}

// rasLine says what RAS counted.
func rasLine(c *ras.Comm, g int, j *job) string {
	text := fmt.Sprintf("communicator %016x:", c.Hash)
	n := 0
	for k := range c.Ranks {
		x := &c.Ranks[k]
		if r := j.rank(c, x); r == g || n < 2 {
			if n++; n > 4 {
				break
			}
			text += fmt.Sprintf(" rank %d launched %s;", r, countText(x))
		}
	}
	for _, l := range c.Lags {
		text += fmt.Sprintf(" %d launched %d %s;", l.N, l.Count, l.Op)
	}
	return text[:len(text)-1]
}

func countText(x *ras.Rank) string {
	text := ""
	for o, n := range x.Counts {
		if n > 0 {
			text += fmt.Sprintf(" %d %s", n, ras.Ops[o])
		}
	}
	if text == "" {
		return "nothing"
	}
	return text[1:]
}

func goneLine(v *rasView) string {
	for i := range v.report.Comms {
		c := &v.report.Comms[i]
		for k := range c.Missing {
			x := &c.Missing[k]
			return fmt.Sprintf("communicator %016x: no data from rank %d, process %d on %s", c.Hash, x.Rank, x.PID, x.Host)
		}
	}
	for _, p := range slices.Concat(v.report.Missing, v.report.Dead) {
		return fmt.Sprintf("no data from process %d on %s", p.PID, p.Host)
	}
	return "processes are missing"
}
