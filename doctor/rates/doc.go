// Package rates says how fast the collectives of a running job are, who comes late to them, and whether that or the
// network takes the time. It reads what busbar's profiler plugin and NCCL's Inspector recorded of every operation.
//
//	w := rates.NewWindow(64)
//	w.AddRing(ring, since)
//	r, err := rates.Join(ctx, rates.Bounds{}, w.Done(), others...)   // of all nodes of the job
//
// All ranks end an all-reduce, an all-gather or a reduce-scatter at nearly the same time, so that clocks need not
// agree: the rank that came last is the one whose operation took least, and what the others took longer is their
// waiting. What is left of it, the least time of all ranks, is the transfer, which package predict has an opinion
// about.
package rates

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"busbar.dev/coll"
	"busbar.dev/input/inspector"
	"busbar.dev/input/profile"
)

// Window is what one node recorded in a span of time. It is what an agent sends.
type Window struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Members []Member  `json:"members"`
	Parts   []Part    `json:"parts"`

	most   int
	parts  map[partKey]int
	member map[memberKey]int
}

// Member is a rank of a communicator.
type Member struct {
	Comm   string `json:"comm"` // the hash
	Name   string `json:"name,omitempty"`
	Rank   int    `json:"rank"`
	Ranks  int    `json:"ranks"`
	Nodes  int    `json:"nodes,omitempty"`
	Global int    `json:"global"` // rank of the job, -1 unknown
	World  int    `json:"world,omitempty"`
	Local  int    `json:"local"` // rank on its host, -1 unknown
	Host   string `json:"host"`
	PID    int    `json:"pid"`
	Job    string `json:"job,omitempty"`
	// Open are operations that were launched and have not ended, Since the launch of the oldest, and Waits what it is.
	Open  int       `json:"open,omitempty"`
	Since time.Time `json:"since,omitzero"`
	Waits string    `json:"waits,omitempty"`
}

// Part is what one rank did of one operation and size class on one communicator.
type Part struct {
	Member  int      `json:"member"` // index
	Op      string   `json:"op"`     // all_reduce, send
	Class   int      `json:"class"`  // sizes from 2^class on
	Algo    string   `json:"algo,omitempty"`
	Proto   string   `json:"proto,omitempty"`
	Count   int      `json:"count"`
	Bytes   int64    `json:"bytes"` // of all
	Mask    uint64   `json:"mask"`  // samples are those whose mixed sequence has none of these bits
	Samples []Sample `json:"samples,omitempty"`
}

// Sample is one call. Ranks sample the same calls, so that they can be compared.
type Sample struct {
	Seq uint64  `json:"s"`
	At  int64   `json:"t"` // µs since 1970, of the launch or where that is not known of the report
	Us  float64 `json:"d"`
}

type (
	memberKey struct {
		comm string
		rank int
		pid  int
		host string
	}
	partKey struct {
		member int
		op     string
		class  int
	}
)

// Bounds of what a window holds.
const (
	maxMembers = 1 << 14
	maxParts   = 1 << 16
)

// NewWindow holds at most so many samples of a rank's operation and size class.
func NewWindow(samples int) *Window {
	return &Window{most: max(samples, 1), parts: map[partKey]int{}, member: map[memberKey]int{}}
}

// AddRing adds the operations of a ring that were launched after a time.
func (w *Window) AddRing(r *profile.Ring, since time.Time) {
	at := make([]int, len(r.Comms))
	for i := range r.Comms {
		at[i] = -1
	}
	for i := range r.Ops {
		o := &r.Ops[i]
		c := &r.Comms[o.Comm]
		if o.Ended && o.Launched.Before(since) {
			continue
		}
		if at[o.Comm] < 0 {
			at[o.Comm] = w.memberOf(Member{
				Comm: strconv.FormatUint(c.Hash, 16), Name: name(c.Name), Rank: c.Rank, Ranks: c.Ranks, Nodes: c.Nodes,
				Global: r.Rank, World: r.World, Local: r.LocalRank, Host: r.Host, PID: r.PID, Job: name(r.Job),
			})
		}
		m := at[o.Comm]
		if m < 0 {
			continue
		}
		op := opName(o.Kind, o.Function)
		if !o.Ended && !c.Ended {
			x := &w.Members[m]
			if x.Open++; x.Since.IsZero() {
				x.Since, x.Waits = o.Launched, op
			}
		}
		if !o.Launched.Before(since) {
			w.addSample(m, op, int64(o.Bytes), o.Algo, o.Proto, Sample{
				o.Sequence, o.Launched.UnixMicro(), float64(o.Took) / 1e3,
			},
				o.Ended)
		}
	}
}

// AddInspector adds Inspector's records.
func (w *Window) AddInspector(list []inspector.Record, since time.Time) {
	for i := range list {
		r := &list[i]
		if r.Time < since.UnixMicro() || r.Bytes < 0 || r.Ranks < 1 || r.Seq < 0 {
			continue
		}
		m := w.memberOf(Member{
			Comm: strings.TrimPrefix(r.Comm, "0x"), Rank: int(r.Rank), Ranks: int(r.Ranks), Global: -1, Local: -1, Host: r.Host,
			PID: int(r.PID),
		})
		if m < 0 {
			continue
		}
		kind, err := coll.ParseKind(r.Op)
		if err != nil || r.P2P {
			kind = coll.None
		}
		w.addSample(m, opName(kind, r.Op), r.Bytes, "", "", Sample{uint64(r.Seq), r.Time, float64(r.ExecUs)}, r.ExecUs > 0)
	}
}

