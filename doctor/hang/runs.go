package hang

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"busbar.dev/input/joblog"
)

// A folder may keep what the run before left: its collectives have the same names and numbers, and together both prove
// nothing. What a rank's process left is of an earlier run where it ends before another process of that rank begins.

// piece is what a file has of one rank's process, and when; the same of every piece of a file.
type piece struct {
	file, rank  int // rank -1: not known
	name        string
	first, last int64 // 0: it does not say
}

// cut is when the last of the earlier runs ended, 0 where there is none: where again says so of a piece and a later one
// of the same rank.
func cut(pieces []piece, again func(a, b piece) bool) (end int64) {
	by := map[int][]piece{}
	slices.SortStableFunc(pieces, func(a, b piece) int { return cmp.Compare(a.first, b.first) })
	for _, b := range pieces {
		if b.first == 0 || b.rank < 0 {
			continue
		}
		const most = 4 // earlier files of a rank that are compared
		for _, a := range by[b.rank][max(0, len(by[b.rank])-most):] {
			if a.last < b.first && again(a, b) {
				end = max(end, a.last)
			}
		}
		by[b.rank] = append(by[b.rank], b)
	}
	return end
}

// earlier are the files that end by then. One without times goes with its folder.
func (c *Case) earlier(what string, pieces []piece, cut int64) map[int]bool {
	if cut == 0 {
		return nil
	}
	folders := map[string]bool{} // with files of the newest run
	for _, p := range pieces {
		folders[path.Dir(p.name)] = folders[path.Dir(p.name)] || p.last > cut
	}
	left, names := map[int]bool{}, []string{}
	for _, p := range pieces {
		if !left[p.file] && (p.first > 0 && p.last <= cut || p.first == 0 && !folders[path.Dir(p.name)]) {
			left[p.file], names = true, append(names, p.name)
		}
	}
	slices.Sort(names)
	text := strings.Join(names[:min(16, len(names))], ", ")
	if len(names) > 16 {
		text += ", …"
	}
	c.note("The %s are of several runs. Only the newest was judged. Left out: %s.", what, text)
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
	x.logs = without(c.logs, x.earlierLogs())
	rec.Dumps = without(rec.Dumps, x.earlierDumps())
	x.rec = &rec
	return &x
}

// earlierLogs are the logs of earlier runs: a rank's next process has another number.
func (c *Case) earlierLogs() map[int]bool {
	j := newJob(c)
	who := map[piece]string{}
	var pieces []piece
	for n, l := range c.logs {
		of := func(rank int) piece { return piece{n, rank, l.Name, l.First, l.Last} }
		pieces = append(pieces, of(-1))
		own, ok := j.files[l.Name]
		for i := range l.Events {
			e := &l.Events[i]
			p := of(e.CommRank)
			switch {
			case e.Kind == joblog.InitStart && e.NRanks == j.world:
			case e.Kind == joblog.Process && ok:
				p = of(own)
			default:
				continue
			}
			if who[p] == "" {
				pieces = append(pieces, p)
			}
			who[p] = fmt.Sprintf("%s/%d", e.Host, e.PID)
		}
	}
	return c.earlier("logs", pieces, cut(pieces, func(a, b piece) bool { return who[a] != who[b] }))
}

// earlierDumps are those of earlier runs. The recorder keeps a rank's last collectives, so a dump that ends before
// another of the rank begins is of no use, whatever it is of; and a rank that left none this time may have one of the
// last time: however long a hang lasts, ranks stop launching at about the same time.
func (c *Case) earlierDumps() map[int]bool {
	const together = int64(time.Hour)
	x := &table{source: fromRecorder, set: c.rec, job: newJob(c)}
	var pieces []piece
	var newest, begin int64
	for i, d := range c.rec.Dumps {
		p := piece{file: i, rank: x.rankOf(d), name: d.Name}
		for k := range d.Entries {
			if t := d.Entries[k].Created; t > 0 {
				if p.last = max(p.last, t); p.first == 0 {
					p.first = t
				}
			}
		}
		newest = max(newest, p.last)
		pieces = append(pieces, p)
	}
	end := cut(pieces, func(a, b piece) bool { return true })
	for _, p := range pieces {
		if p.last >= newest-together && p.first > 0 && (begin == 0 || p.first < begin) {
			begin = p.first
		}
	}
	for _, p := range pieces {
		if p.last < min(newest-together, begin) {
			end = max(end, p.last)
		}
	}
	return c.earlier("dumps", pieces, end)
}
