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
		"AllReduce": "all_reduce", "AlltoAll": "all_to_all", "AllToAll": "all_to_all", "SendRecv": "sendrecv", "Send": "send", "Recv": "recv", "Gather": "gather", "Scatter": "scatter",
	}
	algoNames = map[string]string{
		"tree": "tree", "ring": "ring", "collnet": "collnet_direct", "collnetdirect": "collnet_direct", "collnet_direct": "collnet_direct",
		"collnetchain": "collnet_chain", "collnet_chain": "collnet_chain", "nvls": "nvls", "nvlstree": "nvls_tree", "nvls_tree": "nvls_tree", "pat": "pat",
		"0": "tree", "1": "ring", "2": "collnet_direct", "3": "collnet_chain", "4": "nvls", "5": "nvls_tree", "6": "pat",
	}
	protoNames = map[string]string{"ll": "ll", "ll128": "ll128", "simple": "simple", "0": "ll", "1": "ll128", "2": "simple"}
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

// table returns the tuning table of the thread's set-up.
func (c *collector) table(r *Record) *Rank {
	k := c.current(r)
	if k != nil && k.Tuning == nil {
		k.Tuning = &Tuning{At: r.At}
	}
	return k
}

// tuningAlgos reads "Algorithm | Tree | Ring | CollNetDirect |", which begins a
// block of the table.
func (c *collector) tuningAlgos(r *Record) bool {
	var cols []column
	for _, s := range cells(r.Text)[1:] {
		algo, ok := algoNames[strings.ToLower(s)]
		if !ok || len(cols) >= 48 {
			return false
		}
		for _, p := range []string{"ll", "ll128", "simple"} {
			cols = append(cols, column{algo, p})
		}
	}
	if k := c.table(r); k != nil {
		k.cols = cols
	}
	return true
}

// tuningProtos checks "Protocol | LL | LL128 | Simple | …". The last block prints
// nine columns and has fewer.
func (c *collector) tuningProtos(r *Record) bool {
	for i, s := range cells(r.Text)[1:] {
		if protoNames[strings.ToLower(s)] != []string{"ll", "ll128", "simple"}[i%3] {
			return false
		}
	}
	return true
}

// tuningOld reads the one header up to 2.16: "Latency/AlgBw | Tree/ LL | …".
func (c *collector) tuningOld(r *Record) bool {
	var cols []column
	for _, s := range cells(r.Text)[1:] {
		a, p, _ := strings.Cut(s, "/")
		algo, okA := algoNames[strings.ToLower(strings.TrimSpace(a))]
		proto, okP := protoNames[strings.ToLower(strings.TrimSpace(p))]
		if !okA || !okP || len(cols) >= 48 {
			return false
		}
		cols = append(cols, column{algo, proto})
	}
	if k := c.table(r); k != nil {
		k.cols = cols
	}
	return true
}

// tuningRow reads "Max NThreads | 512 | …" and "AllReduce | 26.8/ 0.1 | …".
func (c *collector) tuningRow(r *Record) bool {
	f := cells(r.Text)
	k := c.threads[threadOf(r)]
	op, isOp := opNames[f[0]]
	if f[0] != "Max NThreads" && !isOp {
		return false
	}
	if k == nil || k.Tuning == nil || len(f)-1 > len(k.cols) || len(k.Tuning.Cells) >= 1000 {
		return k == nil // the rank was one too many to keep
	}
	for i, s := range f[1:] {
		if !isOp {
			n, err := strconv.Atoi(s)
			if err != nil {
				return false
			}
			k.Tuning.Threads = append(k.Tuning.Threads, Threads{k.cols[i].algo, k.cols[i].proto, n})
			continue
		}
		lat, bw, ok := strings.Cut(s, "/")
		x, err1 := strconv.ParseFloat(strings.TrimSpace(lat), 64)
		y, err2 := strconv.ParseFloat(strings.TrimSpace(bw), 64)
		if !ok || err1 != nil || err2 != nil {
			return false
		}
		k.Tuning.Cells = append(k.Tuning.Cells, Cell{op, k.cols[i].algo, k.cols[i].proto, x, y})
	}
	return true
}

// enabled begins the table of what settings allow; its rows have no prefix.
func (c *collector) enabled(r *Record) bool {
	if k := c.current(r); k != nil {
		k.Enabled = &Enabled{At: r.At}
		c.follow = k
	}
	return true
}

