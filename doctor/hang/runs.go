package hang

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"busbar.dev/input/flightrec"
	"busbar.dev/input/joblog"
	"busbar.dev/input/ras"
)

// A folder may keep what the run before left, or another job: their collectives have the same names and numbers, and
// together they prove nothing. What a rank's process left is of an earlier run where it ends before another process of
// that rank begins; processes of one rank that ran at the same time are of several jobs.

// piece is what a file has of one rank's process, and when; the same of every piece of a file.
type piece struct {
	file, rank  int // rank -1: not known
	name        string
	first, last int64 // 0: it does not say
	guessed     bool  // the rank, from the file's name
}

// earlier are the files of earlier runs: those that end by then, or before a later process of their rank begins. again
// says of a piece and one of the same rank that begins later that they are of two processes. A file without times goes
// with its folder.
func (c *Case) earlier(what string, pieces []piece, then int64, again func(a, b piece) bool) map[int]bool {
	by := map[int][]piece{}
	slices.SortStableFunc(pieces, func(a, b piece) int { return cmp.Compare(a.first, b.first) })
	for _, b := range pieces {
		if b.first == 0 || b.rank < 0 {
			continue
		}
		const most = 4 // earlier files of a rank that are compared
		for _, a := range by[b.rank][max(0, len(by[b.rank])-most):] {
			switch {
			case a.file == b.file || !again(a, b):
			case a.last < b.first:
				then = max(then, a.last)
			case !a.guessed && !b.guessed:
				c.mixed = fmt.Sprintf("The %s are of several jobs of the same time: %s is of another than %s. Give those of one "+
					"job.",
					what, b.name, a.name)
			}
		}
		by[b.rank] = append(by[b.rank], b)
	}
	if then == 0 || c.mixed != "" {
		return nil
	}
	folders := map[string]bool{} // with files of the newest run
	for _, p := range pieces {
		folders[path.Dir(p.name)] = folders[path.Dir(p.name)] || p.last > then
	}
	left, names := map[int]bool{}, []string{}
	for _, p := range pieces {
		if !left[p.file] && (p.first > 0 && p.last <= then || p.first == 0 && !folders[path.Dir(p.name)]) {
			left[p.file], names = true, append(names, p.name)
		}
	}
	slices.Sort(names)
	if len(names) > 16 {
		names = append(names[:16], "…")
	}
	c.note("The %s are of several runs. Only the newest was judged. Left out: %s.", what, strings.Join(names, ", "))
	return left
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

// oneRun is the case with what the newest run alone left.
func (c *Case) oneRun() *Case {
	x, rec := *c, *c.rec
	x.notes = slices.Clone(c.notes)
	x.ras = c.reports()
	x.ras = without(x.ras, x.earlierAnswers())
	x.rings = without(c.rings, x.earlierRings())
	x.logs = without(c.logs, x.earlierLogs())
	rec.Dumps = without(rec.Dumps, x.earlierDumps())
	x.rec = &rec
	return &x
}

// earlierAnswers are those of RAS about other runs: without their first communicator. A text lists only some.
func (c *Case) earlierAnswers() map[int]bool {
	var pieces []piece
	for i, r := range c.ras {
		if at, err := time.Parse(time.DateTime, r.Time); err == nil && r.JSON && len(r.Comms) > 0 {
			pieces = append(pieces, piece{file: i, name: r.Name, first: at.UnixNano(), last: at.UnixNano()})
		}
	}
	again := func(a, b piece) bool {
		first := c.ras[a.file].Comms[0].Hash
		return !slices.ContainsFunc(c.ras[b.file].Comms, func(m ras.Comm) bool { return m.Hash == first })
	}
	for i := range pieces { // a job is there from its first answer to its last
		for _, p := range pieces {
			if x := &pieces[i]; !again(p, *x) {
				x.first, x.last = min(x.first, p.first), max(x.last, p.last)
			}
		}
	}
	return c.earlier("RAS answers", pieces, 0, again)
}

// earlierRings are those of earlier runs: a process has one, whose newest reading counts.
func (c *Case) earlierRings() map[int]bool {
	var pieces []piece
	for i, r := range c.rings {
		p := piece{file: i, rank: r.Rank, name: r.name, first: r.Created.UnixNano(), last: r.Created.UnixNano()}
		if n := len(r.Ops); n > 0 {
			p.last = r.Ops[n-1].Launched.UnixNano()
		}
		pieces = append(pieces, p)
	}
	return c.earlier("rings", pieces, 0, func(a, b piece) bool { return true })
}

// earlierLogs are the logs of earlier runs: a rank's next process has another number.
func (c *Case) earlierLogs() map[int]bool {
	j := newJob(c)
	who := map[piece]string{}
	var pieces []piece
	for n, l := range c.logs {
		p := piece{file: n, rank: -1, name: l.Name, first: l.First, last: l.Last}
		pieces = append(pieces, p)
		own, ok := j.files[l.Name]
		for i := range l.Events {
			e := &l.Events[i]
			switch {
			case e.Kind == joblog.InitStart && e.NRanks == j.world:
				p.rank, p.guessed = e.CommRank, false
			case e.Kind == joblog.Process && ok:
				p.rank, p.guessed = own, true
			default:
				continue
			}
			if who[p] == "" {
				pieces = append(pieces, p)
			}
			who[p] = fmt.Sprintf("%s/%d", e.Host, e.PID)
		}
	}
	return c.earlier("logs", pieces, 0, func(a, b piece) bool { return who[a] != who[b] })
}

// earlierDumps are those of earlier runs. The recorder keeps a rank's last collectives, so a dump that ends before
// another of the rank begins is of no use, whatever it is of; and a rank that left none this time may have one of the
// last time: however long a hang lasts, ranks stop launching at about the same time.
func (c *Case) earlierDumps() map[int]bool {
	const together = int64(time.Hour)
	x := &table{source: fromRecorder, set: c.rec, job: newJob(c)}
	var pieces []piece
	for i, d := range c.rec.Dumps {
		p := piece{file: i, rank: x.rankOf(d), name: d.Name}
		for k := range d.Entries {
			if t := d.Entries[k].Created; t > 0 {
				if p.last = max(p.last, t); p.first == 0 {
					p.first = t
				}
			}
		}
		pieces = append(pieces, p)
	}
	slices.SortStableFunc(pieces, func(a, b piece) int { return cmp.Compare(b.last, a.last) })
	begin, end := int64(math.MaxInt64), int64(0)
	for _, p := range pieces {
		if p.last < min(begin, pieces[0].last-together) {
			end = p.last
			break
		}
		begin = min(begin, p.first)
	}
	return c.earlier("dumps", pieces, end, func(a, b piece) bool {
		return !slices.ContainsFunc(c.rec.Dumps[a.file].Entries,
			func(e flightrec.Entry) bool { return e.Created == b.first })
	})
}
