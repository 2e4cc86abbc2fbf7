package hang

import (
	"cmp"
	"slices"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/input/flightrec"
)

// history is what the recorder says about one rank, from all dumps of it.
type history struct {
	rank    int
	entries []flightrec.Entry // by record
	last    map[int32]int32   // last launched number, by group
	status  map[int32]int32   // the same, as the newest dump's status says it
	head    int               // index of the first entry that is not completed; -1 where all are
	file    string            // of the newest dump
	oldest  int64             // record of the newest dump's first entry: what is older and was pending has ended since
	newest  int64
}

// slot is one collective of a group, over all members.
type slot struct {
	sig        int32 // plus one; of the first member that has it
	have, done int32
	differs    bool
	busy       bool // somebody has it and it is not completed
}

// table is what one source has of all ranks: the last that each launched on a communicator, and what is not completed.
// The recorder's dumps are of this form; what other sources say is brought into it, and judged by the same rules.
type table struct {
	set    *flightrec.Set
	job    *job
	waits  waits
	ranks  map[int]*history
	order  []*history
	canon  []int32 // a group's first index with the same name and members
	absent []int   // ranks that groups list and nothing is said of
	slots  map[int32][]slot
	base   map[int32]int32
	// running counts collectives that completed somewhere while a member had not launched them when it was dumped: the
	// dumps were taken while the job ran, and prove nothing about its end.
	running int
	source  string
	// cite is the line that says it, of a source that is read by people; nil where the table's own words are evidence.
	cite func(rank int, e *flightrec.Entry) []finding.Quote
}

// newTable joins what a source says of each rank.
func newTable(source string, set *flightrec.Set, j *job) *table {
	x := &table{
		source: source, set: set, job: j, ranks: map[int]*history{}, slots: map[int32][]slot{}, base: map[int32]int32{},
	}
	x.unify()
	for _, d := range set.Dumps {
		rank := x.rankOf(d)
		if rank < 0 {
			continue
		}
		x.addDump(rank, d)
	}
	for _, h := range x.ranks {
		x.order = append(x.order, h)
	}
	slices.SortFunc(x.order, func(a, b *history) int { return a.rank - b.rank })
	for _, h := range x.order {
		h.finish()
	}
	for _, h := range x.order {
		x.openBarriers(h)
	}
	x.layEntries()
	x.findAbsent()
	x.waits = x.waitsOf()
	return x
}

// unify makes one group of those that only some dumps list the members of.
func (x *table) unify() {
	known := map[string][]int32{}
	x.canon = make([]int32, len(x.set.Groups))
	for i := range x.set.Groups {
		if g := &x.set.Groups[i]; g.Ranks != nil {
			known[g.Name] = append(known[g.Name], int32(i))
		}
	}
	for i := range x.set.Groups {
		x.canon[i] = int32(i)
		if g := &x.set.Groups[i]; g.Ranks == nil && len(known[g.Name]) == 1 {
			x.canon[i] = known[g.Name][0]
		}
	}
}

// rankOf is whose a dump is: what it says, or what its name says, unless the groups that it lists have no such rank.
func (x *table) rankOf(d *flightrec.Dump) int {
	rank := d.Rank
	if r, ok := x.job.files[d.Name]; ok && x.source == fromRecorder {
		rank = r
	}
	for _, g := range d.Member {
		if ranks := x.set.Groups[g].Ranks; len(ranks) > 0 && !slices.Contains(ranks, rank) {
			return -1
		}
	}
	return rank
}

// addDump joins one dump with what is known of its rank.
func (x *table) addDump(rank int, d *flightrec.Dump) {
	h := x.ranks[rank]
	if h == nil {
		h = &history{rank: rank, last: map[int32]int32{}, status: map[int32]int32{}}
		x.ranks[rank] = h
	}
	for g, n := range d.Last {
		g = x.canon[g]
		h.last[g] = max(h.last[g], n)
		h.status[g] = max(h.status[g], n)
	}
	for _, e := range d.Entries {
		e.Group = x.canon[e.Group]
		h.entries = append(h.entries, e)
	}
	if n := len(d.Entries); n > 0 && d.Entries[n-1].Record >= h.newest {
		h.newest, h.oldest, h.file = d.Entries[n-1].Record, d.Entries[0].Record, d.Name
	}
	h.file = cmp.Or(h.file, d.Name)
}

// finish sorts a rank's entries and keeps of each record what came farthest.
func (h *history) finish() {
	sorted := slices.IsSortedFunc(h.entries, func(a, b flightrec.Entry) int { return cmp.Compare(a.Record, b.Record) })
	if !sorted {
		slices.SortStableFunc(h.entries, func(a, b flightrec.Entry) int {
			if a.Record != b.Record {
				return cmp.Compare(a.Record, b.Record)
			}
			return int(b.State) - int(a.State)
		})
	}
	h.entries = slices.DeleteFunc(h.entries,
		func(e flightrec.Entry) bool { return e.Record < h.oldest && e.State != flightrec.Completed })
	h.entries = slices.CompactFunc(h.entries, func(a, b flightrec.Entry) bool { return a.Record == b.Record })
	h.head = -1
	for i := range h.entries {
		e := &h.entries[i]
		if !e.P2P {
			h.last[e.Group] = max(h.last[e.Group], e.Seq)
		}
		if h.head < 0 && e.State != flightrec.Completed && e.State != flightrec.Unknown {
			h.head = i
		}
	}
}

