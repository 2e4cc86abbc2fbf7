package nccllog

import (
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
)

// newRank begins a set-up, or returns nil when there are too many.
func (c *collector) newRank(r *Record) *Rank {
	if len(c.ranks) >= c.maxRanks {
		c.drop("ranks")
		return nil
	}
	k := &Rank{
		Rank: -1, NRanks: -1, NNodes: -1, LocalRank: -1, LocalRanks: -1, CudaDev: -1, NvmlDev: -1, Host: r.Host, PID: r.PID,
	}
	k.Channels = Channels{-1, -1, -1, -1, -1}
	c.ranks = append(c.ranks, k)
	c.threads[threadOf(r)] = k
	return k
}

func threadOf(r *Record) thread { return thread{r.Host, r.PID, r.TID, r.Dev} }

// current is the set-up that a thread is at: a message without a communicator
// belongs to it. A finished one is over, and another begins.
func (c *collector) current(r *Record) *Rank {
	if k := c.threads[threadOf(r)]; k != nil && k.Completed.Line == 0 {
		return k
	}
	return c.newRank(r)
}

// named finds the set-up of a communicator in its process. want says which of
// several that used the same pointer one after another is meant.
func (c *collector) named(r *Record, comm string, want func(*Rank) bool) *Rank {
	key := commKey{r.Host, r.PID, comm}
	if r.Host == "" { // the beginning of the line is lost
		if k := c.pointers[comm]; k != nil && want(k) {
			return k
		}
	}
	if k := c.comms[key]; k != nil && want(k) {
		return k
	}
	k := c.threads[threadOf(r)]
	if k == nil || k.Comm != "" || k.Completed.Line != 0 { // no set-up waits for its name
		k = c.newRank(r)
	}
	if k == nil {
		return nil
	}
	k.Comm = c.intern(comm)
	key.comm = k.Comm
	c.comms[key] = k
	c.pointers[k.Comm] = k
	return k
}

// comm files every message about one communicator: Init START and COMPLETE,
// Destroy and Abort COMPLETE, and the line with the number of nodes.
func (c *collector) comm(r *Record, q *commLine) {
	var k *Rank
	switch {
	case q.nodes:
		k = c.named(r, q.comm, func(k *Rank) bool { return k.NNodes < 0 && k.ended().Line == 0 })
	case q.what == "Init START":
		k = c.named(r, q.comm, func(k *Rank) bool { return k.Started.Line == 0 && k.Completed.Line == 0 })
		if k != nil {
			k.Started = r.At
		}
	case q.what == "Init COMPLETE":
		c.log.Complete++
		if c.repeated(r, q) {
			return
		}
		k = c.named(r, q.comm, func(k *Rank) bool { return k.Completed.Line == 0 && k.ended().Line == 0 })
		if k != nil {
			k.Completed = r.At
		}
	case q.what == "Destroy COMPLETE":
		k = c.named(r, q.comm, func(k *Rank) bool { return k.ended().Line == 0 })
		if k != nil {
			k.Destroyed = r.At
		}
	case q.what == "Abort COMPLETE":
		k = c.named(r, q.comm, func(k *Rank) bool { return k.ended().Line == 0 })
		if k != nil {
			k.Aborted = r.At
		}
	}
	if k != nil {
		q.fillRank(c, k)
	}
}

// repeated reports a message that says again of a communicator in use that it is complete, as logs do that are
// collected twice: it begins no other.
func (c *collector) repeated(r *Record, q *commLine) bool {
	k := c.comms[commKey{r.Host, r.PID, q.comm}]
	return k != nil && k.Completed.Line > 0 && k.ended().Line == 0 && k == c.threads[threadOf(r)] && k.Rank == q.rank &&
		k.NRanks == q.nRanks
}

