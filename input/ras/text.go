package ras

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/internal/lazyre"
)

var (
	commLine    = lazyre.New(`^#(\d+)-(\d+) \(([0-9a-f]{1,16})\) ([A-Z]+)`)
	processLine = lazyre.New(`^Process (\d+) on node (\S+)`)
	rankLine    = lazyre.New(
		`^Rank (\d+)(?: has status (\w+)| reported (.+?)| has launched up to operation (\d+)| has (not) launched any operations)?(?: -- (?:GPUs? ([\d,\s]+) managed by process (\d+) on node (\S+)|\[.*\]))?$`)
	ranksLine = lazyre.New(
		`^(\d+) ranks (?:have status (\w+)|reported (.+)|have launched up to operation (\d+)|have (not) launched any operations)$`)
	countsLine  = lazyre.New(`^Communicator ranks have different (?:(\w+) )?operation counts`)
	missingLine = lazyre.New(`^The missing ranks?: ([\d, ]+)$`)
)

// readText reads the text of STATUS and VERBOSE STATUS.
func readText(data []byte) (*Report, error) {
	t := &textReader{report: &Report{}, comms: map[uint64]int{}}
	for line := range bytes.Lines(data) {
		if len(line) > 4096 {
			line = line[:4096]
		}
		if err := t.line(strings.TrimRight(string(line), " \r\n")); err != nil {
			return nil, err
		}
	}
	r := t.report
	if (t.sizes == nil || !t.ended) && len(r.Comms)+len(r.Missing)+len(r.Dead) == 0 {
		return nil, errors.New("the answer is cut off: expected a table of communicators and, behind it, errors and " +
			"warnings; ask again")
	}
	return r, nil
}

// textReader remembers which part of the text it is in.
type textReader struct {
	report *Report
	comms  map[uint64]int
	comm   *Comm // whose details follow
	list   string
	op     string
	kind   string // of the details: INCOMPLETE, ERROR, MISMATCH
	async  string // the error that the next ranks have
	sizes  map[int]int
	table  bool
	ended  bool // the last heading was there
	above  string
}

func (t *textReader) line(line string) error {
	word := strings.TrimSpace(line)
	above := t.above
	t.above = word
	switch {
	case strings.HasPrefix(word, "NCCL version "):
		if f := strings.Fields(word); len(f) > 2 {
			t.report.Version = f[2]
		}
		return nil
	case word == "INCOMPLETE" || word == "DEAD" || word == "TIMEOUT":
		t.list, t.comm = word, nil
		return nil
	case word == "Warnings":
		t.ended = true
		return nil
	case strings.HasPrefix(word, "#") && commLine.MatchString(word):
		return t.header(commLine.FindStringSubmatch(word))
	case strings.HasPrefix(word, "Group") && strings.Contains(word, "Comms"):
		t.table, t.sizes = true, map[int]int{}
		return nil
	case strings.HasPrefix(above, "(total)") && t.report.Nodes == 0:
		t.summary(word)
		return nil
	}
	if t.table {
		t.row(word)
	}
	t.detail(word)
	return nil
}

// summary reads the row below the heads of the job's table: nodes first, all processes fourth or second.
func (t *textReader) summary(word string) {
	f := strings.Fields(word)
	if len(f) != 5 && len(f) != 3 {
		return
	}
	t.report.Nodes, _ = strconv.Atoi(f[0])
	t.report.Processes, _ = strconv.Atoi(f[len(f)-2])
	t.report.Processes = min(t.report.Processes, maxRanks)
}

// row reads a row of the table of communicators.
func (t *textReader) row(word string) {
	f := strings.Fields(word)
	if len(f) != 8 {
		if word == "" && len(t.sizes) > 0 {
			t.table = false
		}
		return
	}
	group, err := strconv.Atoi(f[0])
	size, err2 := strconv.Atoi(f[4])
	if err == nil && err2 == nil && len(t.sizes) < maxComms {
		t.sizes[group] = min(size, maxRanks)
	}
}

