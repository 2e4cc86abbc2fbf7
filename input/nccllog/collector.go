package nccllog

import (
	"strconv"
	"strings"

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

// collector takes in records.
type collector struct {
	log    *Log
	brief  bool // no plans are kept
	source string

	maxRanks, maxConns, maxHosts int

	names map[string]string // one copy of every text that comes often
	hosts map[string]*hostState
	last  *hostState // of the record before

	ranks   []*Rank
	threads map[thread]*Rank
	comms   map[commKey]*Rank
	// pointers finds a communicator whose process is not known.
	pointers map[string]*Rank
	open     *Record // warning that its line did not finish
	torn     []Record
	mends    int

	graphs, systems int // ranks that have some

	versions, networks, via, notes, returns, shapes, unknown counter
	nics                                                     map[[3]string]int
	env                                                      map[Setting]int
	conns                                                    map[connKey]int
	choices                                                  map[choiceKey]int
}

// hostState is a host and what tells it from a name run together with other text.
type hostState struct {
	Host
	pids   map[int]bool
	atLine bool // some record of it began its line
}

func newCollector() *collector {
	return &collector{
		maxRanks: maxRanks, maxConns: maxConnections, maxHosts: maxHosts,
		log:      &Log{NRanks: map[int]int{}, NNodes: map[int]int{}, Dropped: map[string]int{}},
		names:    map[string]string{},
		hosts:    map[string]*hostState{},
		threads:  map[thread]*Rank{},
		comms:    map[commKey]*Rank{},
		pointers: map[string]*Rank{},
		nics:     map[[3]string]int{},
		env:      map[Setting]int{},
		conns:    map[connKey]int{},
		choices:  map[choiceKey]int{},
	}
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

// remove takes back one count of a text.
func (k *counter) remove(text string) {
	if i, ok := k.at[text]; ok && k.list[i].N > 0 {
		k.list[i].N--
	}
}

// intern returns the one copy of a text, so that what is kept does not hold on
// to the lines it came from.
func (c *collector) intern(s string) string {
	if t, ok := c.names[s]; ok {
		return t
	}
	t := strings.Clone(s)
	if len(c.names) < maxConnections {
		c.names[t] = t
	}
	return t
}

func (c *collector) drop(what string) { c.log.Dropped[what]++ }

// version counts "NCCL version 2.30.3+cuda13.0" and "RCCL version : 2.22.3-HEAD",
// wherever in a line it stands: an exception names it too.
func (c *collector) version(num int, text string) {
	const key = "CCL version"
	for rest := text; ; {
		i := strings.Index(rest, key)
		if i < 0 {
			return
		}
		rest = rest[i+len(key):]
		v := strings.TrimLeft(rest, " :")
		if end := strings.IndexFunc(v,
			func(r rune) bool { return !strings.ContainsRune("+-.:_", r) && !isAlnum(r) }); end >= 0 {
			v = v[:end]
		}
		if v = strings.TrimRight(v, ".:-"); v != "" && v[0] >= '0' && v[0] <= '9' && strings.Contains(v, ".") && len(v) < 80 {
			c.versions.countText(v, Pos{c.source, num}, 100)
		}
	}
}

func isAlnum(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// record takes in one record.
func (c *collector) record(r *Record) {
	c.log.Records++
	c.open = nil
	c.host(r)
	c.sizes(r)
	understood := true
	switch r.Level {
	case "WARN":
		c.warn(r)
	case "INFO":
		understood = c.message(r)
	}
	if understood {
		c.log.Understood++
		return
	}
	c.log.NotUnderstood++
	if !c.unknown.countText(shapeOf(r.Text), r.At, maxShapes) {
		c.drop("shapes")
	}
}

// message files what a record says; false when that is not understood.
func (c *collector) message(r *Record) bool {
	switch m := r.Message.(type) {
	case nil:
		c.tear(r)
		return false
	case known, *Call:
	case note:
		c.note(r)
	case *Connection:
		c.connection(r, m)
	case *Choice:
		if !c.brief {
			c.choice(m)
		}
	case *Setting:
		c.setting(r, m)
	case network:
		c.network(r, m)
	case bootstrap:
		c.bootstrap(r, m)
	case *deviceList:
		c.devices(r, m)
	case *gdrState:
		c.gdr(r, m)
	case *deviceDetail:
		c.detail(r, m)
	case *nicPath:
		c.nicPath(r, m)
	case *returned:
		c.returned(r, m)
	case *commLine:
		c.comm(r, m)
	case *initTimes:
		c.initTimes(r, m)
	default:
		return c.setup(r, m)
	}
	return true
}

// setup files what the messages of a set-up say about graphs and tuning.
func (c *collector) setup(r *Record, message any) bool {
	switch m := message.(type) {
	case *Ring:
		c.ring(r, m)
	case Trees:
		c.trees(r, m)
	case *Graph:
		c.graph(r, m)
	case graphChannel:
		c.graphChannel(r, m)
	case *System:
		c.system(r, m)
	case systemLine:
		return c.systemLine(r)
	case systemEnd:
		if k := c.threads[threadOf(r)]; k != nil {
			k.tree = false
		}
	case *pathRow:
		c.paths(r, m)
		return !m.torn
	case *tuningRow:
		return c.tuningRow(r, m)
	default:
		if k := c.current(r); k != nil {
			c.fillRank(k, r, m)
		}
	}
	return true
}

// fillRank adds to a set-up what needs nothing but the set-up.
func (c *collector) fillRank(k *Rank, r *Record, message any) {
	switch m := message.(type) {
	case *RingLink:
		if !c.brief && len(k.Links) < maxChannels {
			k.Links = append(k.Links, *m)
		}
	case *Channels:
		k.Channels = *m
	case tuningColumns:
		if k.Tuning == nil {
			k.Tuning = &Tuning{At: r.At}
		}
		k.cols = m
	}
}

// host files the record's host, and corrects a name that ran together with text
// before it when its process is known under the right name.
func (c *collector) host(r *Record) {
	if r.Host == "" {
		return
	}
	h := c.last
	if h == nil || h.Name != r.Host {
		h = c.hosts[r.Host]
	}
	if h == nil && r.glued {
		if k := c.suffix(r.Host, r.PID); k != nil {
			h = k
		}
	}
	if h == nil {
		if len(c.hosts) >= c.maxHosts {
			c.drop("hosts")
			r.Host = ""
			return
		}
		h = &hostState{Host: Host{Name: c.intern(r.Host), First: r.At}, pids: map[int]bool{}}
		c.hosts[h.Name] = h
	}
	c.last, r.Host = h, h.Name
	h.Records++
	h.atLine = h.atLine || !r.glued
	if len(h.pids) < 1024 && !h.pids[r.PID] {
		h.pids[r.PID] = true
	}
}

// suffix finds a host whose name ends the given one and that has the process.
func (c *collector) suffix(name string, pid int) *hostState {
	for i := 1; i < len(name); i++ {
		if h := c.hosts[name[i:]]; h != nil && h.pids[pid] {
			return h
		}
	}
	return nil
}

// sizes counts the records that name a number of ranks or nodes.
func (c *collector) sizes(r *Record) {
	if m, ok := r.Message.(*Call); ok { // its size is read already
		if m.NRanks > 0 {
			count(c.log.NRanks, m.NRanks)
		}
		return
	}
	if n, ok := sizeOf(r.Text); ok {
		count(c.log.NRanks, n)
	}
	if i := strings.Index(r.Text, "nNodes "); i >= 0 {
		if n, ok := numberAfter(r.Text[i+len("nNodes"):]); ok {
			count(c.log.NNodes, n)
		}
	}
}

// sizeOf finds "nranks 8", "nRanks 8" or "nranks=8".
func sizeOf(text string) (int, bool) {
	i := strings.Index(text, "anks")
	if i < 2 || text[i-1] != 'r' && text[i-1] != 'R' || text[i-2] != 'n' {
		return 0, false
	}
	return numberAfter(text[i+len("anks"):])
}

// numberAfter reads " 8" or "=8".
func numberAfter(s string) (int, bool) {
	if s == "" || s[0] != ' ' && s[0] != '=' {
		return 0, false
	}
	s = s[1:]
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	v, err := strconv.ParseInt(s[:n], 10, 32)
	return int(v), err == nil
}

// count adds one, within a bound on the number of keys.
func count(m map[int]int, n int) {
	if _, ok := m[n]; ok || len(m) < 10000 {
		m[n]++
	}
}

// warn keeps a warning.
func (c *collector) warn(r *Record) {
	c.log.WarnCount++
	if !c.shapes.countText(shapeOf(r.Text), r.At, maxShapes) {
		c.drop("warning shapes")
	}
	if len(c.log.Warns) >= maxWarns {
		c.drop("warnings")
		return
	}
	w := *r
	w.Text = strings.Clone(w.Text[:min(len(w.Text), maxTextLen)])
	w.File, w.Func, w.Time = c.intern(w.File), c.intern(w.Func), strings.Clone(w.Time)
	c.log.Warns = append(c.log.Warns, w)
	// This message is long enough for documents to break it.
	if strings.Contains(w.Text, "Got completion from peer") && !strings.Contains(w.Text, "vendor err") {
		c.open = &c.log.Warns[len(c.log.Warns)-1]
	}
}

// plain takes in a line without a record: it may continue the one before.
func (c *collector) plain(text string) {
	if c.open != nil {
		if t := strings.TrimSpace(text); strings.Contains(t, "vendor err") && len(t) < 200 {
			c.open.Text += " " + t
		}
		c.open = nil
	}
	c.rejoin(text)
}

// note keeps a telling line by its text.
func (c *collector) note(r *Record) {
	if !c.notes.countText(r.Text[:min(len(r.Text), maxTextLen)], r.At, maxNotes) {
		c.drop("notes")
	}
}

// shapeOf is what equal messages have in common.
func shapeOf(s string) string { return lines.Shape(s[:min(len(s), 200)]) }
