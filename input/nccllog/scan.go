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

// Lines yields the lines, each until the next one. They are scanned ahead in another
// goroutine, which has ended when Lines has.
func (s *Scanner) Lines() iter.Seq[*Line] {
	return func(yield func(*Line) bool) {
		full, free := make(chan []Line), make(chan []Line, 2)
		free <- make([]Line, 0, batchLines)
		free <- make([]Line, 0, batchLines)
		go func() {
			defer close(full)
			for batch := range free {
				if batch = s.fill(batch); len(batch) == 0 {
					return
				}
				full <- batch
			}
		}()
		for batch := range full {
			for i := range batch {
				if !yield(&batch[i]) {
					close(free)
					for range full { // a batch that was under way
					}
					return
				}
			}
			free <- batch
		}
	}
}

// fill scans the next lines into a batch, whose old ones are overwritten.
func (s *Scanner) fill(batch []Line) []Line {
	batch = batch[:0]
	for size := 0; len(batch) < batchLines && size < batchBytes && s.in.Next(); {
		batch = batch[:len(batch)+1]
		l, num := &batch[len(batch)-1], s.in.Num()
		l.First, l.Num, l.Text = num != s.num, num, unwrap(s.in.Text())
		l.Records = appendRecords(l.Records[:0], l.Text, Pos{s.name, num})
		s.num = num
		size += len(l.Text)
	}
	return batch
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
