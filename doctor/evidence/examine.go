package evidence

import (
	"hash/maphash"
	"slices"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/input/nccllog"
	"busbar.dev/internal/lines"
)

// infoMark is in every record that says how NCCL goes on.
const infoMark = "NCCL INFO "

// maxLine is how much of a line is looked at that is no record of NCCL.
const maxLine = 1 << 15

// view is a line as the recognisers see it.
type view struct {
	text     string
	quote    finding.Quote
	info     bool             // it holds infoMark
	sentence bool             // somebody may have written it
	setting  *nccllog.Setting // that NCCL says it took
	host     string           // who printed it, where the line says so
	rank     int              // likewise; -1 unknown
}

// line shows one line to the recognisers whose words it holds.
func (r *Reader) line(l *nccllog.Line) {
	if len(l.Records) == 1 && r.bulk(l) {
		return
	}
	r.lastError(l)
	key, late := r.dullKey(l)
	if late && r.dull[key] {
		return
	}
	v := r.view(l)
	took, find := false, r.words.printed
	if v.sentence {
		find = r.words.talk
	}
	r.hits = find.rows(v.text, r.hits)
	for _, i := range r.hits {
		took = r.recognise(&r.words.rows[i], &v) || took
	}
	if v.sentence {
		r.sentences++
		r.told = append(r.told, sighting{"", nil, short(v.quote), v.text})
	}
	if !took && !v.info && !v.sentence && strings.Contains(v.text, "NCCL WARN") {
		r.unknown(v.quote)
		return
	}
	if late && !took && !v.sentence && !slices.ContainsFunc(r.hits, func(i int) bool { return r.words.rows[i].special != 0 }) {
		if len(r.dull) >= maxDull {
			clear(r.dull)
		}
		r.dull[key] = true
	}
}

// maxDull is how many messages are remembered in which nothing was recognised: hundreds of ranks print the same ones.
const maxDull = 1 << 15

// dullKey is a line without what differs from rank to rank: the message of a record, or the whole text. late reports that sentences are over.
func (r *Reader) dullKey(l *nccllog.Line) (key uint64, late bool) {
	if l.Num <= maxTalk {
		return 0, false
	}
	text := l.Text
	if len(l.Records) == 1 && len(l.Records[0].Text) > 0 && strings.HasSuffix(text, l.Records[0].Text) {
		text = l.Records[0].Text
	}
	return maphash.String(r.seed, text), true
}

// view makes a line ready for the recognisers.
func (r *Reader) view(l *nccllog.Line) view {
	v := view{text: l.Text, info: strings.Contains(l.Text, infoMark), rank: label(l.Text)}
	if len(v.text) > maxLine && !v.info {
		v.text = v.text[:maxLine]
	}
	if len(l.Records) > 0 {
		v.host = l.Records[0].Host
	}
	if len(l.Records) == 1 {
		v.setting, _ = l.Records[0].Message.(*nccllog.Setting)
	}
	v.quote = finding.Quote{File: r.name, Line: l.Num, Text: v.text}
	if l.Num <= maxTalk && !v.info {
		v.sentence = r.sentence(&v)
	}
	return v
}

// sentence reports a line that somebody may have written. A single word that could be
// one is kept beside the others.
func (r *Reader) sentence(v *view) bool {
	words, ok := talk(v.text)
	if ok && (words >= 2 || alone(v.text) || model(v.text)) {
		return true
	}
	if ok {
		r.told = append(r.told, sighting{"", nil, short(v.quote), v.text})
	}
	return false
}

// recognise looks closer at a line that holds a word of a row, and reports whether
// the row takes it.
func (r *Reader) recognise(row *recogniser, v *view) bool {
	switch row.special {
	case waiting:
		r.wait(v.text, v.quote.Line)
		return false
	case addresses:
		return r.nets.read(r.set, v.text, v.quote)
	case settings:
		return r.env.read(r.set, v)
	case stepTimes:
		return r.words.steps.read(r.set, v.text, v.quote)
	}
	words := v.text
	if row.kind == Symptom {
		words = affirmed(words)
	}
	args, rank, ok := row.match(words)
	switch {
	case !ok:
		return false
	case row.told:
		r.told = append(r.told, sighting{row.kind, args, short(v.quote), ""})
		return false
	case rank < 0:
		rank = v.rank
	}
	r.set.add(row.kind, args, v.quote, v.host, rank)
	return true
}

// lastError takes the line after "Last error:".
func (r *Reader) lastError(l *nccllog.Line) {
	if r.last {
		if msg := lines.Shape(unlabelled(l.Text)); msg != "" {
			r.set.add(LastError, []string{msg}, finding.Quote{File: r.name, Line: l.Num, Text: l.Text}, "", label(l.Text))
		}
	}
	r.last = strings.HasSuffix(strings.TrimRight(l.Text, " "), "Last error:")
}

// bulk takes the records that make up most of a long log, without looking for words:
// calls, of which NCCL's own reader keeps what matters, and connections.
func (r *Reader) bulk(l *nccllog.Line) bool {
	rec := &l.Records[0]
	if strings.Contains(rec.Text, "NCCL ") {
		return false // something else ran into it
	}
	var kind Kind
	var args []string
	switch m := rec.Message.(type) {
	case *nccllog.Call:
		return true
	case *nccllog.Connection:
		_, via, ok := strings.Cut(m.Via, "/")
		switch {
		case m.Transport == "SHM":
			kind, ok = OverShm, true
		case m.Transport == "P2P" && ok:
			kind = OverP2P
			args, ok = wayP2P(via)
		case m.Transport == "NET" && ok:
			kind = OverNet
			args, ok = wayNet(via)
		default:
			ok = false
		}
		if !ok {
			return false
		}
	default:
		return false
	}
	r.set.add(kind, args, finding.Quote{File: r.name, Line: l.Num, Text: l.Text}, rec.Host, label(l.Text))
	return true
}
