// Package ncclplan reads what logs of NCCL say about its plans: graphs, tuning tables, numbers of channels, choices and
// settings. Tests compare NCCL's rules with them; nothing else needs them.
package ncclplan

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"busbar.dev/input/nccllog"
)

// Source is a log.
type Source struct {
	Name string
	Data []byte
}

// Log is what the logs of a job say.
type Log struct {
	*nccllog.Log
	Env     map[string]string
	Choices []Choice // equal ones once

	plans map[nccllog.Pos]*Plan // by where the set-up began or was complete
}

// Plan is what one rank printed while it set up a communicator. Numbers of channels are -1 where it printed none.
type Plan struct {
	Coll, CollNet, NVLS, P2P, P2PPerPeer int
	Graphs                               []Graph
	Cells                                []Cell // of its tuning table

	columns []Cell // algorithms and protocols of the table at hand
	started bool
}

// Choice is what NCCL took for a call: "AllReduce: 8 Bytes -> Algo TREE proto LL
// channel{Lo..Hi}={0..0}".
type Choice struct {
	Op          string // all_reduce; "" up to 2.22
	Bytes       int64
	Algo, Proto string // ring, simple
	Lo, Hi      int    // channels, -1 before 2.24
}

// Cell is one estimate: all_reduce, ring, simple; 0 GB/s means that NCCL will not take it.
type Cell struct {
	Op, Algo, Proto string
	LatencyUS, GBps float64
}

// Graph is a result of NCCL's search: "Pattern 4, crossNic 0, nChannels 1, …".
type Graph struct {
	Pattern, CrossNic, NChannels int
	BwIntra, BwInter             float64
	TypeIntra, TypeInter         string
	SameChannels                 int
}

// thread is who sets up one communicator at a time.
type thread struct {
	host          string
	pid, tid, dev int
}

// Read reads the logs of one job.
func Read(t testing.TB, sources ...Source) *Log {
	t.Helper()
	l := &Log{Env: map[string]string{}, plans: map[nccllog.Pos]*Plan{}}
	r := nccllog.NewReader()
	for _, s := range sources {
		if err := r.Add(s.Name, bytes.NewReader(s.Data)); err != nil {
			t.Fatal(err)
		}
	}
	if r.Empty() {
		t.Fatal("no record of NCCL")
	}
	l.Log = r.Log()
	open := map[thread]*Plan{}
	seen := map[Choice]bool{}
	for _, s := range sources {
		num, parser := 0, new(nccllog.Parser)
		for text := range strings.Lines(string(s.Data)) {
			num++
			line := parser.ParseLine(strings.TrimRight(text, "\r\n"), nccllog.Pos{Source: s.Name, Line: num})
			for i := range line.Records {
				l.take(&line.Records[i], open, seen)
			}
		}
	}
	return l
}

// take takes in one record.
func (l *Log) take(r *nccllog.Record, open map[thread]*Plan, seen map[Choice]bool) {
	who := thread{r.Host, r.PID, r.TID, r.Dev}
	if open[who] == nil {
		open[who] = newPlan()
	}
	switch m := r.Message.(type) {
	case *nccllog.Setting:
		l.Env[m.Name] = strings.TrimSuffix(m.Value, ".")
	case *nccllog.CommLine:
		switch m.What {
		case nccllog.InitStart:
			if open[who].started {
				open[who] = newPlan()
			}
			open[who].started = true
			l.plans[r.At] = open[who]
		case nccllog.InitComplete:
			l.plans[r.At] = open[who]
			delete(open, who)
		}
	default:
		if c, ok := parseChoice(r.Text); ok {
			if !seen[c] {
				seen[c] = true
				l.Choices = append(l.Choices, c)
			}
			return
		}
		open[who].take(r.Text)
	}
}

func newPlan() *Plan { return &Plan{Coll: -1, CollNet: -1, NVLS: -1, P2P: -1, P2PPerPeer: -1} }

// Of is the plan of a rank; an empty one where it printed none.
func (l *Log) Of(k *nccllog.Rank) *Plan {
	for _, at := range []nccllog.Pos{k.Completed, k.Started} {
		if p := l.plans[at]; p != nil && at.Line > 0 {
			return p
		}
	}
	return newPlan()
}

// Common is the plan of the first rank of a communicator that printed a tuning table, or graphs.
func (l *Log) Common(m *nccllog.Comm) *Plan {
	best := newPlan()
	for _, k := range m.Ranks {
		p := l.Of(k)
		if len(p.Cells) > 0 {
			return p
		}
		if len(best.Graphs) == 0 {
			best = p
		}
	}
	return best
}

// take takes in a message.
func (p *Plan) take(text string) {
	switch {
	case strings.HasPrefix(text, "Pattern "):
		if g, ok := parseGraph(text); ok {
			p.Graphs = append(p.Graphs, g)
		}
	case strings.Contains(text, " coll channels"):
		p.channels(text)
	case strings.Contains(text, "|"):
		p.table(cells(text))
	}
}

// channels reads "24 coll channels, 24 collnet channels, 0 nvls channels, 32 p2p channels, 32 p2p channels per peer".
func (p *Plan) channels(text string) {
	n := newPlan()
	for part := range strings.SplitSeq(text, ", ") {
		num, what, _ := strings.Cut(strings.TrimSpace(part), " ")
		to := map[string]*int{
			"coll channels": &n.Coll, "collnet channels": &n.CollNet, "nvls channels": &n.NVLS, "p2p channels": &n.P2P,
			"p2p channels per peer": &n.P2PPerPeer,
		}[strings.TrimSpace(what)]
		if to != nil {
			*to = number(num)
		}
	}
	if n.Coll >= 0 && n.P2P >= 0 { // else it is cut
		p.Coll, p.CollNet, p.NVLS, p.P2P, p.P2PPerPeer = n.Coll, n.CollNet, n.NVLS, n.P2P, n.P2PPerPeer
	}
}

