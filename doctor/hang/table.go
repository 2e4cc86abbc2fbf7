package hang

import (
	"maps"
	"slices"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/input/flightrec"
)

// history is what a source says about one rank.
type history struct {
	rank    int
	entries []flightrec.Entry // by record
	last    map[int32]int32   // last launched number, by group
	status  map[int32]int32   // the same, as the dump's status says it
	head    int               // index of the first entry that is not completed; -1 where all are
	file    string
}

// slot is one collective of a group, over all members.
type slot struct {
	sig        *flightrec.Sig // of the first member that has it
	have, done int
	differs    bool
}

// table is what one source has of all ranks: the last that each launched on a communicator, and what is not completed.
// The recorder's dumps are of this form; what other sources say is brought into it, and judged by the same rules.
type table struct {
	set    *flightrec.Set
	job    *job
	waits  waits
	ranks  map[int]*history
	order  []*history
	absent []int // ranks that groups list and nothing is said of
	slots  map[opRef]*slot
	// running tells of a collective that completed somewhere while a member had not launched it when it was dumped: the
	// dumps were taken while the job ran, and prove nothing about its end.
	running bool
	source  string
	// cite is the line that says it, of a source that is read by people; nil where the table's own words are evidence.
	cite func(rank int, e *flightrec.Entry) []finding.Quote
}

// newTable joins what a source says of each rank: in the dump that goes on the longest, for the recorder keeps the last
// collectives.
func newTable(source string, set *flightrec.Set, j *job) *table {
	x := &table{source: source, set: set, job: j, ranks: map[int]*history{}, slots: map[opRef]*slot{}}
	newest := map[int]*flightrec.Dump{}
	reach := func(d *flightrec.Dump) (record int64, entries int) {
		if entries = len(d.Entries); entries > 0 {
			record = d.Entries[entries-1].Record
		}
		return record, entries
	}
	for _, d := range set.Dumps {
		rank := x.rankOf(d)
		old := newest[rank]
		if old != nil {
			r, n := reach(d)
			was, had := reach(old)
			if r < was || r == was && n <= had {
				continue
			}
		}
		if rank >= 0 {
			newest[rank] = d
		}
	}
	for _, rank := range slices.Sorted(maps.Keys(newest)) {
		x.addDump(rank, newest[rank])
	}
	for _, h := range x.order {
		x.openBarriers(h)
	}
	for _, h := range x.order {
		for i := range h.entries {
			if e := &h.entries[i]; !e.P2P {
				x.takeEntry(e)
			}
		}
	}
	x.findAbsent(newest)
	x.waits = x.waitsOf()
	return x
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

// addDump takes what a dump says of a rank.
func (x *table) addDump(rank int, d *flightrec.Dump) {
	h := &history{
		rank: rank, entries: slices.Clone(d.Entries), last: map[int32]int32{}, status: d.Last, head: -1, file: d.Name,
	}
	maps.Copy(h.last, d.Last)
	for i := range h.entries {
		e := &h.entries[i]
		if !e.P2P {
			h.last[e.Group] = max(h.last[e.Group], e.Seq)
		}
		if h.head < 0 && e.State != flightrec.Completed && e.State != flightrec.Unknown {
			h.head = i
		}
	}
	x.ranks[rank], x.order = h, append(x.order, h)
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

// takeEntry lays a rank's entry of a collective over those of the others.
func (x *table) takeEntry(e *flightrec.Entry) {
	op := opRef{e.Group, e.Seq, -1}
	s := x.slots[op]
	if s == nil {
		s = &slot{sig: &x.set.Sigs[e.Sig]}
		x.slots[op] = s
	}
	s.differs = s.differs || *s.sig != x.set.Sigs[e.Sig]
	s.have++
	if e.State == flightrec.Completed {
		s.done++
	}
}

// findAbsent finds members without a dump, and counts collectives that prove the dumps to be of different moments.
func (x *table) findAbsent(dumps map[int]*flightrec.Dump) {
	missing := map[int]bool{}
	seen := map[int32]bool{}
	for _, d := range dumps {
		for _, g := range d.Member {
			for _, r := range x.set.Groups[g].Ranks {
				if seen[g] {
					break
				}
				if x.ranks[r] == nil {
					missing[r] = true
				}
			}
			seen[g] = true
		}
	}
	x.absent = slices.Sorted(maps.Keys(missing))
	for op, s := range x.slots {
		members := x.set.Groups[op.group].Ranks
		if s.done > 0 && s.have < len(members) && together(s.sig.Op) && slices.ContainsFunc(members, func(m int) bool {
			h := x.ranks[m]
			return h != nil && len(h.entries) > 0 && h.last[op.group] < op.seq
		}) {
			x.running = true
		}
	}
}

// together reports an operation that no rank can complete before all have launched it.
func together(op string) bool {
	return slices.ContainsFunc([]string{"all_reduce", "allreduce", "all_gather", "allgather", "all_to_all", "barrier"},
		func(word string) bool { return strings.Contains(op, word) })
}

// pending is the entry that a rank waits for; nil where it waits for none.
func (h *history) pending() *flightrec.Entry {
	if h.head < 0 {
		return nil
	}
	return &h.entries[h.head]
}

// find is a rank's entry of a collective; nil where it has none.
func (h *history) find(g, seq int32) *flightrec.Entry {
	if h == nil {
		return nil
	}
	for i := len(h.entries) - 1; i >= 0; i-- {
		if e := &h.entries[i]; e.Group == g && e.Seq == seq && !e.P2P {
			return e
		}
	}
	return nil
}
