package nccllog

import (
	"encoding/json"
	"fmt"
	"io"
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
	line Line
}

// NewScanner makes a Scanner; name stands in the records' places.
func NewScanner(name string, in io.Reader) *Scanner {
	return &Scanner{name: name, in: lines.New(in)}
}

// Scan moves to the next line and reports whether there is one.
func (s *Scanner) Scan() bool {
	if !s.in.Next() {
		return false
	}
	l, num := &s.line, s.in.Num()
	l.First, l.Num, l.Text = num != l.Num, num, unwrap(s.in.Text())
	l.Records = appendRecords(l.Records[:0], l.Text, Pos{s.name, num})
	return true
}

// Line is the line at hand. It holds until the next Scan.
func (s *Scanner) Line() *Line { return &s.line }

// Bytes is how much has been read.
func (s *Scanner) Bytes() int64 { return s.in.Bytes() }

// Err is the first error of reading, with its place.
func (s *Scanner) Err() error {
	if err := s.in.Err(); err != nil {
		return fmt.Errorf("%s:%d: %w", s.name, s.line.Num, err)
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
