package nccllog

import (
	"strings"

	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
)

// thread is who sets up one communicator at a time.
type thread struct {
	host          string
	pid, tid, dev int
}

// commKey is how a process knows a communicator: by its pointer.
type commKey struct {
	host string
	pid  int
	comm string
}

// Reader takes in the logs of one job one after another, for those who do not
// know them all beforehand.
type Reader struct {
	log    Log
	brief  bool // no plans are kept
	source string
	lines  int

	maxRanks, maxConns, maxHosts int

	names map[string]string // one copy of every text that comes often
	hosts map[string]*host
	last  *host // of the record before

	ranks   []*Rank
	threads map[thread]*Rank
	comms   map[commKey]*Rank
	// pointers finds a communicator whose process is not known.
	pointers map[string]*Rank
	ends     map[string][]Pos // of set-ups, by commId, whose beginning other output tore off

	versions, unknown counter
	nics              map[[3]string]int
	conns             map[connKey]bool
}

// host is a host and what tells it from a name run together with other text.
type host struct {
	records int
	name    string
	first   int // line of all sources
	pids    map[int]bool
	atLine  bool // some record of it began its line
}

// NewReader makes a Reader.
func NewReader() *Reader {
	return &Reader{
		maxRanks: maxRanks, maxConns: maxConnections, maxHosts: maxHosts,
		log:      Log{Dropped: map[string]int{}},
		names:    map[string]string{},
		hosts:    map[string]*host{},
		threads:  map[thread]*Rank{},
		comms:    map[commKey]*Rank{},
		pointers: map[string]*Rank{},
		ends:     map[string][]Pos{},
		nics:     map[[3]string]int{},
		conns:    map[connKey]bool{},
	}
}

// NewSetupReader makes a Reader for those who ask which processes set up which
// communicators, and not over which rings, trees and paths: it keeps neither rings and trees
// nor more than the first connections, so that little memory is enough for the longest log.
func NewSetupReader() *Reader {
	r := NewReader()
	r.brief, r.maxRanks, r.maxConns, r.maxHosts = true, someSetups, someConns, someSetups
	return r
}

// counter counts texts up to a bound.
type counter struct {
	at   map[string]int
	list []Count
}

// countText counts a text; it reports whether there was room.
func (k *counter) countText(text string, pos Pos, limit int) bool {
	if i, ok := k.at[text]; ok {
		k.list[i].N++
		return true
	}
	if len(k.list) >= limit {
		return false
	}
	if k.at == nil {
		k.at = map[string]int{}
	}
	text = strings.Clone(text)
	k.at[text] = len(k.list)
	k.list = append(k.list, Count{text, 1, pos})
	return true
}

// intern returns the one copy of a text, so that what is kept does not hold on
// to the lines it came from.
func (c *Reader) intern(s string) string {
	if t, ok := c.names[s]; ok {
		return t
	}
	t := strings.Clone(s)
	if len(c.names) < maxConnections {
		c.names[t] = t
	}
	return t
}

func (c *Reader) drop(what string) { c.log.Dropped[what]++ }

var release = lazyre.New(`CCL version[ :]*(\d[\w.+:-]{0,60}\.[\w.+:-]{0,60}\w)`)

// version counts "NCCL version 2.30.3+cuda13.0" and "RCCL version : 2.22.3-HEAD",
// wherever in a line it stands: an exception names it too.
func (c *Reader) version(num int, text string) {
	if strings.Contains(text, "CCL version") {
		for _, m := range release.FindAllStringSubmatch(text, -1) {
			c.versions.countText(m[1], Pos{c.source, num}, maxVersions)
		}
	}
}

// record takes in one record.
func (c *Reader) record(r *Record) {
	c.log.Records++
	c.nameHost(r)
	if r.Level == "INFO" && !c.message(r) {
		c.log.NotUnderstood++
		if !c.unknown.countText(lines.Shape(r.Text[:min(len(r.Text), 200)]), r.At, maxShapes) {
			c.drop("shapes")
		}
	}
}

// message files what a record says; false when that is not understood.
func (c *Reader) message(r *Record) bool {
	switch m := r.Message.(type) {
	case nil:
		return false
	case note:
		switch m {
		case isAMD:
			c.log.AMD = true
		case settingUp, planning:
			c.plan(r, m)
		}
	case *Connection:
		c.connection(r, m)
	case *Devices:
		c.devices(r, m)
	case *CommLine:
		c.comm(r, m)
	case *InitTimes:
		c.initTimes(r, m)
	case *Ring, Trees:
		c.plan(r, m)
	}
	return true
}

// nameHost files the record's host, and corrects a name that ran together with text
// before it when its process is known under the right name.
func (c *Reader) nameHost(r *Record) {
	if r.Host == "" {
		return
	}
	h := c.last
	if h == nil || h.name != r.Host {
		h = c.hosts[r.Host]
	}
	if h == nil && r.glued {
		h = c.suffix(r.Host, r.PID)
	}
	if h == nil {
		if len(c.hosts) >= c.maxHosts {
			c.drop("hosts")
			r.Host = ""
			return
		}
		h = &host{name: c.intern(r.Host), first: c.lines, pids: map[int]bool{}}
		c.hosts[h.name] = h
	}
	c.last, r.Host = h, h.name
	h.records++
	h.atLine = h.atLine || !r.glued
	if len(h.pids) < 1024 {
		h.pids[r.PID] = true
	}
}

// suffix finds a host whose name ends the given one and that has the process.
func (c *Reader) suffix(name string, pid int) *host {
	for i := 1; i < len(name); i++ {
		if h := c.hosts[name[i:]]; h != nil && h.pids[pid] {
			return h
		}
	}
	return nil
}
