package query

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"busbar.dev/doctor/hang"
	"busbar.dev/input/procs"
	"busbar.dev/input/profile"
)

// local is what the processes of a job on this machine say about where to ask and read.
type local struct {
	ranks []procs.Process
	addrs []string // of RAS services
	pipes []string // prefixes of the recorder's pipes
	rings []string // folders of the profiler's rings
}

// processes finds the ranks of the job of --pid.
func (q *Hang) processes(e *Env) (local, error) {
	var l local
	if q.PID == 0 {
		return l, nil
	}
	if e.Processes == nil {
		return l, errors.New("--pid cannot be asked for here")
	}
	ranks, err := e.Processes(q.PID)
	if err != nil {
		return l, err
	}
	l.ranks = ranks
	for i := range ranks {
		p := &ranks[i]
		l.addrs = append(l.addrs, p.RAS)
		if p.Rings != "" {
			l.rings = append(l.rings, p.Rings)
		}
		if p.Pipe != "" {
			l.pipes = append(l.pipes, strings.TrimSuffix(p.Pipe, strconv.Itoa(p.Rank)+".pipe"))
		}
	}
	l.addrs, l.pipes, l.rings = unique(l.addrs), unique(l.pipes), unique(l.rings)
	return l, nil
}

// written are the logs and dumps of the job's ranks: also of those that are not here any more, or on other nodes that share a
// file system, by the names of the others' files. What is older than the job is another's.
func (l *local) written(e *Env) []string {
	var list []string
	for i := range l.ranks {
		p := &l.ranks[i]
		for _, name := range slices.Concat(p.Logs, []string{p.Dump}) {
			for _, other := range slices.Concat([]string{name}, l.alike(p, name)) {
				if info, err := fs.Stat(e.files(), other); err == nil && info.Mode().IsRegular() && !info.ModTime().Before(p.Started) {
					list = append(list, other)
				}
			}
		}
	}
	return unique(list)
}

// alike are a file's names for the ranks that are not here: the last number in it that is the rank's, exchanged.
func (l *local) alike(p *procs.Process, name string) []string {
	own := strconv.Itoa(p.Rank)
	at := -1
	for i := len(name) - len(own); i >= 0 && at < 0; i-- {
		if strings.HasPrefix(name[i:], own) && (i == 0 || !digit(name[i-1])) && (i+len(own) == len(name) || !digit(name[i+len(own)])) {
			at = i
		}
	}
	const most = 4096
	if at < 0 || p.World > most {
		return nil
	}
	var list []string
	for r := range p.World {
		if !slices.ContainsFunc(l.ranks, func(o procs.Process) bool { return o.Rank == r }) {
			list = append(list, fmt.Sprintf("%s%d%s", name[:at], r, name[at+len(own):]))
		}
	}
	return list
}

// readRings adds the rings of the job: those of its processes, and those that share a communicator with them, whose process may be
// gone. It reports whether every process here that runs has one.
func (l *local) readRings(e *Env, c *hang.Case) bool {
	type found struct {
		name string
		ring *profile.Ring
	}
	var list []found
	ours := map[uint64]bool{}
	have := map[int]bool{}
	own := func(r *profile.Ring) bool {
		return slices.ContainsFunc(l.ranks, func(p procs.Process) bool { return p.PID == r.PID && !r.Created.Before(p.Started.Add(-time.Minute)) })
	}
	for _, folder := range l.rings {
		names, err := profile.Files(e.files(), folder)
		if err != nil {
			continue
		}
		for _, name := range names {
			r, err := profile.ReadFile(e.files(), name)
			if err != nil {
				continue // another user's, or gone meanwhile
			}
			list = append(list, found{name, r})
			if own(r) {
				have[r.PID] = true
				for i := range r.Comms {
					ours[r.Comms[i].Hash] = true
				}
			}
		}
	}
	for _, f := range list {
		if own(f.ring) || slices.ContainsFunc(f.ring.Comms, func(m profile.Comm) bool { return ours[m.Hash] }) {
			c.AddRing(f.name, f.ring)
		}
	}
	return len(l.ranks) > 0 && !slices.ContainsFunc(l.ranks, func(p procs.Process) bool { return p.State != 'Z' && !have[p.PID] })
}

// dumpTime is how long ranks get for writing their dumps. They look at their pipes once a second, and the first dump of a process
// that has not loaded torch._dynamo imports it, for seconds.
const dumpTime = 4100 * time.Millisecond

// awaitDumps waits until the ranks that were told to have written their dumps, all that run, and names those of this machine that have
// not.
func (q *Hang) awaitDumps(ctx context.Context, e *Env, l *local, told int, began time.Time, most time.Duration) ([]int, error) {
	fresh := func(name string) bool {
		info, err := fs.Stat(e.files(), name)
		return err == nil && info.ModTime().After(began.Add(-50*time.Millisecond))
	}
	for told > 0 {
		written := 0
		var slow []int
		for i := range l.ranks {
			switch p := &l.ranks[i]; {
			case p.Pipe == "":
			case fresh(p.Dump), p.State == 'T', p.State == 't', p.State == 'Z':
				written++
			default:
				slow = append(slow, p.Rank)
			}
		}
		if list, err := fs.ReadDir(e.files(), q.Dumps); err == nil && q.Dumps != "" && len(l.ranks) == 0 {
			for _, f := range list {
				if fresh(path.Join(q.Dumps, f.Name())) {
					written++
				}
			}
		}
		if written >= told || time.Since(began) > most {
			return slow, nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}
