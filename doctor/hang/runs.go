package hang

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"busbar.dev/input/flightrec"
	"busbar.dev/input/joblog"
	"busbar.dev/input/ras"
	"busbar.dev/internal/words"
)

// A folder may keep what the run before left: its collectives have the same names and numbers, and together both prove
// nothing. A rank has one process in a run, so two of them are two runs, and the later is judged.

// piece is what a file has of one rank's process, and when; the same of every piece of a file.
type piece struct {
	file, rank  int // rank -1: not known
	name        string
	first, last int64 // 0: it does not say
}

// sources are the files of one kind, and which of two pieces of a rank are of the same process. The first of both
// begins first.
type sources struct {
	what   string
	pieces []piece
	same   func(a, b *piece) bool
	// together is how far apart the ends of a run's files are at most; 0: it does not matter.
	together time.Duration
	// mixed tells that files which overlap in time and are not of the same process are of different jobs.
	mixed bool
}

// cut is when the last of the earlier runs ended.
func (s *sources) cut() (cut int64, err error) {
	type process struct {
		first, last int64
		pieces      []*piece
	}
	by := map[int][]*process{}
	slices.SortStableFunc(s.pieces, func(a, b piece) int { return cmp.Compare(a.first, b.first) })
	for i := range s.pieces {
		p := &s.pieces[i]
		if p.first == 0 || p.rank < 0 {
			continue
		}
		const most = 16 // files of a process that are compared
		at := slices.IndexFunc(by[p.rank], func(o *process) bool {
			return slices.ContainsFunc(o.pieces[max(0, len(o.pieces)-most):], func(q *piece) bool { return s.same(q, p) })
		})
		if at < 0 {
			at = len(by[p.rank])
			by[p.rank] = append(by[p.rank], &process{first: p.first})
		}
		o := by[p.rank][at]
		o.last, o.pieces = max(o.last, p.last), append(o.pieces, p)
	}
	for _, rank := range slices.Sorted(maps.Keys(by)) {
		list := by[rank]
		slices.SortStableFunc(list, func(a, b *process) int { return cmp.Compare(a.last, b.last) })
		for i := 1; i < len(list); i++ {
			switch a, b := list[i-1], list[i]; {
			case a.last < b.first:
				cut = max(cut, a.last)
			case s.mixed:
				return 0, fmt.Errorf("%s and %s are of several jobs at the same time: give the %s of one", a.pieces[0].name,
					b.pieces[0].name, s.what)
			}
		}
	}
	return max(cut, s.stale()), nil
}

// stale is the end of files that end long before the newest, and before it begins: what a rank left the last time that
// left none this time.
func (s *sources) stale() (end int64) {
	var newest, begin int64
	for _, p := range s.pieces {
		newest = max(newest, p.last)
	}
	old := newest - int64(s.together)
	for _, p := range s.pieces {
		if p.last >= old && p.first > 0 && (begin == 0 || p.first < begin) {
			begin = p.first
		}
	}
	for _, p := range s.pieces {
		if s.together > 0 && p.last < min(old, begin) {
			end = max(end, p.last)
		}
	}
	return end
}

// earlier are the files of earlier runs. One without times goes with its folder.
func (c *Case) earlier(s sources) (map[int]bool, error) {
	cut, err := s.cut()
	if err != nil || cut == 0 {
		return nil, err
	}
	folders := map[string]bool{} // with files of the newest run
	for _, p := range s.pieces {
		folders[path.Dir(p.name)] = folders[path.Dir(p.name)] || p.last > cut
	}
	left, names := map[int]bool{}, []string{}
	for _, p := range s.pieces {
		if !left[p.file] && (p.first > 0 && p.last <= cut || p.first == 0 && !folders[path.Dir(p.name)]) {
			left[p.file], names = true, append(names, p.name)
		}
	}
	slices.Sort(names)
	const most = 16
	text := strings.Join(names[:min(most, len(names))], ", ")
	if n := len(names) - most; n > 0 {
		text += " and " + words.Plural(n, "more file")
	}
	c.note("The %s are of several runs. Only the newest was judged. Left out: %s.", s.what, text)
	return left, nil
}

// without are the elements of a list but for some.
func without[E any](list []E, left map[int]bool) (kept []E) {
	for i, x := range list {
		if !left[i] {
			kept = append(kept, x)
		}
	}
	return kept
}

// Mixed is an error where dumps or RAS answers are of several runs and their times do not say which is the newest.
func (c *Case) Mixed() error {
	_, err := c.oneRun()
	return err
}

// oneRun is the case with what the newest run alone left.
func (c *Case) oneRun() (*Case, error) {
	x := *c
	x.notes = slices.Clone(c.notes)
	left, err := x.earlier(x.answers())
	if err != nil {
		return nil, err
	}
	x.ras = without(x.ras, left)
	if left, err = x.earlier(x.logPieces()); err != nil {
		return nil, err
	}
	x.logs = without(x.logs, left)
	if left, err = x.earlier(x.dumps()); err != nil {
		return nil, err
	}
	if len(left) > 0 {
		x.rec = part(c.rec, without(c.rec.Dumps, left))
	}
	return &x, nil
}

