// Package nccllog reads what NCCL and RCCL print under NCCL_DEBUG: who took part,
// which devices of networks were used, rings, trees and connections.
//
// Every known line is a row of one table (message.go) that names the releases it
// was seen in, from 2.5 to 2.30. Records are found anywhere: behind timestamps
// and launchers' labels, several on one line where newlines were lost, in the
// middle of a line that two processes wrote. What is not understood is counted
// and sampled by shape, so that a new release shows.
//
// The text is read once and not kept. A log of any length becomes aggregates and
// bounded samples; Log.Dropped says where a bound cut.
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
	maxShapes      = 1000    // of lines not understood
	maxVersions    = 100     // texts that name a release
	maxRanks       = 1 << 17 // set-ups of a communicator by one rank
	maxConnections = 1 << 18
	someSetups     = 1 << 16 // of a Reader without plans, and hosts
	someConns      = 1 << 12 // likewise
	maxNICs        = 1 << 18
	maxHosts       = 1 << 17
	maxChannels    = 1024 // rings or trees of one rank
)

// Pos is a place in a source.
type Pos struct {
	Source string
	Line   int // 0: not seen
}

// Match reports whether a text holds records of NCCL.
func Match(data []byte) bool {
	for _, mark := range []string{" NCCL INFO ", "\nNCCL INFO ", " NCCL WARN ", "\nNCCL WARN "} {
		if bytes.HasPrefix(data, []byte(mark[1:])) || lines.Has(data, mark) {
			return true
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
func ReadLog(name string, in io.Reader) (*Log, error) {
	r := NewReader()
	if err := r.Add(name, in); err != nil {
		return nil, err
	}
	if r.Empty() {
		return nil, fmt.Errorf("%s: no record of NCCL; expected lines such as \"host:12:34 [0] NCCL INFO …\"; run with "+
			"NCCL_DEBUG=INFO", name)
	}
	return r.Log(), nil
}

// Add reads one source to its end.
func (c *Reader) Add(name string, text io.Reader) error {
	c.Begin(name)
	return Scan(name, text, c.Take)
}

// Scan hands the lines of a text to take, in their order, with the records of NCCL on each.
func Scan(name string, text io.Reader, take func(*Line)) error {
	in := lines.NewAhead[[]Line](text)
	for list := range in.All(func() func(*lines.Chunk, *[]Line) {
		var p Parser
		return func(chunk *lines.Chunk, out *[]Line) { *out = p.Parse((*out)[:0], name, chunk) }
	}) {
		for i := range *list {
			take(&(*list)[i])
		}
	}
	return in.Err(name)
}

// Begin starts a source whose lines somebody else scans and gives to Take.
func (c *Reader) Begin(name string) {
	c.source = name
	c.log.Sources = append(c.log.Sources, name)
}

// Take takes in one line of the source, and corrects the names of hosts in its records
// as far as lines before tell.
func (c *Reader) Take(l *Line) {
	c.lines++
	c.version(l.Num, l.Text)
	if len(l.Records) == 0 && strings.HasSuffix(l.Text, InitComplete) {
		if m := tornEnd.FindStringSubmatch(l.Text); m != nil && len(c.ends) < 64 && len(c.ends[m[1]]) < maxChannels {
			c.ends[strings.Clone(m[1])] = append(c.ends[m[1]], Pos{c.source, l.Num})
		}
	}
	for i := range l.Records {
		c.record(&l.Records[i])
	}
}

// Empty reports that no record of NCCL has come yet.
func (c *Reader) Empty() bool { return c.log.Records == 0 && len(c.versions.list) == 0 }
