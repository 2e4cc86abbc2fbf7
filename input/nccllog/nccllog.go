// Package nccllog reads what NCCL and RCCL print under NCCL_DEBUG: who took part,
// which networks and devices were used, rings, trees, connections, tuning tables,
// choices, settings and warnings.
//
// Every known line is a row of one table (message.go) that names the releases it
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
	someSetups     = 1 << 16 // of a Reader without plans, and hosts
	someConns      = 1 << 12 // likewise
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
		return nil, fmt.Errorf("%s: no record of NCCL; expected lines such as \"host:12:34 [0] NCCL INFO …\"; run with "+
			"NCCL_DEBUG=INFO", strings.Join(names, ", "))
	}
	return r.Log(), nil
}

// Reader takes in the logs of one job one after another, for those who do not
// know them all beforehand.
type Reader struct{ c *collector }

// NewReader makes a Reader.
func NewReader() *Reader { return &Reader{newCollector()} }

// NewSetupReader makes a Reader for those who ask which processes set up which
// communicators, and not over which rings, trees and paths: it keeps neither graphs,
// tables and calls nor more than the first connections, so that little memory is enough
// for the longest log.
func NewSetupReader() *Reader {
	r := NewReader()
	r.c.brief, r.c.maxRanks, r.c.maxConns, r.c.maxHosts = true, someSetups, someConns, someSetups
	return r
}

// Add reads one source to its end.
func (r *Reader) Add(name string, in io.Reader) error { return r.c.read(Source{name, in}) }

// Begin starts a source whose lines somebody else scans and gives to Take.
func (r *Reader) Begin(name string) { r.c.begin(name) }

// Take takes in one line of the source, and corrects the names of hosts in its records
// as far as lines before tell.
func (r *Reader) Take(l *Line) { r.c.line(l) }

// Empty reports that no record of NCCL has come yet.
func (r *Reader) Empty() bool { return r.c.log.Records == 0 && len(r.c.versions.list) == 0 }

// Log is what all sources say. The Reader is of no use after it.
func (r *Reader) Log() *Log { return r.c.finish() }

// read takes in one source.
func (c *collector) read(s Source) error {
	in := lines.NewAhead[[]Line](s.R)
	c.begin(s.Name)
	for list := range in.All(func() func(*lines.Chunk, *[]Line) {
		return func(chunk *lines.Chunk, out *[]Line) { *out = Parse((*out)[:0], s.Name, chunk) }
	}) {
		for i := range *list {
			c.line(&(*list)[i])
		}
	}
	return in.Err(s.Name)
}

// begin starts a source.
func (c *collector) begin(name string) {
	c.source = name
	c.log.Sources = append(c.log.Sources, name)
}

// line takes in one line.
func (c *collector) line(l *Line) {
	if l.First {
		c.log.Lines++
	}
	c.version(l.Num, l.Text)
	if len(l.Records) == 0 {
		c.plain(l.Text)
		return
	}
	if level := l.Records[0].Level; l.First && level != "CALL" && level != "TRACE" {
		c.log.NCCLLines++
	}
	for i := range l.Records {
		c.record(&l.Records[i])
	}
}