// header begins the details of a communicator.
func (t *textReader) header(m []string) error {
	hash, err := strconv.ParseUint(m[3], 16, 64)
	if err != nil {
		return fmt.Errorf("communicator %s: %w", m[3], err)
	}
	group, _ := strconv.Atoi(m[1])
	i, ok := t.comms[hash]
	if !ok {
		if len(t.report.Comms) >= maxComms {
			return fmt.Errorf("more than %d communicators", maxComms)
		}
		i = len(t.report.Comms)
		t.comms[hash] = i
		t.report.Comms = append(t.report.Comms, Comm{Hash: hash, Size: t.sizes[group]})
	}
	t.comm, t.kind, t.list, t.op, t.async = &t.report.Comms[i], m[4], "", "", ""
	return nil
}

// detail reads a line below a heading.
func (t *textReader) detail(word string) {
	if m := processLine.FindStringSubmatch(word); m != nil && t.list != "" {
		pid, _ := strconv.Atoi(m[1])
		p := Process{Host: m[2], PID: pid}
		if t.list == "DEAD" {
			t.report.Dead = append(t.report.Dead, p)
		} else {
			t.report.Missing = append(t.report.Missing, p)
		}
		return
	}
	if t.comm == nil || len(t.comm.Ranks)+len(t.comm.Missing) > maxRanks {
		return
	}
	if m := countsLine.FindStringSubmatch(word); m != nil {
		t.op, t.kind = m[1], "COUNTS"
		return
	}
	if strings.HasPrefix(word, "Communicator ranks have different status") {
		t.kind = "STATUS"
		return
	}
	if m := missingLine.FindStringSubmatch(word); m != nil {
		for part := range strings.SplitSeq(m[1], ",") {
			if n, err := strconv.Atoi(strings.TrimSpace(part)); err == nil {
				t.comm.Missing = append(t.comm.Missing, Rank{Rank: n})
			}
		}
		return
	}
	if m := ranksLine.FindStringSubmatch(word); m != nil {
		t.several(m)
		return
	}
	if m := rankLine.FindStringSubmatch(word); m != nil {
		t.one(m)
	}
}

// several reads a line about ranks together; those that follow without a word of their own are of them.
func (t *textReader) several(m []string) {
	n, _ := strconv.Atoi(m[1])
	t.async = m[3]
	if m[4] != "" || m[5] != "" {
		count, _ := strconv.ParseUint(m[4], 10, 64)
		t.comm.Lags = append(t.comm.Lags, Lag{Op: t.op, Count: count, N: n})
	}
}

// one reads a line about a single rank.
func (t *textReader) one(m []string) {
	var x Rank
	x.Rank, _ = strconv.Atoi(m[1])
	x.Async = m[3]
	x.GPU = -1
	if m[7] != "" {
		x.PID, _ = strconv.Atoi(m[7])
		x.Host = m[8]
		gpu, _, _ := strings.Cut(m[6], ",")
		x.GPU, _ = strconv.Atoi(strings.TrimSpace(gpu))
	}
	own := m[4] != "" || m[5] != ""
	switch {
	case own:
		count, _ := strconv.ParseUint(m[4], 10, 64)
		t.comm.Lags = append(t.comm.Lags, Lag{Op: t.op, Count: count, N: 1, Ranks: []Rank{x}})
	case t.kind == "INCOMPLETE":
		t.comm.Missing = append(t.comm.Missing, x)
		return
	case t.kind == "ERROR" && x.Async == "":
		x.Async = t.async
	case t.kind == "COUNTS" && len(t.comm.Lags) > 0:
		l := &t.comm.Lags[len(t.comm.Lags)-1]
		l.Ranks = append(l.Ranks, x)
	}
	t.comm.Ranks = append(t.comm.Ranks, x)
}