// Add adds a call of a rank, as another source than a ring tells of it.
func (w *Window) Add(m Member, op string, size int64, s Sample) {
	if at := w.memberOf(m); at >= 0 {
		w.addSample(at, op, size, "", "", s, true)
	}
}

func opName(k coll.Kind, function string) string {
	if k != coll.None {
		return k.String()
	}
	return cmp.Or(strings.ToLower(function), "operation")
}

// name is a name that somebody gave: what NCCL and torchrun fill in where nobody did is none.
func name(s string) string {
	if s == "unknown" || s == "null" || s == "none" {
		return ""
	}
	return s
}

func (w *Window) memberOf(m Member) int {
	k := memberKey{m.Comm, m.Rank, m.PID, m.Host}
	if i, ok := w.member[k]; ok {
		return i
	}
	if len(w.Members) >= maxMembers {
		return -1
	}
	w.member[k] = len(w.Members)
	w.Members = append(w.Members, m)
	return len(w.Members) - 1
}

func (w *Window) addSample(member int, op string, size int64, algo, proto string, s Sample, timed bool) {
	k := partKey{member, op, bits.Len64(uint64(max(size, 1))) - 1}
	i, ok := w.parts[k]
	if !ok {
		if len(w.Parts) >= maxParts {
			return
		}
		i = len(w.Parts)
		w.parts[k] = i
		w.Parts = append(w.Parts, Part{Member: member, Op: op, Class: k.class})
	}
	if at := time.UnixMicro(s.At); w.From.IsZero() || at.Before(w.From) {
		w.From = at
	}
	if at := time.UnixMicro(s.At); at.After(w.To) {
		w.To = at
	}
	p := &w.Parts[i]
	p.Count++
	p.Bytes += size
	p.Algo, p.Proto = cmp.Or(algo, p.Algo), cmp.Or(proto, p.Proto)
	if !timed || s.Us <= 0 {
		return
	}
	if mixed(s.Seq)&p.Mask != 0 {
		return
	}
	p.Samples = append(p.Samples, s)
	for len(p.Samples) > w.most && p.Mask < 1<<62 {
		p.Mask = p.Mask<<1 | 1
		p.Samples = slices.DeleteFunc(p.Samples, func(s Sample) bool { return mixed(s.Seq)&p.Mask != 0 })
	}
}

// mixed scatters sequence numbers, for a step has a fixed number of calls and only its first may wait (splitmix64's
// last step).
func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// maxPacked bounds the text of a window that is sent.
const maxPacked = 256 << 10

// Pack is the window as a short message.
func (w *Window) Pack() ([]byte, error) {
	text, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	if len(text) > maxPacked {
		return nil, fmt.Errorf("a window of %d bytes; at most %d are sent", len(text), maxPacked)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(text) // into memory
	err = z.Close()
	return b.Bytes(), err
}

// Unpack reads what a host packed. The host speaks for itself: all members are its own, whatever they say. What no
// process has is refused, and what no operation has left out, so that sums stay numbers.
func Unpack(data []byte, host string) (*Window, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(z, maxPacked+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxPacked {
		return nil, fmt.Errorf("a window of more than %d bytes", maxPacked)
	}
	w := new(Window)
	if err := json.Unmarshal(text, w); err != nil {
		return nil, err
	}
	for i := range w.Members {
		m := &w.Members[i]
		m.Host, m.Comm, m.Name, m.Job, m.Waits = host, word(m.Comm), word(m.Name), word(m.Job), word(m.Waits)
		for _, n := range []int{m.Rank, m.Ranks, m.Nodes, m.Global, m.World, m.Local, m.PID, m.Open} {
			if n < -1 || n > 1<<24 {
				return nil, fmt.Errorf("member %d has the number %d; expected -1 to %d", i, n, 1<<24)
			}
		}
	}
	w.Parts = slices.DeleteFunc(w.Parts, func(p Part) bool {
		return p.Member < 0 || p.Member >= len(w.Members) || p.Class < 0 || p.Class > 62 || p.Count <= 0 ||
			p.Count > 1<<40 || p.Bytes < 0 || p.Bytes > 1<<60
	})
	for i := range w.Parts {
		p := &w.Parts[i]
		p.Op, p.Algo, p.Proto = word(p.Op), word(p.Algo), word(p.Proto)
		p.Samples = slices.DeleteFunc(p.Samples,
			func(s Sample) bool { return !(s.Us >= 1e-3 && s.Us <= 1e10) || s.At < 0 || s.At > 1<<60 })
	}
	return w, nil
}

// word is a name that another machine sent, short and without what moves a cursor.
func word(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s[:min(len(s), 64)])
}

// Done is the window in an order that does not depend on who was read first.
func (w *Window) Done() *Window {
	for i := range w.Parts {
		slices.SortFunc(w.Parts[i].Samples, func(a, b Sample) int { return cmp.Compare(a.Seq, b.Seq) })
	}
	return w
}
