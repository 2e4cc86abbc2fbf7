package evidence

import (
	"regexp"
	"slices"
	"strings"

	"busbar.dev/input/joblog"
	"busbar.dev/input/nccllog"
	"busbar.dev/internal/alike"
	"busbar.dev/internal/keywords"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
)

// hit is what a recogniser sees in a line.
type hit struct {
	kind    Kind
	args    []string
	rank    int // that the line names; -1 none
	special int

	// Of settings, whose names and values are args by turns: one that a manifest
	// names, and a line that may hold its value.
	named, value string
	valued       bool
}

// sight is what one line shows.
type sight struct {
	hits  []hit
	call  bool
	form  *joblog.Form // of the line; nil: not known
	lines bool         // a pattern of the user may match
	rank  int          // that a launcher wrote in front; -1 none
	parts []part
}

// part is a text within an object that stands on one line.
type part struct {
	line nccllog.Line
	sight
}

// batch is a chunk of a source with all that depends on nothing but its lines.
type batch struct {
	lines  []nccllog.Line
	sights []sight
}

// looker recognises what lines show. Each worker has one of its own.
type looker struct {
	words  *Vocabulary
	parser nccllog.Parser
	holds  *keywords.Set // words of which one is in what a pattern of the user matches; nil: not known
	record bool          // it is one of NCCL
	former joblog.Former
	shapes alike.Memo[shape]
	texts  alike.Memo[[]hit] // hundreds of ranks print the same ones
}

// shape is what texts have in common that differ in nothing but which digits they hold.
type shape struct {
	spots []spot // none: nothing is recognised in such a text
	lines bool   // a pattern of the user may match
	form  *joblog.Form
	same  []hit // what is recognised in each of them, where it is the same in all
}

// spot is a row that may recognise something, and the places of its arguments. Where these depend on the digits,
// the row is asked anew for each text.
type spot struct {
	row  int
	anew bool
	at   []int
}

func (v *Vocabulary) newLooker() *looker {
	return &looker{words: v, texts: alike.Memo[[]hit]{Exact: true}}
}

// chunk looks at the lines of a chunk.
func (k *looker) chunk(source string, c *lines.Chunk, b *batch) {
	b.lines = k.parser.Parse(b.lines[:0], source, c)
	clear(b.sights)
	b.sights = b.sights[:0]
	for i := range b.lines {
		l := &b.lines[i]
		s := sight{}
		if texts := flatten(l.Text); texts == nil {
			s = k.line(l)
		} else {
			for _, t := range texts {
				p := part{line: k.parser.ParseLine(t, nccllog.Pos{Source: source, Line: l.Num})}
				p.sight = k.line(&p.line)
				s.parts = append(s.parts, p)
			}
		}
		b.sights = append(b.sights, s)
	}
}

// line looks at a line. The first of a source are left to who knows whether they are
// sentences.
func (k *looker) line(l *nccllog.Line) (s sight) {
	if s.call = isCall(l); !s.call && l.Num > maxTalk {
		var m shape
		s.hits, m = k.look(l, false)
		s.lines, s.form = m.lines, m.form
	}
	if len(s.hits) > 0 {
		s.rank = label(l.Text)
	}
	return s
}

// look shows a line to the recognisers whose words it holds. They do not see who printed
// a record, so that what they see in it holds for all who print the same.
func (k *looker) look(l *nccllog.Line, sentence bool) (hits []hit, m shape) {
	text := l.Body()
	if text == "" {
		return nil, m
	}
	if len(text) > maxLine && !strings.Contains(text, infoMark) {
		text = text[:maxLine]
	}
	if sentence {
		return k.read(l, text, k.find(text, true), true), m
	}
	k.record = len(l.Records) > 0
	m = k.shapes.Of(text, k.newShape)
	if len(m.spots) == 0 || m.same != nil {
		return m.same, m
	}
	return k.texts.Of(text, func(string) []hit {
		hits := k.read(l, text, m.spots, false)
		for i := range hits {
			hits[i].copyTexts()
		}
		return hits
	}), m
}

// newShape finds the rows that may recognise something in a text.
func (k *looker) newShape(text string) (s shape) {
	if s.spots = k.find(text, false); !slices.ContainsFunc(s.spots, func(x spot) bool {
		return x.anew || len(x.at) > 2 || k.words.rows[x.row].special == settings
	}) {
		s.same = k.read(nil, text, s.spots, false)
	}
	s.lines = k.holds == nil || k.holds.In(text)
	if !k.record {
		s.form = k.former.New(text)
	}
	return s
}

var (
	group   = lazyre.New(`\([^()]*\)`)
	leading = lazyre.New(`^[A-Za-z -]{5,}`)
)

// holding finds words of which one is in what the patterns match: those that alternatives begin with, nil where some
// begin with none.
func holding(patterns []*regexp.Regexp) *keywords.Set {
	var words []string
	for _, p := range patterns {
		text := group.ReplaceAllString(strings.TrimPrefix(p.String(), "(?i)"), "(")
		for part := range strings.SplitSeq(text, "|") {
			word := leading.FindString(part)
			if word == "" {
				return nil
			}
			words = append(words, word[:len(word)-1]) // the last letter may be optional
		}
	}
	return keywords.New(words)
}

// find asks the rows whose words were found where they see something.
func (k *looker) find(text string, sentence bool) (spots []spot) {
	if !sentence && traces(text) {
		return nil
	}
	for _, i := range k.words.find(text) {
		row := &k.words.rows[i]
		x := spot{row: i, anew: !row.blind}
		found := true
		if row.special == settings {
			x.at = k.words.env.find(text, sentence)
		} else if !x.anew {
			x.at, found = row.find(text)
		}
		if found {
			spots = append(spots, x)
		}
	}
	return spots
}

// traces reports a line in which UCX follows its own steps: what it tries and does not need fails there, too.
func traces(text string) bool {
	return strings.Contains(text, " UCX  ") && ucxStep.MatchString(text)
}

var ucxStep = lazyre.New(` UCX  (?:DEBUG|TRACE|REQ |DATA |ASYNC|FUNC |POLL )`)

// read makes hits of what rows see. What a sentence denies is not seen: "no Xid 79".
func (k *looker) read(l *nccllog.Line, text string, spots []spot, sentence bool) (hits []hit) {
	for _, x := range spots {
		row := &k.words.rows[x.row]
		h := hit{kind: row.kind, rank: -1, special: row.special}
		ok := row.special != 0 || !slices.ContainsFunc(hits, func(o hit) bool { return o.kind == h.kind })
		switch {
		case row.special == settings:
			k.words.env.read(&h, l, text, x.at)
		case row.special == warned:
			ok = strings.Contains(text, "NCCL WARN")
		case row.special == 0 && ok:
			if x.anew {
				x.at, ok = row.find(text)
			}
			if ok = ok && !(sentence && row.denied(text, x.at)); ok {
				h.args, h.rank = row.read(text, x.at)
			}
		}
		if ok {
			hits = append(hits, h)
		}
	}
	return hits
}

// copyTexts lets go of the text that a hit came from.
func (h *hit) copyTexts() {
	for i := range h.args {
		h.args[i] = strings.Clone(h.args[i])
	}
	h.named, h.value = strings.Clone(h.named), strings.Clone(h.value)
}

// isCall reports a record of a call, which make up most of a long log: NCCL's own reader keeps what matters of it.
func isCall(l *nccllog.Line) bool {
	if len(l.Records) != 1 {
		return false
	}
	_, ok := l.Records[0].Message.(nccllog.Call)
	return ok && !strings.Contains(l.Records[0].Text, "NCCL ") // else something else ran into it
}
