package nccllog

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/num"
	"busbar.dev/internal/lazyre"
)

// newRank begins a set-up, or returns nil when there are too many.
func (c *Reader) newRank(r *Record) *Rank {
	if len(c.ranks) >= c.maxRanks {
		c.drop("ranks")
		return nil
	}
	k := &Rank{
		Rank: -1, NRanks: -1, NNodes: -1, LocalRanks: -1, CudaDev: -1, NvmlDev: -1, Host: r.Host,
	}
	c.ranks = append(c.ranks, k)
	c.threads[threadOf(r)] = k
	return k
}

func threadOf(r *Record) thread { return thread{r.Host, r.PID, r.TID, r.Dev} }

// current is the set-up that a thread is at: a message without a communicator
// belongs to it. A finished one is over, and another begins.
func (c *Reader) current(r *Record) *Rank {
	if k := c.threads[threadOf(r)]; k != nil && k.Completed.Line == 0 {
		return k
	}
	return c.newRank(r)
}

// named finds the set-up of a communicator in its process. want says which of
// several that used the same pointer one after another is meant.
func (c *Reader) named(r *Record, comm string, want func(*Rank) bool) *Rank {
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
func (c *Reader) comm(r *Record, q *CommLine) {
	if q.What == DestroyStart || q.What == AbortStart {
		return
	}
	k := c.named(r, q.comm, func(k *Rank) bool {
		switch {
		case q.nNodes >= 0:
			return k.NNodes < 0 && !k.Ended
		case q.What == InitStart:
			return k.Started.Line == 0 && k.Completed.Line == 0
		case q.What == InitComplete:
			return k.Completed.Line == 0 && !k.Ended
		}
		return !k.Ended
	})
	if k == nil {
		return
	}
	switch {
	case q.nNodes >= 0:
	case q.What == InitStart:
		k.Started = r.At
	case q.What == InitComplete:
		k.Completed = r.At
	default:
		k.Ended = true
	}
	k.Rank, k.NRanks = q.Rank, q.NRanks
	k.CudaDev, k.NvmlDev = max(q.cudaDev, k.CudaDev), max(q.nvmlDev, k.NvmlDev)
	k.NNodes, k.LocalRanks = max(q.nNodes, k.NNodes), max(q.localRanks, k.LocalRanks)
	if strings.HasPrefix(q.ID, "0x") {
		k.CommID = c.intern(q.ID)
	}
	if k.PCI == "" {
		k.PCI = busPCI(q.bus)
	}
}

// tornEnd is the end of a line about a set-up, of which other output came between its parts.
var tornEnd = lazyre.New(`\bcommId (0x[[:xdigit:]]+) - Init COMPLETE$`)

// What a line says of the set-up of a communicator.
const (
	InitStart    = "Init START"
	InitComplete = "Init COMPLETE"
	DestroyStart = "Destroy START"
	AbortStart   = "Abort START"
)

// CommLine is a message about one communicator.
type CommLine struct {
	What               string // Init START, Init COMPLETE, and so of Destroy and Abort; "": none
	ID                 string // commId, 0x and digits; "" before 2.16
	Rank, NRanks       int
	comm, bus          string
	cudaDev, nvmlDev   int
	nNodes, localRanks int
}

// parseComm reads pairs of name and value; nil where some are missing. The bus id is hexadecimal without 0x.
func parseComm(r *Record) any {
	text := r.Text
	q := &CommLine{Rank: -1, NRanks: -1, cudaDev: -1, nvmlDev: -1, nNodes: -1, localRanks: -1}
	for _, what := range []string{
		InitStart, InitComplete, DestroyStart, AbortStart, "Destroy COMPLETE", "Abort COMPLETE",
	} {
		if i := strings.LastIndex(text, "- "+what); i >= 0 {
			q.What, text = what, text[:i]
			break
		}
	}
	f := strings.Fields(text)
	if len(f) > 64 {
		return nil
	}
	texts := map[string]*string{"comm": &q.comm, "commId": &q.ID, "busId": &q.bus}
	numbers := map[string]*int{
		"rank": &q.Rank, "nranks": &q.NRanks, "nRanks": &q.NRanks, "cudaDev": &q.cudaDev, "nvmlDev": &q.nvmlDev,
		"nNodes": &q.nNodes, "localRanks": &q.localRanks,
	}
	for i := 0; i+1 < len(f); i++ {
		if to := texts[f[i]]; to != nil {
			*to = f[i+1]
		} else if to := numbers[f[i]]; to != nil {
			*to = number(f[i+1])
		}
	}
	if !strings.HasPrefix(q.comm, "0x") || q.Rank < 0 || q.NRanks <= 0 || q.nNodes < 0 && q.What == "" {
		return nil
	}
	return q
}

// busPCI turns NCCL's bus id, the digits of the address without separators, into
// an address: 801000 is 0008:01:00.0.
func busPCI(s string) cluster.PCI {
	n, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
	if err != nil || n>>36 != 0 {
		return ""
	}
	p, _ := cluster.ParsePCI(fmt.Sprintf("%x:%x:%x.%x", n>>20, n>>12&0xff, n>>4&0xff, n&0xf))
	return p
}

// number reads a count, -1 when it is none.
func number(s string) int {
	if isDigits(s) && len(s) < 10 { // nearly all
		return atoi(s)
	}
	if end := len(s) - 1; end >= 0 && strings.IndexByte(".,:", s[end]) >= 0 {
		s = s[:end]
	}
	return num.Or(s, -1, math.MaxInt32, -1)
}

// InitTimes is how long a rank's set-up took. Bootstrap is the wait for the other members in seconds, -1 unknown.
type InitTimes struct {
	Rank, NRanks int
	Bootstrap    float64
}

var initTimes = lazyre.New(`\brank (\d+) nranks (\d+) total [\d.]+(?:.*\bbootstrap ([\d.]+))?`)

// parseInitTimes reads "Init timings - ncclCommInitRank: rank 5 nranks 16 total 1.58
// (kernels 0.26, alloc 0.97, …)".
func parseInitTimes(r *Record) any {
	m := initTimes.FindStringSubmatch(r.Text)
	if m == nil {
		return nil
	}
	t := &InitTimes{number(m[1]), number(m[2]), -1}
	if wait, err := strconv.ParseFloat(m[3], 64); err == nil {
		t.Bootstrap = wait
	}
	return t
}

func (c *Reader) initTimes(r *Record, t *InitTimes) {
	k := c.threads[threadOf(r)]
	if k == nil || k.Rank != t.Rank && k.Rank >= 0 {
		k = c.newRank(r)
	}
	if k != nil {
		k.Rank, k.NRanks = t.Rank, t.NRanks
	}
}
