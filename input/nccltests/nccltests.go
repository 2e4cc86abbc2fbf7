// Package nccltests reads what nccl-tests prints (all_reduce_perf and its siblings, RCCL's too):
// every table with its parameters and ranks, as a measured sweep. ReadOutput reads the text and
// ReadJSON the file of option -J; both give the same.
//
// Of the text it knows the layouts from 2.0 to 2.19: with and without redop and root
// columns, "error" or "#wrong", the out-of-place half alone, timestamps and
// per-iteration columns. Several tables in one text are kept apart. When NCCL's
// own log goes to the same terminal, it tears rows to pieces; they are put
// together again, and pieces that belong to nothing are counted.
package nccltests

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
	"busbar.dev/result"
)

// Format names the tool in facts and messages.
const Format = "nccl-tests"

// Limits on what one text may hold.
const (
	maxTables = 20000
	maxRanks  = 1 << 20 // of one table
	maxRows   = 1 << 20 // of all tables

	maxWarnings = 20
)

// Rank is a line "#  Rank  0 Group  0 Pid 2461830 on node01 device 0 [0000:1b:00] NVIDIA H100".
type Rank struct {
	Rank   int
	Host   string
	Device int         // CUDA ordinal in its process
	Bus    string      // as printed: "0x1b" before 2.14.1, then "0000:1b:00"
	PCI    cluster.PCI // only where the tool printed the whole address
	Model  string
}

// Table is the output of one run.
type Table struct {
	Line int // where it begins
	// Op is the collective, coll.None when nothing says it; OpFrom is who says it: "header",
	// "command" or "columns".
	Op      coll.Kind
	OpFrom  string
	Test    string // the program as printed: all_reduce_perf_mpi
	Version string // of nccl-tests
	Library string // NCCL's version code, 22907, or its release as its log names it
	GPUs    int    // a thread, as the line "# nThread 1 nGpus 8 …" says; -1 without one
	Iters   int    // as that line says; 0 unknown
	Ranks   []Rank
	// Sweeps are the rows: one sweep, and several where the run took several types, reductions
	// or roots. A row without a time is a point without one.
	Sweeps []*result.Sweep

	header columns
	delta  bool  // the last column is "error", not "#wrong"
	ended  bool  // its verdict or its average came
	roots  []int // of the sweeps; -1 where the collective has none
	world  int   // ranks, where none is listed
	serial int   // GPUs a thread, as a command line before the table says

	layout shape  // as a row, or a command line before the table says
	algo   string // that was forced, as a row says
	gpu    string // as the text before the table says

	form *form // of who prints it; nil: nccl-tests
}

// shape is how many nodes with how many GPUs each; of none where nothing says it.
type shape struct{ nodes, per int }

func (s shape) ranks() int { return s.nodes * s.per }

// Output is everything that the tool printed.
type Output struct {
	Tables   []Table
	Failure  string // the first line in which the tool reports that it failed
	Unused   int    // pieces of rows that could not be used
	Untimed  int    // halves of rows whose time is no number above 0
	Warnings []cluster.Warning
}

// Match reports whether a text holds output of the tool.
func Match(data []byte) bool {
	if i := bytes.Index(data, []byte("nThread ")); i >= 0 &&
		lines.Has(data[i:min(len(data), i+80)], " nGpus ") {
		return true
	}
	if i := bytes.Index(data, []byte("algbw   busbw")); i >= 0 &&
		lines.Has(data[i:min(len(data), i+300)], "(elements)") {
		return true
	}
	has := func(word string, head *lazyre.Regexp) bool {
		return lines.Find(data, word, func(text string) bool { return head.MatchString(heading(text)) })
	}
	return has("Rank ", rankLine) || slices.ContainsFunc(forms, func(f form) bool { return has(f.word, f.head) })
}

// Read turns the output into a fragment: hosts with the GPUs that took part.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	out, err := ReadOutput(name, r)
	if err != nil {
		return nil, err
	}
	f := out.Fragment(name)
	if len(f.Hosts) == 0 {
		return nil,
			fmt.Errorf("%s: tables of %s without lines such as \"# Rank 0 … on node1 device 0 …\": nothing says what "+
				"they ran on; busbar doctor judges the rates", name, Format)
	}
	return f, nil
}

// ReadOutput reads the text as it is.
func ReadOutput(name string, r io.Reader) (*Output, error) {
	p := parser{name: name, out: &Output{}, hosts: map[string]bool{}}
	err := lines.Each(name, r, func(num int, text string) error {
		p.line(num, text)
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.endRow()
	p.tell(p.untimed, "without a time that is a number above 0")
	p.tell(p.clashes, "of another unit than the heading says, in time or in rate")
	if n := p.out.Unused; n > 0 {
		p.warnf(0, "%d pieces of torn rows could not be used; let NCCL log to a file (NCCL_DEBUG_FILE)", n)
	}
	p.out.nameOps()
	for i := range p.out.Tables {
		p.out.Tables[i].describe(name)
	}
	if len(p.out.Tables) == 0 && p.out.Failure == "" {
		return nil, fmt.Errorf("%s: no output of %s; expected \"# nThread … nGpus …\" or a table headed size, count, "+
			"type, time, algbw, busbw; save what the program printed", name, Format)
	}
	return p.out, nil
}

// NRanks is the number of ranks of the run: one more than the highest rank
// listed, as a cut text may lack some lines; 0 when nothing says it.
func (t *Table) NRanks() int {
	n := 0
	for i := range t.Ranks {
		n = max(n, t.Ranks[i].Rank+1)
	}
	return cmp.Or(n, t.world)
}