// tear keeps a message about a communicator that does not read: other output may
// have come between its parts, and the rest stands on a later line.
func (c *collector) tear(r *Record) {
	if !strings.HasPrefix(r.Text, "comm 0x") &&
		!(strings.HasPrefix(r.Text, "ncclComm") && strings.Contains(r.Text, "comm 0x")) {
		return
	}
	if len(c.torn) >= maxTorn {
		c.torn = append(c.torn[:0], c.torn[1:]...)
	}
	t := *r
	t.Text, t.Time = strings.Clone(t.Text[:min(len(t.Text), maxTextLen)]), strings.Clone(t.Time)
	c.torn = append(c.torn, t)
}

// rejoin looks for the torn message whose end a line without a prefix is. Where
// the first part stopped is not marked; the longest beginning that makes a whole
// message together with the end is right, as a longer one holds foreign text.
// The device tells the messages of several ranks apart.
func (c *collector) rejoin(end string) {
	if len(c.torn) == 0 || !strings.HasSuffix(end, " COMPLETE") && !strings.HasSuffix(end, "Init START") ||
		len(end) > 400 {
		return
	}
	for i := range c.torn {
		r := c.torn[i]
		for cut := min(len(r.Text), 400); cut > 0 && c.mends < maxMends; cut-- {
			c.mends++
			var q commLine
			if !q.parse(r.Text[:cut]+end) || q.cudaDev != r.Dev || q.what == "" {
				continue
			}
			whole := r
			whole.Text = r.Text[:cut] + end
			c.comm(&whole, &q)
			c.log.Understood++
			c.log.NotUnderstood--
			c.unknown.remove(shapeOf(r.Text))
			if _, seen := sizeOf(r.Text); !seen {
				c.sizes(&whole)
			}
			c.torn = append(c.torn[:i], c.torn[i+1:]...)
			return
		}
	}
}

// ended is where the communicator was destroyed or aborted.
func (k *Rank) ended() Pos {
	if k.Destroyed.Line != 0 {
		return k.Destroyed
	}
	return k.Aborted
}

// commLine is what such a message says.
type commLine struct {
	comm, id, bus                  string
	what                           string
	nodes                          bool
	rank, nRanks, cudaDev, nvmlDev int
	nNodes, localRank, localRanks  int
}

func parseComm(r *Record) any {
	q := &commLine{}
	if !q.parse(r.Text) || !q.nodes && q.what == "" {
		return nil
	}
	return q
}

// parse reads pairs of name and value. The bus id is hexadecimal without 0x.
func (q *commLine) parse(text string) bool {
	*q = commLine{rank: -1, nRanks: -1, cudaDev: -1, nvmlDev: -1, nNodes: -1, localRank: -1, localRanks: -1}
	for _, what := range []string{"Init START", "Init COMPLETE", "Destroy COMPLETE", "Abort COMPLETE"} {
		if i := strings.LastIndex(text, "- "+what); i >= 0 {
			q.what, text = what, text[:i]
			break
		}
	}
	f := strings.Fields(text)
	if len(f) > 64 {
		return false
	}
	for i := 0; i+1 < len(f); i++ {
		v := f[i+1]
		switch f[i] {
		case "comm":
			q.comm = v
		case "commId":
			q.id = v
		case "busId":
			q.bus = v
		case "rank":
			q.rank = number(v)
		case "nranks", "nRanks":
			q.nRanks = number(v)
		case "cudaDev":
			q.cudaDev = number(v)
		case "nvmlDev":
			q.nvmlDev = number(v)
		case "nNodes":
			q.nNodes, q.nodes = number(v), true
		case "localRanks":
			q.localRanks = number(v)
		case "localRank":
			q.localRank = number(v)
		}
	}
	return strings.HasPrefix(q.comm, "0x") && q.rank >= 0 && q.nRanks > 0
}

