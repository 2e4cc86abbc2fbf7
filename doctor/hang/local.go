package hang

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"busbar.dev/input/procs"
	"busbar.dev/input/profile"
)

// Local is what the processes of a job on this machine say about where to ask and read.
type Local struct {
	Ranks []procs.Process
	Addrs []string // of RAS services
	Pipes []string // prefixes of the recorder's pipes
	rings []string // folders of the profiler's rings
}

// NewLocal looks at the ranks of a job on this machine.
func NewLocal(ranks []procs.Process) Local {
	l := Local{Ranks: ranks}
	for i := range ranks {
		p := &ranks[i]
		l.Addrs = append(l.Addrs, p.RAS)
		if p.Rings != "" {
			l.rings = append(l.rings, p.Rings)
		}
		if p.Pipe != "" {
			l.Pipes = append(l.Pipes, strings.TrimSuffix(p.Pipe, strconv.Itoa(p.Rank)+".pipe"))
		}
	}
	l.Addrs, l.Pipes, l.rings = unique(l.Addrs), unique(l.Pipes), unique(l.rings)
	return l
}

// Written are the logs and dumps of the job's ranks: also of those that are not here any more, or on other nodes that
// share a file system, by the names of the others' files. What is older than the job is another's.
func (l *Local) Written(files fs.FS) []string {
	var list []string
	for i := range l.Ranks {
		p := &l.Ranks[i]
		for _, name := range slices.Concat(p.Logs, []string{p.Dump}) {
			for _, other := range slices.Concat([]string{name}, l.alike(p, name)) {
				if info, err := fs.Stat(files, other); err == nil && info.Mode().IsRegular() &&
					!info.ModTime().Before(p.Started) {
					list = append(list, other)
				}
			}
		}
	}
	return unique(list)
}

// alike are a file's names for the ranks that are not here: the last number in it that is the rank's, exchanged.
func (l *Local) alike(p *procs.Process, name string) (list []string) {
	const most = 4096
	m := regexp.MustCompile(fmt.Sprintf(`^(|.*\D)%d(|\D.*)$`, p.Rank)).FindStringSubmatch(name)
	if m == nil || p.World > most {
		return nil
	}
	for r := range p.World {
		if !slices.ContainsFunc(l.Ranks, func(o procs.Process) bool { return o.Rank == r }) {
			list = append(list, fmt.Sprint(m[1], r, m[2]))
		}
	}
	return list
}

// ReadRings adds the rings of the job: those of its processes, and those that share a communicator with them, whose
// process may be gone. It reports whether every process here that runs has one.
func (l *Local) ReadRings(files fs.FS, c *Case) bool {
	var list []ringFile
	ours := map[uint64]bool{}
	have := map[int]bool{}
	own := func(r *profile.Ring) bool {
		return slices.ContainsFunc(l.Ranks,
			func(p procs.Process) bool { return p.PID == r.PID && !r.Created.Before(p.Started.Add(-time.Minute)) })
	}
	for _, folder := range l.rings {
		names, err := profile.Files(files, folder)
		if err != nil {
			continue
		}
		for _, name := range names {
			r, err := profile.ReadFile(files, name)
			if err != nil {
				continue // another user's, or gone meanwhile
			}
			list = append(list, ringFile{r, name})
			if own(r) {
				have[r.PID] = true
				for i := range r.Comms {
					ours[r.Comms[i].Hash] = true
				}
			}
		}
	}
	for _, f := range list {
		if own(f.Ring) || slices.ContainsFunc(f.Comms, func(m profile.Comm) bool { return ours[m.Hash] }) {
			c.AddRing(f.name, f.Ring)
		}
	}
	return len(l.Ranks) > 0 &&
		!slices.ContainsFunc(l.Ranks, func(p procs.Process) bool { return p.State != 'Z' && !have[p.PID] })
}

func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}
