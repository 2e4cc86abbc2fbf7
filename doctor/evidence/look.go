package evidence

import (
	"hash/maphash"
	"strings"

	"busbar.dev/input/nccllog"
	"busbar.dev/internal/lines"
)

// hit is what a recogniser sees in a line.
type hit struct {
	kind    Kind
	args    []string
	rank    int  // that the line names; -1 none
	told    bool // only where sentences count
	special int

	// Of settings, whose names and values are args by turns: one that a manifest
	// names, and a line that may hold its value.
	named, value string
	valued       bool
}

// sight is what one line shows.
type sight struct {
	hits  []hit
	bulk  bool // it is one of the records that make up most of a log
	rank  int  // that a launcher wrote in front; -1 none
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
	words *Vocabulary
	rows  []int
	seed  maphash.Seed
	memo  map[uint64][]hit // what was seen in texts that come again: hundreds of ranks print the same ones
}

// maxMemo is how many texts are remembered.
const maxMemo = 1 << 14

func (v *Vocabulary) newLooker() *looker {
	return &looker{words: v, seed: maphash.MakeSeed(), memo: map[uint64][]hit{}}
}

// chunk looks at the lines of a chunk.
func (k *looker) chunk(source string, c *lines.Chunk, b *batch) {
	b.lines = nccllog.Parse(b.lines[:0], source, c)
	b.sights = b.sights[:0]
	for i := range b.lines {
		l := &b.lines[i]
		s := sight{}
		if texts := flatten(l.Text); texts == nil {
			s = k.line(l)
		} else {
			for _, t := range texts {
				p := part{line: nccllog.ParseLine(t, nccllog.Pos{Source: source, Line: l.Num})}
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
	if s.hits, s.bulk = bulk(l); !s.bulk && l.Num > maxTalk {
		s.hits = k.look(l, false)
	}
	if len(s.hits) > 0 {
		s.rank = label(l.Text)
	}
	return s
}

// look shows a line to the recognisers whose words it holds. They do not see who printed
// a record, so that what they see in it holds for all who print the same.
func (k *looker) look(l *nccllog.Line, sentence bool) []hit {
	text, find := l.Body(), k.words.printed
	if sentence {
		find = k.words.talk
	}
	if len(text) > maxLine && !strings.Contains(text, infoMark) {
		text = text[:maxLine]
	}
	if k.rows = find.rows(text, k.rows); len(k.rows) == 0 {
		return nil
	}
	if sentence {
		return k.match(l, text, true)
	}
	key := maphash.String(k.seed, text)
	hits, ok := k.memo[key]
	if !ok {
		hits = k.match(l, text, false)
		for i := range hits {
			hits[i].copyTexts()
		}
		if len(k.memo) >= maxMemo {
			clear(k.memo)
		}
		k.memo[key] = hits
	}
	return hits
}

// match asks the rows whose words were found.
func (k *looker) match(l *nccllog.Line, text string, sentence bool) (hits []hit) {
	for _, i := range k.rows {
		row := &k.words.rows[i]
		h := hit{kind: row.kind, rank: -1, told: row.told, special: row.special}
		switch row.special {
		case settings:
			k.words.env.read(&h, l, text, sentence)
		case warned:
			if !strings.Contains(text, "NCCL WARN") {
				continue
			}
		case waiting, addresses: // what came before decides
		default:
			words := text
			if row.kind == Symptom {
				words = affirmed(words)
			}
			var ok bool
			if h.args, h.rank, ok = row.match(words); !ok {
				continue
			}
		}
		hits = append(hits, h)
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

// bulk recognises the records that make up most of a long log, without looking for
// words: calls, of which NCCL's own reader keeps what matters, and connections.
func bulk(l *nccllog.Line) (hits []hit, ok bool) {
	if len(l.Records) != 1 {
		return nil, false
	}
	rec := &l.Records[0]
	switch m := rec.Message.(type) {
	case *nccllog.Call:
		return nil, !strings.Contains(rec.Text, "NCCL ") // else something else ran into it
	case *nccllog.Connection:
		h := hit{rank: -1}
		_, via, ok := strings.Cut(m.Via, "/")
		switch {
		case strings.Contains(rec.Text, "NCCL "):
			ok = false
		case m.Transport == "SHM":
			h.kind, ok = OverShm, true
		case m.Transport == "P2P" && ok:
			h.kind = OverP2P
			h.args, ok = wayP2P(via)
		case m.Transport == "NET" && ok:
			h.kind = OverNet
			h.args, ok = wayNet(via)
		default:
			ok = false
		}
		if ok {
			return []hit{h}, true
		}
	}
	return nil, false
}