// parseGraph reads "Pattern 4, crossNic 0, nChannels 1, bw 1.200000/1.200000, type
// LOC/PHB, sameChannels 1"; up to 2.12 it says speed for bw.
func parseGraph(text string) (Graph, bool) {
	g := Graph{CrossNic: -1, NChannels: -1, SameChannels: -1}
	for part := range strings.SplitSeq(text, ", ") {
		key, v, _ := strings.Cut(strings.TrimSpace(part), " ")
		a, b, _ := strings.Cut(v, "/")
		switch key {
		case "Pattern":
			g.Pattern = number(v)
		case "crossNic":
			g.CrossNic = number(v)
		case "nChannels":
			g.NChannels = number(v)
		case "bw", "speed":
			g.BwIntra, g.BwInter = float(a), float(b)
		case "type":
			g.TypeIntra, g.TypeInter = a, b
		case "sameChannels":
			g.SameChannels = number(v)
		}
	}
	return g, g.NChannels >= 0
}

// names of NCCL in our words. Numbers are how releases up to 2.22 print a choice.
var (
	opNames = map[string]string{
		"Broadcast": "broadcast", "Reduce": "reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter",
		"AllReduce": "all_reduce",
	}
	algoNames = map[string]string{
		"tree": "tree", "ring": "ring", "collnet": "collnet_direct", "collnetdirect": "collnet_direct",
		"collnet_direct": "collnet_direct",
		"collnetchain":   "collnet_chain", "collnet_chain": "collnet_chain", "nvls": "nvls", "nvlstree": "nvls_tree",
		"nvls_tree": "nvls_tree", "pat": "pat",
		"0": "tree", "1": "ring", "2": "collnet_direct", "3": "collnet_chain", "4": "nvls", "5": "nvls_tree", "6": "pat",
	}
	protoNames = map[string]string{
		"ll": "ll", "ll128": "ll128", "simple": "simple", "0": "ll", "1": "ll128", "2": "simple",
	}
)

// cells cuts a row of a table at its bars.
func cells(s string) []string {
	f := strings.Split(s, "|")
	for i := range f {
		f[i] = strings.TrimSpace(f[i])
	}
	if n := len(f); f[n-1] == "" {
		f = f[:n-1]
	}
	return f
}

// table reads a row of the tuning table: "Algorithm | Tree | Ring | CollNetDirect |", which begins a block since 2.17,
// "Latency/AlgBw | Tree/ LL | …", the one header before, and "AllReduce | 26.8/ 0.1 | …".
func (p *Plan) table(row []string) {
	switch op := opNames[row[0]]; {
	case row[0] == "Algorithm":
		p.columns = nil
		for _, s := range row[1:] {
			for _, proto := range []string{"ll", "ll128", "simple"} {
				p.columns = append(p.columns, Cell{Algo: algoNames[strings.ToLower(s)], Proto: proto})
			}
		}
	case row[0] == "Latency/AlgBw":
		p.columns = nil
		for _, s := range row[1:] {
			a, proto, _ := strings.Cut(s, "/")
			p.columns = append(p.columns, Cell{
				Algo:  algoNames[strings.ToLower(strings.TrimSpace(a))],
				Proto: protoNames[strings.ToLower(strings.TrimSpace(proto))],
			})
		}
	case op != "" && len(row)-1 <= len(p.columns):
		for i, s := range row[1:] {
			latency, bw, _ := strings.Cut(s, "/")
			c := p.columns[i]
			c.Op, c.LatencyUS, c.GBps = op, float(latency), float(bw)
			p.Cells = append(p.Cells, c)
		}
	}
}

// parseChoice reads "AllReduce: 8 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..0}"
// (2.24+), "AllReduce: 8 Bytes -> Algo 0 proto 0 time 9.3" (2.23) and the same
// without the collective (up to 2.22).
func parseChoice(text string) (c Choice, ok bool) {
	head, tail, ok := strings.Cut(text, " Bytes -> ")
	name, size, named := strings.Cut(head, ": ")
	if !named {
		name, size = "", head
	}
	n, err := strconv.ParseInt(size, 10, 64)
	if !ok || err != nil || named && opNames[name] == "" {
		return c, false
	}
	c = Choice{Op: opNames[name], Bytes: n, Lo: -1, Hi: -1}
	f := strings.Fields(tail)
	for i := 0; i+1 < len(f); i++ {
		switch f[i] {
		case "Algo":
			c.Algo = algoNames[strings.ToLower(f[i+1])]
		case "proto":
			c.Proto = protoNames[strings.ToLower(f[i+1])]
		}
	}
	if _, v, ok := strings.Cut(tail, "={"); ok {
		lo, hi, _ := strings.Cut(strings.TrimSuffix(v, "}"), "..")
		c.Lo, c.Hi = number(lo), number(hi)
	}
	return c, c.Algo != ""
}

// number reads a count, -1 when it is none.
func number(s string) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil {
		return -1
	}
	return n
}

func float(s string) float64 {
	v, _ := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return v
}
