package hang

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"busbar.dev/input/flightrec"
)

// A folder may keep the dumps of the run before: the collectives of both have the same names and numbers, and together
// they prove nothing. Within one run a record of a rank has one time, and the default group one list of ranks.

// Mixed is an error where dumps or RAS answers are of several runs and their times do not say which is the newest.
func (c *Case) Mixed() error {
	_, err := c.oneRun()
	return err
}

// oneRun is the case with what the newest run alone left.
func (c *Case) oneRun() (*Case, error) {
	x := *c
	if err := x.oneAnswers(); err != nil {
		return nil, err
	}
	x.oneLogs()
	return x.oneDumps()
}

// oneDumps is the case with the dumps of the newest run alone, itself where there are no others.
func (c *Case) oneDumps() (*Case, error) {
	r := newRuns(c)
	certain := r.mixed()
	if !certain && !r.stale() {
		return c, nil
	}
	kept, left := r.newest()
	if len(left) == 0 {
		return c, nil
	}
	earliest, latest := int64(math.MaxInt64), int64(0)
	for _, d := range kept {
		first, last := span(d)
		latest = max(latest, last)
		if first > 0 {
			earliest = min(earliest, first)
		}
	}
	var names []string
	overlap := false
	for _, d := range left {
		_, last := span(d)
		overlap = overlap || last >= earliest
		names = append(names, d.Name)
	}
	text := someNames(names)
	if overlap && !certain {
		return c, nil // clocks that differ
	}
	if overlap {
		return nil, errors.New("the recorder's dumps are of several runs or jobs, and their times do not say which is the " +
			"newest: give the dumps of one; those of another than " + kept[0].Name + ": " + text)
	}
	x := *c
	x.rec = part(c.rec, kept)
	x.notes = append(slices.Clone(c.notes), fmt.Sprintf("The recorder's dumps are of several runs. Only the newest was "+
		"judged, whose last collective was launched at %s. Left out: %s.", time.Unix(0, latest).UTC().Format(time.DateTime),
		text))
	x.mixed = true
	return &x, nil
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

// runs tells the dumps of runs apart.
type runs struct {
	set  *flightrec.Set
	rank map[*flightrec.Dump]int
	near int64 // farther apart no two ranks launch all that they share
}

func newRuns(c *Case) *runs {
	r := &runs{set: c.rec, rank: map[*flightrec.Dump]int{}, near: int64(time.Minute)}
	if len(c.rec.Dumps) < 2 {
		return r
	}
	x := &recorder{set: c.rec, job: newJob(c)}
	for _, d := range c.rec.Dumps {
		r.rank[d] = x.rankOf(d)
	}
	return r
}

// mixed reports dumps that cannot be of one run, and learns how far apart runs are.
func (r *runs) mixed() bool {
	yes := false
	by := map[int][]*flightrec.Dump{}
	world := int32(-1)
	for _, d := range r.set.Dumps {
		if g := r.defaultGroup(d); g >= 0 {
			yes = yes || world >= 0 && g != world
			world = g
		}
		rank := r.rank[d]
		if rank < 0 {
			continue
		}
		for _, o := range by[rank][:min(len(by[rank]), 16)] {
			if far, differ := r.differ(o, d); differ {
				yes = true
				r.near = min(r.near, max(far/2, int64(time.Second)))
			}
		}
		by[rank] = append(by[rank], d)
	}
	return yes
}

// stale reports a dump that ends long before the newest: a rank that left none this time may have one of the run
// before. However long a hang lasts, ranks stop launching at about the same time.
func (r *runs) stale() bool {
	const long = int64(time.Hour)
	oldest, newest := int64(math.MaxInt64), int64(0)
	for _, d := range r.set.Dumps {
		if n := len(d.Entries); n > 0 && d.Entries[n-1].Created > 0 {
			oldest, newest = min(oldest, d.Entries[n-1].Created), max(newest, d.Entries[n-1].Created)
		}
	}
	r.near = long
	return newest > 0 && newest-oldest > long
}

// defaultGroup is the group of all ranks; -1 where a dump does not list it.
func (r *runs) defaultGroup(d *flightrec.Dump) int32 {
	for _, g := range d.Member {
		if x := &r.set.Groups[g]; x.Desc == "default_pg" && x.Ranks != nil {
			return g
		}
	}
	return -1
}

// differ reports two dumps of a rank that are of different runs, and how far apart these are in time.
func (r *runs) differ(a, b *flightrec.Dump) (far int64, yes bool) {
	if x, y := r.defaultGroup(a), r.defaultGroup(b); x >= 0 && y >= 0 && x != y {
		return math.MaxInt64, true
	}
	if len(a.Entries) == 0 || len(b.Entries) == 0 {
		return 0, false
	}
	times := make(map[int64]int64, len(a.Entries))
	for i := range a.Entries {
		times[a.Entries[i].Record] = a.Entries[i].Created
	}
	shared := false
	for i := range b.Entries {
		e := &b.Entries[i]
		if t := times[e.Record]; t > 0 && e.Created > 0 {
			if shared = true; t != e.Created {
				return max(t-e.Created, e.Created-t), true
			}
		}
	}
	if shared {
		return 0, false
	}
	if a.Entries[0].Record > b.Entries[0].Record {
		a, b = b, a
	}
	_, last := span(a)
	first, _ := span(b)
	return last - first, first > 0 && last > first // counted on, and yet earlier
}

// span is when a dump's first and last entry were launched; 0 where it does not say.
func span(d *flightrec.Dump) (first, last int64) {
	for i := range d.Entries {
		if t := d.Entries[i].Created; t > 0 {
			if last = max(last, t); first == 0 || t < first {
				first = t
			}
		}
	}
	return first, last
}

// newest are the dumps of the run that launched last, and the others, both as they were given.
func (r *runs) newest() (kept, left []*flightrec.Dump) {
	all := slices.Clone(r.set.Dumps)
	slices.SortStableFunc(all, func(a, b *flightrec.Dump) int {
		_, x := span(a)
		_, y := span(b)
		return cmp.Compare(y, x)
	})
	ops := map[opRef]int64{}
	in, by := map[*flightrec.Dump]bool{}, map[int][]*flightrec.Dump{}
	folders := map[string]bool{}
	earliest := int64(math.MaxInt64)
	join := func(d *flightrec.Dump) {
		in[d] = true
		by[r.rank[d]] = append(by[r.rank[d]], d)
		folders[path.Dir(d.Name)] = true
		if first, _ := span(d); first > 0 {
			earliest = min(earliest, first)
		}
		for i := range d.Entries {
			if e := &d.Entries[i]; !e.P2P && e.Created > 0 && ops[opRef{e.Group, e.Seq}] == 0 {
				ops[opRef{e.Group, e.Seq}] = e.Created
			}
		}
	}
	fits := func(d *flightrec.Dump, strangers bool) bool {
		if x, y := r.defaultGroup(all[0]), r.defaultGroup(d); x >= 0 && y >= 0 && x != y {
			return false
		}
		for _, o := range by[r.rank[d]] {
			if _, differ := r.differ(o, d); differ && r.rank[d] >= 0 {
				return false
			}
		}
		shared := false
		for i := range d.Entries {
			e := &d.Entries[i]
			if t := ops[opRef{e.Group, e.Seq}]; t > 0 && !e.P2P && e.Created > 0 {
				if shared = true; max(t-e.Created, e.Created-t) <= r.near {
					return true
				}
			}
		}
		_, last := span(d)
		// what shares no collective with the run but folder and time
		return strangers && !shared && folders[path.Dir(d.Name)] && (last == 0 || last >= earliest)
	}
	join(all[0])
	for _, strangers := range []bool{false, true} {
		for before := 0; before < len(in); {
			before = len(in)
			for _, d := range all {
				if !in[d] && fits(d, strangers) {
					join(d)
				}
			}
		}
	}
	for _, d := range r.set.Dumps {
		if in[d] {
			kept = append(kept, d)
		} else {
			left = append(left, d)
		}
	}
	return kept, left
}

// tornFile is a dump that could not be read whole.
type tornFile struct {
	name string
	rank int
}

// tear takes a dump that is cut off: its rank left one, so it was not killed before it could.
func (c *Case) tear(name string, size int) {
	c.torn = append(c.torn, tornFile{name, flightrec.RankOf(name)})
	c.note("%s: this recorder dump is torn: it ends after %d bytes. Copy it again, or have it written again; was the "+
		"disk full, or the job still writing it?", name, size)
}

// Torn is an error that names dumps that are cut off, where there are such.
func (c *Case) Torn() error {
	if len(c.torn) == 0 {
		return nil
	}
	return errors.New(strings.Join(c.notes, "\n"))
}

// unread is the verdict on ranks that wait for some whose dumps are torn or were not given.
func (x *judge) unread() (*Verdict, bool) {
	w := x.rec.waits
	if len(w.absent) == 0 || x.rec.running > 0 {
		return nil, false
	}
	torn := map[int]string{}
	for _, f := range x.c.torn {
		torn[f.rank] = f.name
	}
	c := claim{waiting: w.waiting}
	if op, ok := x.rec.firstNeeded(w.absent[0]); ok {
		x.rec.describe(&c, op)
	}
	text := ""
	maps.DeleteFunc(torn, func(r int, _ string) bool { return !slices.Contains(w.absent, r) })
	if ranks := slices.Sorted(maps.Keys(torn)); len(ranks) > 0 {
		text = fmt.Sprintf("the dump of %s is torn (%s)", rankList(ranks), torn[ranks[0]])
	}
	if none := slices.DeleteFunc(slices.Clone(w.absent), func(r int) bool { return torn[r] != "" }); len(none) > 0 {
		if text != "" {
			text += ", and "
		}
		text += fmt.Sprintf("there is no dump of %s", rankList(none))
	}
	v := x.verdict(c, Unknown)
	v.Kind, v.Confidence = UnknownKind, 0
	verb := "waits"
	if len(w.waiting) > 1 {
		verb = "wait"
	}
	v.Text = fmt.Sprintf("%s %s in or behind %s. Who holds it up is not known: %s. Give the dumps of all ranks",
		rankList(w.waiting), verb, c.what(), text)
	return v, true
}
