package ras

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/input/internal/num"
	"busbar.dev/internal/lazyre"
)

var (
	commLine    = lazyre.New(`^#(?P<group>\d+)-\d+ \((?P<hash>[0-9a-f]{1,16})\) (?P<kind>[A-Z]+)`)
	processLine = lazyre.New(`^Process (?P<pid>\d+) on node (?P<host>\S+)`)
	summaryLine = lazyre.New(`^\d+ +(?:\d+ +\d+ +)?(?P<processes>\d+) +\d+$`)
	rankLine    = lazyre.New(
		`^Rank (?P<rank>\d+)(?: has status \w+| reported (?P<async>.+?)| has launched up to operation (?P<count>\d+)` +
			`| has (?P<none>not) launched any operations)?` +
			`(?: -- (?:GPUs? (?P<gpu>\d+)[\d,\s]* managed by process (?P<pid>\d+) on node (?P<host>\S+)|\[.*\]))?$`)
	ranksLine = lazyre.New(
		`^(?P<ranks>\d+) ranks (?:have status \w+|reported (?P<async>.+)|have launched up to operation (?P<count>\d+)` +
			`|have (?P<none>not) launched any operations)$`)
	countsLine  = lazyre.New(`^Communicator ranks have different (?:(?P<op>\w+) )?operation counts`)
	missingLine = lazyre.New(`^The missing ranks?: (?P<ranks>[\d, ]+)$`)
	peerGone    = lazyre.New(`^Remote process error|^remote process exited`)
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
	if (t.sizes == nil || !t.ended) && len(r.Comms)+len(r.Missing) == 0 {
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
	list   bool  // processes of the job that are missing follow
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
	case word == "INCOMPLETE" || word == "DEAD" || word == "TIMEOUT":
		t.list, t.comm = true, nil
	case word == "Warnings":
		t.ended = true
	case strings.HasPrefix(word, "#") && commLine.MatchString(word):
		return t.header(commLine.Groups(word))
	case strings.HasPrefix(word, "Group") && strings.Contains(word, "Comms"):
		t.table, t.sizes = true, map[int]int{}
	case strings.HasPrefix(above, "(total)") && t.report.Processes == 0:
		t.report.Processes = min(num.Int(summaryLine.Groups(word)["processes"]), maxRanks)
	default:
		t.row(word)
		t.detail(word)
	}
	return nil
}

// row reads a row of the table of communicators.
func (t *textReader) row(word string) {
	f := strings.Fields(word)
	if len(f) != 8 || !t.table {
		t.table = t.table && (word != "" || len(t.sizes) == 0)
		return
	}
	group, err := strconv.Atoi(f[0])
	size, err2 := strconv.Atoi(f[4])
	if err == nil && err2 == nil && len(t.sizes) < maxComms {
		t.sizes[group] = min(size, maxRanks)
	}
}

// header begins the details of a communicator.
func (t *textReader) header(g map[string]string) error {
	hash, err := strconv.ParseUint(g["hash"], 16, 64)
	if err != nil {
		return fmt.Errorf("communicator %s: %w", g["hash"], err)
	}
	i, ok := t.comms[hash]
	if !ok {
		if len(t.report.Comms) >= maxComms {
			return fmt.Errorf("more than %d communicators", maxComms)
		}
		i = len(t.report.Comms)
		t.comms[hash] = i
		t.report.Comms = append(t.report.Comms, Comm{Hash: hash, Size: t.sizes[num.Int(g["group"])]})
	}
	t.comm, t.kind, t.list, t.op, t.async = &t.report.Comms[i], g["kind"], false, "", ""
	return nil
}

// detail reads a line below a heading.
func (t *textReader) detail(word string) {
	if g := processLine.Groups(word); g != nil && t.list {
		t.report.Missing = append(t.report.Missing, Process{Host: g["host"], PID: num.Int(g["pid"])})
	}
	if t.comm == nil || len(t.comm.Ranks)+len(t.comm.Missing) > maxRanks {
		return
	}
	if g := countsLine.Groups(word); g != nil {
		t.op, t.kind = g["op"], "COUNTS"
	} else if strings.HasPrefix(word, "Communicator ranks have different status") {
		t.kind = "STATUS"
	} else if g := missingLine.Groups(word); g != nil {
		for part := range strings.SplitSeq(g["ranks"], ",") {
			if n, err := strconv.Atoi(strings.TrimSpace(part)); err == nil {
				t.comm.Missing = append(t.comm.Missing, Rank{Rank: n})
			}
		}
	} else if g := ranksLine.Groups(word); g != nil { // those that follow without a word of their own are of them
		t.async = g["async"]
		t.lag(g, num.Int(g["ranks"]), nil)
	} else if g := rankLine.Groups(word); g != nil {
		t.one(g)
	}
}

// lag notes how far ranks are, where a line says so.
func (t *textReader) lag(g map[string]string, n int, ranks []Rank) (says bool) {
	if says = g["count"]+g["none"] != ""; says {
		count, _ := strconv.ParseUint(g["count"], 10, 64)
		t.comm.Lags = append(t.comm.Lags, Lag{Op: t.op, Count: count, N: n, Ranks: ranks})
	}
	return says
}

// one reads a line about a single rank.
func (t *textReader) one(g map[string]string) {
	async := g["async"]
	if async == "" && t.kind == "ERROR" {
		async = t.async
	}
	x := Rank{
		Process: Process{g["host"], num.Int(g["pid"])}, Rank: num.Int(g["rank"]), GPU: -1,
		PeerGone: peerGone.MatchString(async),
	}
	if g["gpu"] != "" {
		x.GPU = num.Int(g["gpu"])
	}
	switch {
	case t.lag(g, 1, []Rank{x}):
	case t.kind == "INCOMPLETE":
		t.comm.Missing = append(t.comm.Missing, x)
		return
	case t.kind == "COUNTS" && len(t.comm.Lags) > 0:
		l := &t.comm.Lags[len(t.comm.Lags)-1]
		l.Ranks = append(l.Ranks, x)
	}
	t.comm.Ranks = append(t.comm.Ranks, x)
}
