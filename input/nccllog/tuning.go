package nccllog

import (
	"math"
	"strconv"
	"strings"
)

// column is an algorithm and a protocol of the table at hand.
type column struct{ algo, proto string }

// names of NCCL in our words. Numbers are how releases up to 2.22 print a choice.
var (
	opNames = map[string]string{
		"Broadcast": "broadcast", "Reduce": "reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter",
		"AllReduce": "all_reduce", "AlltoAll": "all_to_all", "AllToAll": "all_to_all", "SendRecv": "sendrecv", "Send": "send",
		"Recv": "recv", "Gather": "gather", "Scatter": "scatter",
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

type (
	tuningColumns []column // the head of a block of the table
	tuningRow     struct {
		op      string // "": the most threads of a block
		columns int
		cells   []Cell // without their column
		torn    bool   // its end does not read
	}
)

// parseTuningAlgos reads "Algorithm | Tree | Ring | CollNetDirect |", which begins a
// block of the table.
func parseTuningAlgos(r *Record) any {
	cols := tuningColumns{}
	for _, s := range cells(r.Text)[1:] {
		algo, ok := algoNames[strings.ToLower(s)]
		if !ok || len(cols) >= 48 {
			return nil
		}
		for _, p := range []string{"ll", "ll128", "simple"} {
			cols = append(cols, column{algo, p})
		}
	}
	return cols
}

// parseTuningProtos checks "Protocol | LL | LL128 | Simple | …". The last block
// prints nine columns and has fewer.
func parseTuningProtos(r *Record) any {
	for i, s := range cells(r.Text)[1:] {
		if protoNames[strings.ToLower(s)] != []string{"ll", "ll128", "simple"}[i%3] {
			return nil
		}
	}
	return known{}
}

// parseTuningOld reads the one header up to 2.16: "Latency/AlgBw | Tree/ LL | …".
func parseTuningOld(r *Record) any {
	cols := tuningColumns{}
	for _, s := range cells(r.Text)[1:] {
		a, p, _ := strings.Cut(s, "/")
		algo, okA := algoNames[strings.ToLower(strings.TrimSpace(a))]
		proto, okP := protoNames[strings.ToLower(strings.TrimSpace(p))]
		if !okA || !okP || len(cols) >= 48 {
			return nil
		}
		cols = append(cols, column{algo, proto})
	}
	return cols
}

// parseTuningRow reads "Max NThreads | 512 | …" and "AllReduce | 26.8/ 0.1 | …".
func parseTuningRow(r *Record) any {
	f := cells(r.Text)
	op, isOp := opNames[f[0]]
	if f[0] != "Max NThreads" && !isOp {
		return nil
	}
	row := &tuningRow{op: op, columns: len(f) - 1}
	for _, s := range f[1:] {
		if !isOp {
			if _, err := strconv.Atoi(s); err != nil {
				row.torn = true
				break
			}
			continue
		}
		lat, bw, ok := strings.Cut(s, "/")
		x, err1 := strconv.ParseFloat(strings.TrimSpace(lat), 64)
		y, err2 := strconv.ParseFloat(strings.TrimSpace(bw), 64)
		if row.torn = !ok || err1 != nil || err2 != nil; row.torn {
			break
		}
		row.cells = append(row.cells, Cell{Op: op, LatencyUS: x, GBps: y})
	}
	return row
}

// tuningRow files a row under the columns that the head of its block named.
func (c *collector) tuningRow(r *Record, row *tuningRow) bool {
	k := c.threads[threadOf(r)]
	if k == nil {
		return true // the rank was one too many to keep
	}
	t := k.Tuning
	if t == nil || row.columns > len(k.cols) || len(t.Cells) >= 1000 {
		return false
	}
	if c.brief {
		return !row.torn
	}
	for i, cell := range row.cells {
		cell.Algo, cell.Proto = k.cols[i].algo, k.cols[i].proto
		t.Cells = append(t.Cells, cell)
	}
	return !row.torn
}

type choiceKey struct {
	op, algo, proto string
	bytes           int64
	lo, hi          int
}

// parseChoice reads "AllReduce: 8 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..0}"
// (2.24+), "AllReduce: 8 Bytes -> Algo 0 proto 0 time 9.3" (2.23) and the same
// without the collective (up to 2.22). Symmetric kernels name a kernel instead.
func parseChoice(r *Record) any {
	head, tail, _ := strings.Cut(r.Text, " Bytes -> ")
	name, size, ok := strings.Cut(head, ": ")
	if !ok {
		name, size = "", head
	}
	name, _, _ = strings.Cut(name, " ") // "AllReduce [Symmetric]"
	bytes, err := strconv.ParseInt(size, 10, 64)
	op, known := opNames[name]
	if err != nil || bytes < 0 || name != "" && !known {
		return nil
	}
	m := &Choice{Op: op, Bytes: bytes, Lo: -1, Hi: -1, MicroSecs: math.NaN(), N: 1, First: r.At}
	f := strings.Fields(tail)
	for i := 0; i+1 < len(f) && i < 32; i++ {
		switch f[i] {
		case "Algo":
			m.Algo = algoNames[strings.ToLower(f[i+1])]
		case "Kernel":
			m.Algo = f[i+1]
		case "proto":
			m.Proto = protoNames[strings.ToLower(f[i+1])]
		case "time":
			m.MicroSecs = float(f[i+1])
		}
	}
	if m.Algo == "" {
		return nil
	}
	if _, v, ok := strings.Cut(tail, "={"); ok {
		lo, hi, _ := strings.Cut(strings.TrimSuffix(v, "}"), "..")
		m.Lo, m.Hi = number(lo), number(hi)
	}
	return m
}

// choice files a choice, equal ones once.
func (c *collector) choice(m *Choice) {
	key := choiceKey{m.Op, m.Algo, m.Proto, m.Bytes, m.Lo, m.Hi}
	if i, ok := c.choices[key]; ok {
		c.log.Choices[i].N++
		return
	}
	if len(c.choices) >= maxChoices {
		c.drop("choices")
		return
	}
	m.Algo = c.intern(m.Algo)
	key.algo = m.Algo
	c.choices[key] = len(c.log.Choices)
	c.log.Choices = append(c.log.Choices, *m)
}

// parseCall reads "AllReduce: opCount 0 sendbuff … count 16 datatype 7 op 0 root 0
// comm 0x… [nranks=32] stream 0x…".
func parseCall(r *Record) any {
	name, rest, _ := strings.Cut(r.Text, ": opCount ")
	op, ok := opNames[name]
	if !ok {
		return nil
	}
	// Half of a long log is calls: what stands before the count is skipped, not split.
	at := strings.Index(rest, " count ")
	if at < 0 {
		return nil
	}
	m := reuse[Call](r)
	*m = Call{Op: op, Count: -1, Datatype: -1, Redo: -1, N: 1, First: r.At}
	key := ""
	for rest = rest[at+1:]; rest != ""; {
		var word string
		word, rest, _ = strings.Cut(rest, " ")
		switch key {
		case "count":
			if n, err := strconv.ParseInt(word, 10, 64); err == nil {
				m.Count = n
			}
		case "datatype":
			m.Datatype = number(word)
		case "op":
			m.Redo = number(word)
		}
		if v, ok := strings.CutPrefix(word, "[nranks="); ok {
			m.NRanks = max(number(strings.TrimSuffix(v, "]")), 0)
			break
		}
		key = word
	}
	if m.Count < 0 {
		return nil
	}
	return m
}
