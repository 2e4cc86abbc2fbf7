// Package nccllog reads what NCCL and RCCL print under NCCL_DEBUG: who took part,
// which networks and devices were used, rings, trees, connections, tuning tables,
// choices, settings and warnings.
//
// Every known line is a row of one table (rules.go) that names the releases it
// was seen in, from 2.4 to 2.30. Records are found anywhere: behind timestamps
// and launchers' labels, several on one line where newlines were lost, in the
// middle of a line that two processes wrote. What is not understood is counted
// and sampled by shape, so that a new release shows.
//
// The text is read once and not kept. A log of any length becomes aggregates and
// bounded samples; Log.Dropped says where a bound cut. Each figure carries the
// place of the line that gave it.
package nccllog

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lines"
)

// Format names the source in facts and messages.
const Format = "NCCL log"

// Bounds on what is kept.
const (
	maxWarns       = 10000
	maxShapes      = 1000    // of warnings, of lines not understood
	maxNotes       = 2000    // lines kept by their text
	maxRanks       = 1 << 17 // set-ups of a communicator by one rank
	maxConnections = 1 << 18
	maxChoices     = 10000
	maxEnv         = 10000
	maxNICs        = 1 << 18
	maxHosts       = 1 << 17
	maxGraphRanks  = 4096    // ranks whose graphs are kept
	maxSystems     = 256     // ranks whose system trees are kept
	maxChannels    = 1024    // rings, trees or graph lines of one rank
	maxTextLen     = 2000    // bytes of a warning or note
	maxTorn        = 256     // messages that wait for their rest
	maxMends       = 1 << 19 // attempts to put such together
)

// Pos is a place in a source.
type Pos struct {
	Source string
	Line   int // 0: not seen
}

func (p Pos) String() string { return fmt.Sprintf("%s:%d", p.Source, p.Line) }

// Source is a text to read.
type Source struct {
	Name string
	R    io.Reader
}

// Match reports whether a text holds records of NCCL.
func Match(data []byte) bool {
	for _, level := range []string{"NCCL INFO ", "NCCL WARN "} {
		rest := data
		for range 100 { // prose may speak of these words before a record comes
			i := bytes.Index(rest, []byte(level))
			if i < 0 {
				break
			}
			if i == 0 || rest[i-1] == ' ' || rest[i-1] == '\n' {
				return true
			}
			rest = rest[i+len(level):]
		}
	}
	return false
}

// Read turns a log into a fragment: hosts with the GPUs and NICs it names.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	l, err := ReadLog(name, r)
	if err != nil {
		return nil, err
	}
	return l.Fragment(), nil
}

// ReadLog reads one log.
func ReadLog(name string, r io.Reader) (*Log, error) {
	return ReadLogs(Source{name, r})
}

// ReadLogs reads the logs of one job, as NCCL_DEBUG_FILE writes one a process.
func ReadLogs(sources ...Source) (*Log, error) {
	r := NewReader()
	var names []string
	for _, s := range sources {
		names = append(names, s.Name)
		if err := r.Add(s.Name, s.R); err != nil {
			return nil, err
		}
	}
	if r.Empty() {
		return nil, fmt.Errorf("%s: no record of NCCL; expected lines such as \"host:12:34 [0] NCCL INFO …\"; run with NCCL_DEBUG=INFO", strings.Join(names, ", "))
	}
	return r.Log(), nil
}

// Reader takes in the logs of one job one after another, for those who do not
// know them all beforehand.
type Reader struct{ c *collector }

// NewReader makes a Reader.
func NewReader() *Reader { return &Reader{newCollector()} }

// Add reads one source to its end.
func (r *Reader) Add(name string, in io.Reader) error { return r.c.read(Source{name, in}) }

// Empty reports that no record of NCCL has come yet.
func (r *Reader) Empty() bool { return r.c.log.Records == 0 && len(r.c.versions.list) == 0 }

// Log is what all sources say. The Reader is of no use after it.
func (r *Reader) Log() *Log { return r.c.finish() }

// read takes in one source.
func (c *collector) read(s Source) error {
	c.source = s.Name
	c.follow = nil
	c.log.Sources = append(c.log.Sources, s.Name)
	in := lines.New(s.R)
	last := 0
	for in.Next() {
		text := in.Text()
		c.line(in.Num(), text, in.Num() != last)
		last = in.Num()
	}
	c.log.Lines += in.Num()
	if err := in.Err(); err != nil {
		return fmt.Errorf("%s:%d: %w", s.Name, in.Num(), err)
	}
	return nil
}

// line takes in one line, or a piece of one (first is false for the pieces after
// the first).
func (c *collector) line(num int, text string, first bool) {
	if !strings.Contains(text, "CCL ") {
		c.plain(num, text)
		return
	}
	c.version(num, text)
	bare := lines.Bare(text)
	found := false
	for rec := range records(bare) {
		rec.At = Pos{c.source, num}
		if !found && first && rec.Level != "CALL" && rec.Level != "TRACE" {
			c.log.NCCLLines++
		}
		found = true
		c.record(&rec)
	}
	if !found {
		c.plain(num, text)
	}
}