// openBarriers undoes that the recorder has a barrier completed as soon as it is launched (seen with PyTorch 2.11): one
// that the status does not count yet, and that a member has not launched, cannot be over.
func (x *table) openBarriers(h *history) {
	for i := len(h.entries) - 1; i >= 0; i-- {
		e := &h.entries[i]
		status, ok := h.status[e.Group]
		if !ok || e.P2P || e.Seq <= status || e.State != flightrec.Completed ||
			!strings.Contains(x.set.Sigs[e.Sig].Op, "barrier") {
			continue
		}
		for _, m := range x.set.Groups[e.Group].Ranks {
			if o := x.ranks[m]; o != nil && o.last[e.Group] < e.Seq {
				e.State = flightrec.Scheduled
				if h.head < 0 || h.head > i {
					h.head = i
				}
				break
			}
		}
	}
}

// maxSpan bounds the collectives of a group that are compared.
const maxSpan = 1 << 14

// layEntries lays all entries of a group over each other.
func (x *table) layEntries() {
	top, count := map[int32]int32{}, map[int32]int32{}
	for _, h := range x.order {
		for i := range h.entries {
			if e := &h.entries[i]; !e.P2P {
				top[e.Group] = max(top[e.Group], e.Seq)
				count[e.Group] = min(count[e.Group]+1, maxSpan)
			}
		}
	}
	for g, n := range top {
		x.base[g] = max(0, n-min(maxSpan, 4*count[g]+16)) // numbers far from each other are no row of collectives
	}
	for _, h := range x.order {
		for i := range h.entries {
			e := &h.entries[i]
			if e.P2P || e.Seq < x.base[e.Group] {
				continue
			}
			list := x.slots[e.Group]
			at := int(e.Seq - x.base[e.Group])
			for len(list) <= at {
				list = append(list, slot{})
			}
			list[at].takeEntry(x.set, e)
			x.slots[e.Group] = list
		}
	}
}

func (s *slot) takeEntry(set *flightrec.Set, e *flightrec.Entry) {
	switch {
	case s.have == 0:
		s.sig = e.Sig + 1
	case s.sig != e.Sig+1 && set.Sigs[s.sig-1] != set.Sigs[e.Sig]:
		s.differs = true
	}
	s.have++
	if e.State == flightrec.Completed {
		s.done++
	} else {
		s.busy = true
	}
}

// at is a collective of a group; nil where nobody has it.
func (x *table) at(g, seq int32) *slot {
	list := x.slots[g]
	i := int(seq - x.base[g])
	if i < 0 || i >= len(list) {
		return nil
	}
	return &list[i]
}

// findAbsent finds members without a dump, and counts collectives that prove the dumps to be of different moments.
func (x *table) findAbsent() {
	missing := map[int]bool{}
	for g := range x.set.Groups {
		if x.canon[g] != int32(g) {
			continue
		}
		for _, r := range x.set.Groups[g].Ranks {
			if x.ranks[r] == nil {
				missing[r] = true
			}
		}
	}
	for r := range missing {
		x.absent = append(x.absent, r)
	}
	slices.Sort(x.absent)
	for g, list := range x.slots {
		members := x.set.Groups[g].Ranks
		for i := range list {
			s := &list[i]
			if s.done == 0 || int(s.have) >= len(members) || s.sig == 0 || !together(x.set.Sigs[s.sig-1].Op) {
				continue
			}
			seq := x.base[g] + int32(i)
			for _, m := range members {
				if h := x.ranks[m]; h != nil && len(h.entries) > 0 && h.last[g] < seq {
					x.running++
					break
				}
			}
		}
	}
}

// together reports an operation that no rank can complete before all have launched it.
func together(op string) bool {
	return strings.Contains(op, "all_reduce") || strings.Contains(op, "all_gather") || strings.Contains(op, "allgather") ||
		strings.Contains(op, "allreduce") ||
		strings.Contains(op, "barrier") || strings.Contains(op, "all_to_all")
}

// pending is the entry that a rank waits for; nil where it waits for none.
func (h *history) pending() *flightrec.Entry {
	if h.head < 0 {
		return nil
	}
	return &h.entries[h.head]
}

// find is a rank's entry of a collective.
func (h *history) find(g, seq int32) *flightrec.Entry {
	for i := len(h.entries) - 1; i >= 0; i-- {
		if e := &h.entries[i]; e.Group == g && e.Seq == seq && !e.P2P {
			return e
		}
	}
	return nil
}