// answers are those of RAS, in their order: of a running job they are newer than files, whatever clocks say. A run is
// known by its communicators and processes; a text lists some of them only, so it is kept with any.
func (c *Case) answers() sources {
	when := func(r *ras.Report) string {
		if c.asked[r] {
			return "asked " + r.Time // behind all digits
		}
		return r.Time
	}
	var times []string
	for _, r := range c.ras {
		times = append(times, when(r))
	}
	slices.Sort(times)
	s := sources{what: "RAS answers", mixed: true, same: func(a, b *piece) bool {
		of := map[any]bool{}
		for _, id := range runIDs(c.ras[a.file]) {
			of[id] = true
		}
		return slices.ContainsFunc(runIDs(c.ras[b.file]), func(id any) bool { return of[id] })
	}}
	for i, r := range c.ras {
		if r.JSON && len(r.Comms) > 0 {
			at := int64(1 + slices.Index(times, when(r)))
			s.pieces = append(s.pieces, piece{file: i, name: r.Name, first: at, last: at})
		}
	}
	return s
}

// runIDs are the communicators and processes of an answer: those of a run.
func runIDs(r *ras.Report) (list []any) {
	for i := range r.Comms {
		m := &r.Comms[i]
		list = append(list, m.Hash)
		for _, x := range slices.Concat(m.Ranks, m.Missing) {
			list = append(list, x.Process)
		}
	}
	return list
}

// logPieces are the processes of every rank, in logs that say when. One that PyTorch took down may still write into
// another file for a while.
func (c *Case) logPieces() sources {
	const leaves = int64(2 * time.Minute)
	j := newJob(c)
	who, down := map[piece]string{}, map[piece]bool{}
	s := sources{what: "logs", same: func(a, b *piece) bool {
		return (who[*a] == "" || who[*b] == "" || who[*a] == who[*b]) && !(down[*a] && b.first-a.last > leaves)
	}}
	for n, l := range c.logs {
		ranks := map[int]bool{-1: true}
		of := func(rank int) piece {
			ranks[rank] = true
			return piece{n, rank, l.Name, l.First, l.Last}
		}
		own, ok := j.files[l.Name]
		for i := range l.Events {
			switch e := &l.Events[i]; {
			case e.Kind == joblog.InitStart && e.NRanks == j.world:
				who[of(e.CommRank)] = fmt.Sprintf("%s/%d", e.Host, e.PID)
			case e.Kind == joblog.Process && ok:
				who[of(own)] = fmt.Sprintf("%s/%d", e.Host, e.PID)
			case e.Rank >= 0 && e.Kind != joblog.Exit:
				p := of(e.Rank)
				down[p] = down[p] || e.Kind == joblog.Down
			}
		}
		for _, rank := range slices.Sorted(maps.Keys(ranks)) {
			s.pieces = append(s.pieces, of(rank))
		}
	}
	return s
}

// dumps are those of the recorder. A record of a rank has one time in a run, and the default group one list of ranks.
func (c *Case) dumps() sources {
	j := newJob(c)
	s := sources{what: "dumps", mixed: true, together: time.Hour, same: func(p, q *piece) bool {
		a, b := c.rec.Dumps[p.file], c.rec.Dumps[q.file]
		if x, y := defaultGroup(c.rec, a), defaultGroup(c.rec, b); x >= 0 && y >= 0 && x != y {
			return false
		}
		times := map[int64]int64{}
		for i := range a.Entries {
			times[a.Entries[i].Record] = a.Entries[i].Created
		}
		for i := range b.Entries {
			if e := &b.Entries[i]; times[e.Record] > 0 && e.Created > 0 {
				return times[e.Record] == e.Created
			}
		}
		return a.Entries[0].Record < b.Entries[0].Record // counted on, or again from the beginning
	}}
	x := &table{source: fromRecorder, set: c.rec, job: j}
	for i, d := range c.rec.Dumps {
		p := piece{file: i, rank: x.rankOf(d), name: d.Name}
		for k := range d.Entries {
			if t := d.Entries[k].Created; t > 0 {
				if p.last = max(p.last, t); p.first == 0 {
					p.first = t
				}
			}
		}
		s.pieces = append(s.pieces, p)
	}
	return s
}

// defaultGroup is the group of all ranks; -1 where a dump does not list it.
func defaultGroup(s *flightrec.Set, d *flightrec.Dump) int32 {
	for _, g := range d.Member {
		if x := &s.Groups[g]; x.Desc == "default_pg" && x.Ranks != nil {
			return g
		}
	}
	return -1
}

// part is a set of some of its dumps; groups that only the others list have no members.
func part(s *flightrec.Set, dumps []*flightrec.Dump) *flightrec.Set {
	used := map[int32]bool{}
	for _, d := range dumps {
		for _, g := range d.Member {
			used[g] = true
		}
		for i := range d.Entries {
			used[d.Entries[i].Group] = true
		}
	}
	x := &flightrec.Set{Dumps: dumps, Groups: slices.Clone(s.Groups), Sigs: s.Sigs, Frames: s.Frames}
	for g := range x.Groups {
		if !used[int32(g)] {
			x.Groups[g].Ranks = nil
		}
	}
	return x
}
