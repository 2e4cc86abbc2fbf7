package hang

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"busbar.dev/input/flightrec"
	"busbar.dev/input/joblog"
)

// process is a rank's place.
type process struct {
	host string // as logs name it
	addr string // as RAS names it
	pid  int
	gpu  int // plus one; 0 unknown
}

// job is what all sources together say about ranks and processes.
type job struct {
	world int
	least bool              // no source says how many ranks there are: those that were seen, and perhaps more
	procs map[int]process   // by rank
	byPID map[int]int       // rank by process number, where only one process of the job has it
	files map[string]int    // rank by name of a file, for files whose lines do not say
	hosts map[string]string // host by address, where NCCL's log names both; "" where several hosts use it
}

// newJob joins the sources.
func newJob(c *Case) *job {
	j := &job{
		procs: map[int]process{}, byPID: map[int]int{}, files: map[string]int{}, hosts: map[string]string{},
	}
	said := 0
	c.sightings(func(world, rank int, _ process) {
		if world <= maxWorld {
			j.world = max(j.world, world)
			if rank != seen {
				said = max(said, world)
			}
		}
	})
	j.names(c)
	j.least = j.world > said
	c.sightings(func(world, rank int, p process) {
		if world == j.world { // of the communicator of all ranks
			j.put(rank, p)
		}
	})
	j.fromFiles(c)
	for rank, p := range j.procs {
		if old, ok := j.byPID[p.pid]; ok && old != rank {
			rank = -1
		}
		j.byPID[p.pid] = rank
	}
	return j
}

// maxWorld is the most ranks that a job is taken to have, whatever a file says.
const maxWorld = 1 << 20

// seen is the rank of a sighting by which there are so many ranks at least.
const seen = -2

// sightings are what sources say of ranks and their processes, each with the number of ranks that they are among; of a
// rank -1 only that number is said.
func (c *Case) sightings(do func(world, rank int, p process)) {
	for _, r := range c.ras {
		do(r.Processes, -1, process{})
		for i := range r.Comms {
			m := &r.Comms[i]
			list := slices.Concat(m.Ranks, m.Missing)
			for _, l := range m.Lags {
				list = append(list, l.Ranks...)
			}
			do(m.Size, -1, process{})
			for k := range list {
				if x := &list[k]; x.PID > 0 {
					do(m.Size, x.Rank, process{addr: x.Host, pid: x.PID, gpu: x.GPU + 1})
				}
			}
		}
	}
	for _, l := range c.logs {
		for i := range l.Events {
			switch e := &l.Events[i]; e.Kind {
			case joblog.InitStart, joblog.InitComplete:
				do(e.NRanks, e.CommRank, process{host: e.Host, pid: e.PID})
			case joblog.Joined:
				do(e.NRanks, -1, process{})
			case joblog.Xid, joblog.OOMKill, joblog.Exit:
			default:
				do(max(e.Rank+1, e.NRanks), seen, process{})
			}
		}
	}
	for _, in := range c.inspect {
		for i := range in.records {
			r := &in.records[i]
			do(int(r.Ranks), int(r.Rank), process{host: r.Host, pid: int(r.PID)})
		}
	}
	for i := range c.procs {
		p := &c.procs[i]
		do(p.World, p.Rank, process{pid: p.PID})
	}
	for _, r := range c.rings {
		do(r.World, r.Rank, process{host: r.Host, pid: r.PID})
	}
	for i := range c.rec.Groups {
		for _, r := range c.rec.Groups[i].Ranks {
			do(r+1, -1, process{})
		}
	}
}

