// Package nccltests reads the text output of nccl-tests (all_reduce_perf and
// its siblings, RCCL's too): every table with its parameters, ranks and rows.
//
// It knows the layouts from 2.0 to 2.19: with and without redop and root
// columns, "error" or "#wrong", the out-of-place half alone, timestamps and
// per-iteration columns. Several tables in one text are kept apart. When NCCL's
// own log goes to the same terminal, it tears rows to pieces; they are put
// together again, and pieces that belong to nothing are counted.
//
// The average the tool prints mixes all sizes; it is kept as printed and used
// for nothing. The JSON that option -J writes is not read.
package nccltests

import (
	"bytes"
	"fmt"
	"io"

	"busbar.dev/cluster"
	"busbar.dev/internal/lines"
	"busbar.dev/unit"
)

// Format names the tool in facts and messages.
const Format = "nccl-tests"

// Limits on what one text may hold.
const (
	maxTables   = 20000
	maxRanks    = 1 << 20 // of one table
	maxRows     = 1 << 20 // of all tables
	maxFailures = 1000
	maxWarnings = 100
)

// Half is the out-of-place or the in-place part of a row.
type Half struct {
	Time  unit.Time
	Algbw unit.Rate
	Busbw unit.Rate
	// Wrong is the number of wrong values; in old output, where Table.Delta is
	// set, the greatest difference. -1 when the tool did not check.
	Wrong float64
}

// Row is one line of a table.
type Row struct {
	Line  int
	Size  unit.Bytes
	Count int64
	Type  string // "float"
	Redop string // "sum"; "" where the collective has none
	Root  int    // -1 where the collective has none
	// OutOfPlace or InPlace is nil when the tool did not print it.
	OutOfPlace, InPlace *Half
	Torn                bool // put together from pieces
}

// Rank is a line "#  Rank  0 Group  0 Pid 2461830 on node01 device 0 [0000:1b:00] NVIDIA H100".
type Rank struct {
	Line   int
	Rank   int
	Group  int // -1 before 2.13.4
	PID    int
	Host   string
	Device int         // CUDA ordinal in its process
	Bus    string      // as printed: "0x1b" before 2.14.1, then "0000:1b:00"
	PCI    cluster.PCI // only where the tool printed the whole address
	Model  string
}

// Params is the line "# nThread 1 nGpus 8 …". Numbers it lacks are -1.
type Params struct {
	Text                                         string
	Threads, GPUs                                int // GPUs a thread
	MinBytes, MaxBytes                           int64
	Step                                         string // "2(factor)"
	Warmup, Iters, Aggregated, Validation, Graph int
}

// Table is the output of one run.
type Table struct {
	Line int // where it begins
	// Op is the collective in busbar's words (all_reduce), "" when nothing says
	// it; OpFrom is who says it: "header", "command" or "columns".
	Op, OpFrom string
	Test       string // the program as printed: all_reduce_perf_mpi
	Version    string // of nccl-tests
	Library    string // NCCL's version code: 22907
	Params     Params
	Ranks      []Rank
	CPUTime    bool // times are the host's (-C 1)
	Delta      bool // the last column is "error", not "#wrong"
	Rows       []Row
	// Average is the printed average bus bandwidth in GB/s, NaN when there is none.
	Average float64
	// OutOfBounds is the printed verdict: "0 OK".
	OutOfBounds string

	header columns
}

// Failure is a line in which the tool reports that it failed.
type Failure struct {
	Line int
	Text string
}

// Result is everything the text holds.
type Result struct {
	Tables   []Table
	Failures []Failure
	Unused   int // pieces of rows that could not be used
	Untimed  int // halves of rows whose time is no number: nan, or one beyond all bounds
	Warnings []cluster.Warning
}

// Match reports whether a text holds output of the tool.
func Match(data []byte) bool {
	if i := bytes.Index(data, []byte("nThread ")); i >= 0 && bytes.Contains(data[i:min(len(data), i+80)], []byte(" nGpus ")) {
		return true
	}
	i := bytes.Index(data, []byte("algbw   busbw"))
	return i >= 0 && bytes.Contains(data[i:min(len(data), i+300)], []byte("(elements)"))
}

// Read turns the output into a fragment: hosts with the GPUs that took part, and
// the largest size of each table as a measured collective.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	res, err := ReadResult(name, r)
	if err != nil {
		return nil, err
	}
	return res.Fragment(name), nil
}

// ReadResult reads the output as it is.
func ReadResult(name string, r io.Reader) (*Result, error) {
	p := parser{name: name, res: &Result{}, hosts: map[string]bool{}}
	err := lines.Each(name, r, func(num int, text string) error {
		p.line(num, text)
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.endRow()
	for i := range p.res.Tables {
		p.res.Tables[i].nameOp()
	}
	if len(p.res.Tables) == 0 && len(p.res.Failures) == 0 {
		return nil, fmt.Errorf("%s: no output of %s; expected \"# nThread … nGpus …\" or a table headed size, count, type, time, algbw, busbw; save what the program printed", name, Format)
	}
	return p.res, nil
}

// NRanks is the number of ranks of the run: one more than the highest rank
// listed, as a cut text may lack some lines; 0 when none is listed.
func (t *Table) NRanks() int {
	n := 0
	for i := range t.Ranks {
		n = max(n, t.Ranks[i].Rank+1)
	}
	return n
}

// Largest is the row of the greatest size, the last of equals, or nil.
func (t *Table) Largest() *Row {
	var best *Row
	for i := range t.Rows {
		if r := &t.Rows[i]; best == nil || r.Size >= best.Size {
			best = r
		}
	}
	return best
}