// enabledRow reads a row of that table and reports whether the line was one.
func (c *collector) enabledRow(k *Rank, text string) bool {
	f := strings.Split(text, "|")
	if len(f) != 3 || len(k.Enabled.Rows) > 32 {
		return false
	}
	name := strings.TrimSpace(f[0])
	protos, algos := strings.Fields(f[1]), strings.Fields(f[2])
	if len(protos) > 16 || len(algos) > 16 {
		return false
	}
	if name == "Function" {
		k.cols = nil
		for _, p := range protos {
			k.cols = append(k.cols, column{proto: protoNames[strings.ToLower(p)]})
		}
		for _, a := range algos {
			k.cols = append(k.cols, column{algo: algoNames[strings.ToLower(a)]})
		}
		return true
	}
	op, ok := opNames[name]
	if !ok || len(protos)+len(algos) != len(k.cols) {
		return false
	}
	row := EnabledRow{op, map[string]int{}, map[string]int{}}
	for i, s := range append(protos, algos...) {
		if col := k.cols[i]; col.proto != "" {
			row.Proto[col.proto] = number(s)
		} else {
			row.Algo[col.algo] = number(s)
		}
	}
	k.Enabled.Rows = append(k.Enabled.Rows, row)
	return true
}

type choiceKey struct {
	op, algo, proto string
	bytes           int64
	lo, hi          int
}

// choice reads "AllReduce: 8 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..0}"
// (2.24+), "AllReduce: 8 Bytes -> Algo 0 proto 0 time 9.3" (2.23) and the same
// without the collective (up to 2.22). Symmetric kernels name a kernel instead.
func (c *collector) choice(r *Record) bool {
	head, tail, _ := strings.Cut(r.Text, " Bytes -> ")
	key := choiceKey{lo: -1, hi: -1}
	name, size, ok := strings.Cut(head, ": ")
	if !ok {
		name, size = "", head
	}
	name, _, _ = strings.Cut(name, " ") // "AllReduce [Symmetric]"
	bytes, err := strconv.ParseInt(size, 10, 64)
	op, known := opNames[name]
	if err != nil || bytes < 0 || name != "" && !known {
		return false
	}
	key.op, key.bytes = op, bytes
	us := math.NaN()
	f := strings.Fields(tail)
	for i := 0; i+1 < len(f) && i < 32; i++ {
		switch f[i] {
		case "Algo":
			key.algo = algoNames[strings.ToLower(f[i+1])]
		case "Kernel":
			key.algo = c.intern(f[i+1])
		case "proto":
			key.proto = protoNames[strings.ToLower(f[i+1])]
		case "time":
			us = float(f[i+1])
		}
	}
	if key.algo == "" {
		return false
	}
	if _, v, ok := strings.Cut(tail, "={"); ok {
		lo, hi, _ := strings.Cut(strings.TrimSuffix(v, "}"), "..")
		key.lo, key.hi = number(lo), number(hi)
	}
	if i, ok := c.choices[key]; ok {
		c.log.Choices[i].N++
		return true
	}
	if len(c.choices) >= maxChoices {
		c.drop("choices")
		return true
	}
	c.choices[key] = len(c.log.Choices)
	c.log.Choices = append(c.log.Choices, Choice{key.op, key.bytes, key.algo, key.proto, key.lo, key.hi, us, 1, r.At})
	return true
}

type callKey struct {
	op                     string
	count                  int64
	datatype, redop, ranks int
}

// call reads "AllReduce: opCount 0 sendbuff … count 16 datatype 7 op 0 root 0
// comm 0x… [nranks=32] stream 0x…".
func (c *collector) call(r *Record) bool {
	name, rest, _ := strings.Cut(r.Text, ": opCount ")
	op, ok := opNames[name]
	if !ok {
		return false
	}
	key := callKey{op: op, count: -1, datatype: -1, redop: -1}
	f := strings.Fields(rest)
	for i := 0; i < len(f) && i < 32; i++ {
		if v, ok := strings.CutPrefix(f[i], "[nranks="); ok {
			key.ranks = max(number(strings.TrimSuffix(v, "]")), 0)
		}
		if i+1 == len(f) {
			break
		}
		switch f[i] {
		case "count":
			if n, err := strconv.ParseInt(f[i+1], 10, 64); err == nil {
				key.count = n
			}
		case "datatype":
			key.datatype = number(f[i+1])
		case "op":
			key.redop = number(f[i+1])
		}
	}
	if key.count < 0 {
		return false
	}
	if i, ok := c.calls[key]; ok {
		c.log.Calls[i].N++
		return true
	}
	if len(c.calls) >= maxChoices {
		c.drop("calls")
		return true
	}
	c.calls[key] = len(c.log.Calls)
	c.log.Calls = append(c.log.Calls, Call{key.op, key.count, key.datatype, key.redop, key.ranks, 1, r.At})
	return true
}