// names gives files ranks by their names, where the numbers of files that are named alike are those of ranks.
func (j *job) names(c *Case) {
	var all []string
	several := map[string]bool{} // logs of several ranks: a number in such a file's name is no rank
	for _, l := range c.logs {
		all = append(all, l.Name)
		several[l.Name] = l.Several
	}
	for _, s := range c.stacks {
		all = append(all, s.name)
	}
	for _, d := range c.rec.Dumps {
		all = append(all, d.Name)
	}
	alike := map[string][]string{}
	for _, name := range all {
		key := path.Dir(name) + "/" + strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return -1
			}
			return r
		}, path.Base(name))
		alike[key] = append(alike[key], name)
	}
	known := j.world
	for _, list := range alike {
		numbers := map[int]bool{}
		most := -1
		for _, name := range list {
			n := flightrec.RankOf(name)
			base := path.Base(name)
			if n < 0 || known+len(list) == 1 && !strings.Contains(base, "rank") && strings.ContainsAny(base, "0123456789") {
				continue
			}
			numbers[n] = true
			most = max(most, n)
		}
		if most < 0 || known > 0 && most >= known || known == 0 && most >= 2*len(numbers) {
			continue
		}
		for _, name := range list {
			if n := flightrec.RankOf(name); n >= 0 && !several[name] {
				j.files[name] = n
				if known == 0 {
					j.world = max(j.world, n+1)
				}
			}
		}
	}
}

func (j *job) put(rank int, p process) {
	if rank < 0 || rank >= max(j.world, 1) {
		return
	}
	old := j.procs[rank]
	j.procs[rank] = process{
		cmp.Or(old.host, p.host), cmp.Or(old.addr, p.addr), cmp.Or(old.pid, p.pid), cmp.Or(old.gpu, p.gpu),
	}
}

// fromFiles takes what logs say of addresses, and of the process whose lines alone are in the file of one rank.
func (j *job) fromFiles(c *Case) {
	for _, l := range c.logs {
		var p process
		several := false
		for i := range l.Events {
			switch e := &l.Events[i]; e.Kind {
			case joblog.Process:
				several = several || p.pid != 0 && p.pid != e.PID
				p = process{host: e.Host, pid: e.PID}
			case joblog.Address:
				if old, ok := j.hosts[e.Peer]; ok && old != e.Host || strings.HasPrefix(e.Peer, "127.") {
					j.hosts[e.Peer] = ""
				} else {
					j.hosts[e.Peer] = e.Host
				}
			}
		}
		if rank, ok := j.files[l.Name]; ok && !several {
			j.put(rank, p)
		}
	}
}

// ofPID is the rank of a process, -1 where that is not known.
func (j *job) ofPID(pid int) int {
	if r, ok := j.byPID[pid]; ok && pid > 0 {
		return r
	}
	return -1
}

// HostOf is the name of the host with an address, the address itself where the logs do not tell.
func (c *Case) HostOf(address string) string { return newJob(c).named(address) }

// named is a host by its name, where the logs say which one has an address.
func (j *job) named(host string) string { return cmp.Or(j.hosts[host], host) }

// onHost are the ranks of a host.
func (j *job) onHost(host string) (ranks []int) {
	if host = j.named(host); host == "" {
		return nil
	}
	for _, rank := range slices.Sorted(maps.Keys(j.procs)) {
		if p := j.procs[rank]; p.host == host || p.addr == host || strings.HasPrefix(p.host, host+".") {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// rankOf is the rank that an event of a log is about.
func (j *job) rankOf(l *joblog.Log, e *joblog.Event) int {
	switch {
	case e.Rank >= 0:
		return e.Rank
	case e.Kind == joblog.Xid || e.Kind == joblog.OOMKill:
		return j.ofPID(e.PID)
	}
	if e.PID > 0 {
		if r := j.ofPID(e.PID); r >= 0 {
			return r
		}
	}
	if r, ok := j.files[l.Name]; ok {
		return r
	}
	if e.Kind == joblog.Timeout && e.GroupRank < j.world {
		return e.GroupRank // a line without a launcher's mark: mostly of the group of all ranks
	}
	return -1
}

// culprits are ranks with their places.
func (j *job) culprits(ranks []int) []Culprit {
	ranks = slices.Clone(ranks)
	slices.Sort(ranks)
	list := make([]Culprit, 0, len(ranks))
	for _, r := range slices.Compact(ranks) {
		p := j.procs[r]
		c := Culprit{Rank: r, Host: cmp.Or(p.host, j.named(p.addr)), PID: p.pid}
		if p.gpu > 0 {
			g := p.gpu - 1
			c.GPU = &g
		}
		list = append(list, c)
	}
	return list
}
