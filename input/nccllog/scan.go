package nccllog

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"

	"busbar.dev/internal/lines"
)

// Line is a line of a text with the records on it. A line that is too long, or
// that carriage returns divide, comes in pieces with the same number.
type Line struct {
	Num     int
	First   bool     // not a later piece of a line
	Text    string   // without terminal codes and a container's wrapping
	Records []Record // more than one where newlines were lost
}

// Scanner reads a text once, line by line, and finds and parses the records of
// NCCL on each. Every reader of such logs takes its lines.
type Scanner struct {
	name string
	in   *lines.Reader
	num  int // of the last line
}

// NewScanner makes a Scanner; name stands in the records' places.
func NewScanner(name string, in io.Reader) *Scanner {
	return &Scanner{name: name, in: lines.New(in)}
}

// Bounds on a batch of lines that are scanned ahead.
const (
	batchLines = 256
	batchBytes = 1 << 18
)

// batch is lines that are scanned ahead.
type batch struct {
	lines  []Line
	parsed chan struct{} // its records are there
}

// parsers is how many batches are parsed concurrently.
const parsers = 2

// Lines yields the lines, each until the next one. They are read and parsed ahead in
// other goroutines, which have ended when Lines has.
func (s *Scanner) Lines() iter.Seq[*Line] {
	return func(yield func(*Line) bool) {
		const all = parsers + 2
		free, read, todo := make(chan *batch, all), make(chan *batch, all), make(chan *batch, all)
		for range all {
			free <- &batch{make([]Line, 0, batchLines), make(chan struct{}, 1)}
		}
		go func() {
			defer close(read)
			defer close(todo)
			for b := range free {
				if s.fill(b); len(b.lines) == 0 {
					return
				}
				read <- b
				todo <- b
			}
		}()
		for range parsers {
			go func() {
				for b := range todo {
					for i := range b.lines {
						l := &b.lines[i]
						l.Text = unwrap(l.Text)
						l.Records = appendRecords(l.Records[:0], l.Text, Pos{s.name, l.Num})
					}
					b.parsed <- struct{}{}
				}
			}()
		}
		for b := range read {
			<-b.parsed
			for i := range b.lines {
				if !yield(&b.lines[i]) {
					close(free)
					for b := range read { // those under way
						<-b.parsed
					}
					return
				}
			}
			free <- b
		}
	}
}

// fill reads the next lines into a batch, whose old ones are overwritten.
func (s *Scanner) fill(b *batch) {
	b.lines = b.lines[:0]
	for size := 0; len(b.lines) < batchLines && size < batchBytes && s.in.Next(); {
		b.lines = b.lines[:len(b.lines)+1]
		l, num := &b.lines[len(b.lines)-1], s.in.Num()
		l.First, l.Num, l.Text = num != s.num, num, s.in.Text()
		s.num = num
		size += len(l.Text)
	}
}

// Bytes is how much has been read, once Lines is over.
func (s *Scanner) Bytes() int64 { return s.in.Bytes() }

// Err is the first error of reading, with its place, once Lines is over.
func (s *Scanner) Err() error {
	if err := s.in.Err(); err != nil {
		return fmt.Errorf("%s:%d: %w", s.name, s.num, err)
	}
	return nil
}

// ParseLine makes a Line of a text from elsewhere, such as one within another format.
func ParseLine(text string, at Pos) Line {
	return Line{Num: at.Line, First: true, Text: text, Records: appendRecords(nil, text, at)}
}

// appendRecords adds the records of a line, with what they say.
func appendRecords(list []Record, text string, at Pos) []Record {
	if !strings.Contains(text, "NCCL ") {
		return list
	}
	for rec := range records(lines.Bare(text)) {
		rec.At = at
		if rec.Level == "INFO" {
			rec.Message = parse(&rec)
		}
		list = append(list, rec)
	}
	return list
}

// unwrap gives the text that a container's runtime wrapped as JSON, one line an
// object: {"log":"…\n","stream":"stdout","time":"…"}.
func unwrap(text string) string {
	if !strings.HasPrefix(text, `{"log":"`) {
		return text
	}
	var line struct {
		Log string `json:"log"`
	}
	if json.Unmarshal([]byte(text), &line) != nil {
		return text
	}
	return lines.StripANSI(strings.TrimRight(line.Log, "\r\n"))
}
