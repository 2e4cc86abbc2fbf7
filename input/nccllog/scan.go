package nccllog

import (
	"encoding/json"
	"slices"
	"strings"

	"busbar.dev/internal/alike"
	"busbar.dev/internal/lines"
)

// Line is a line of a text with the records on it. A line that is too long, or
// that carriage returns divide, comes in pieces with the same number.
type Line struct {
	Num     int
	Text    string   // without terminal codes and a container's wrapping
	Records []Record // more than one where newlines were lost
}

// Parser reads lines. Ranks print the same messages, and ones that differ in nothing but digits.
type Parser struct {
	texts alike.Memo[any]
	forms alike.Memo[*shape]
}

// Parse appends the lines of a chunk, with the records of NCCL on each, to a list whose old lines are overwritten, and
// with them the calls and connections in their messages. Every reader of such logs takes its lines.
func (p *Parser) Parse(list []Line, source string, c *lines.Chunk) []Line {
	for c.Next() {
		if len(list) == cap(list) {
			list = slices.Grow(list, 64)
		}
		list = list[:len(list)+1]
		l := &list[len(list)-1]
		l.Num, l.Text = c.Num(), unwrap(c.Text())
		had := len(l.Records)
		l.Records = p.appendRecords(l.Records[:0], l.Text, Pos{source, l.Num})
		clear(l.Records[len(l.Records):max(had, len(l.Records))])
	}
	for rest := list[len(list):cap(list)]; len(rest) > 0 && rest[0].Num > 0; rest = rest[1:] {
		clear(rest[0].Records) // what is not overwritten would keep the chunks alive that its texts are parts of
		rest[0] = Line{Records: rest[0].Records[:0]}
	}
	return list
}

// Body is the line without who printed it, where it is one whole record: what ranks
// have in common. Of any other line it is all of it.
func (l *Line) Body() string {
	if len(l.Records) == 1 && l.Records[0].Host != "" && !l.Records[0].glued {
		return l.Text[len(l.Text)-l.Records[0].body:]
	}
	return l.Text
}

// ParseLine makes a Line of a text from elsewhere, such as one within another format.
func (p *Parser) ParseLine(text string, at Pos) Line {
	return Line{Num: at.Line, Text: text, Records: p.appendRecords(nil, text, at)}
}

// appendRecords adds the records of a line, with what they say.
func (p *Parser) appendRecords(list []Record, text string, at Pos) []Record {
	if !strings.Contains(text, "NCCL ") {
		return list
	}
	begin := len(list)
	list = records(list, lines.Bare(text), at)
	for i := range list[begin:] {
		r := &list[begin+i]
		if r.Level == "INFO" {
			r.Message = p.parse(r)
		}
		r.spare = nil
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