// fillRank adds what the message says to the set-up.
func (q *commLine) fillRank(c *collector, k *Rank) {
	for _, n := range []struct {
		dst *int
		v   int
	}{
		{&k.Rank, q.rank},
		{&k.NRanks, q.nRanks},
		{&k.CudaDev, q.cudaDev},
		{&k.NvmlDev, q.nvmlDev},
		{&k.NNodes, q.nNodes},
		{&k.LocalRank, q.localRank},
		{&k.LocalRanks, q.localRanks},
	} {
		if n.v >= 0 {
			*n.dst = n.v
		}
	}
	if q.id != "" && strings.HasPrefix(q.id, "0x") {
		k.CommID = c.intern(q.id)
	}
	if k.PCI == "" && q.bus != "" {
		k.PCI = cluster.PCI(c.intern(string(busPCI(q.bus))))
	}
}

// busPCI turns NCCL's bus id, the digits of the address without separators, into
// an address: 801000 is 0008:01:00.0.
func busPCI(s string) cluster.PCI {
	n, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
	if err != nil || n>>36 != 0 {
		return ""
	}
	p, err := cluster.ParsePCI(strconv.FormatUint(n>>20, 16) + ":" + strconv.FormatUint(n>>12&0xff, 16) + ":" +
		strconv.FormatUint(n>>4&0xff, 16) + "." + strconv.FormatUint(n&0xf, 16))
	if err != nil {
		return ""
	}
	return p
}

// number reads a count, -1 when it is none.
func number(s string) int {
	if 0 < len(s) && len(s) < 9 && allDigits(s) {
		n := 0
		for i := range len(s) {
			n = 10*n + int(s[i]-'0')
		}
		return n
	}
	n, err := strconv.ParseInt(strings.TrimRight(s, ".,:"), 10, 32)
	if err != nil || n < -1 {
		return -1
	}
	return int(n)
}

// initTimes is who says how long its set-up took.
type initTimes struct{ rank, nRanks int }

// parseInitTimes reads "Init timings - ncclCommInitRank: rank 5 nranks 16 total 1.58
// (kernels 0.26, alloc 0.97, …)".
func parseInitTimes(r *Record) any {
	t := &initTimes{-1, -1}
	timed := false
	f := strings.FieldsFunc(r.Text, func(r rune) bool { return r == ' ' || r == ',' || r == '(' || r == ')' })
	for i := 0; i+1 < len(f) && i < 64; i++ {
		v, err := strconv.ParseFloat(f[i+1], 64)
		if err != nil || !(v >= 0) {
			continue
		}
		switch f[i] {
		case "rank":
			t.rank = number(f[i+1])
		case "nranks":
			t.nRanks = number(f[i+1])
		case "total":
			timed = true
		}
	}
	if t.rank < 0 || t.nRanks < 0 || !timed {
		return nil
	}
	return t
}

func (c *collector) initTimes(r *Record, t *initTimes) {
	k := c.threads[threadOf(r)]
	if k == nil || k.Rank != t.rank && k.Rank >= 0 {
		k = c.newRank(r)
	}
	if k != nil {
		k.Rank, k.NRanks = t.rank, t.nRanks
	}
}

// parseAffinity checks the line that names the processors a rank is bound to.
func parseAffinity(r *Record) any {
	v, ok := strings.CutPrefix(r.Text, "Setting affinity for GPU ")
	if ok {
		_, v, ok = strings.Cut(v, " to ")
	} else if _, v, ok = strings.Cut(r.Text, "(GPU affinity = "); ok {
		v, _, _ = strings.Cut(v, ";")
	}
	if v = strings.TrimSpace(v); !ok || strings.ContainsAny(v, " 	") || len(v) > 1000 {
		return nil
	}
	return setupLine{}
}

// parseFabric checks "MNNVL busId 0x801000 fabric UUID … cliqueId … state …".
func parseFabric(r *Record) any {
	f := strings.Fields(r.Text)
	bus, uuid := slices.Index(f, "busId"), slices.Index(f, "UUID")
	if bus < 0 || uuid < 0 || max(bus, uuid) >= min(len(f)-1, 32) {
		return nil
	}
	return known{}
}
