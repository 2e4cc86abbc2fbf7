package evidence

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/input/nccllog"
	"busbar.dev/internal/lines"
)

// maxWhole is how much of a text is kept for the readers of whole formats. Of a
// longer one they see the beginning, without NCCL's records.
const maxWhole = 16 << 20

// Reader takes in sources, one after another. The zero value is of no use; make
// one with NewReader.
type Reader struct {
	set   *Set
	words *Vocabulary
	env   *envReader
	hits  []int // rows whose words are in the line at hand
	log   *nccllog.Reader
	frags []*cluster.Fragment
	mute  bool // sentences do not count
	last  bool // NCCL's last error comes next
	nets  *subnetReader
	busy  []busy // lines that may tell what a rank did last

	// Of the source at hand.
	document         bool // it is written for machines from end to end
	name             string
	kept             bytes.Buffer // its text, for readers of whole formats
	told             []sighting   // in sentences, until its length is known
	sentences, count int          // of it; lines of it
}

// sighting is an observation that waits.
type sighting struct {
	kind Kind
	args []string
	q    finding.Quote
	text string
}

// NewReader makes a Reader with a vocabulary of its own.
func NewReader() *Reader { return NewVocabulary().NewReader() }

// NewReader makes a Reader.
func (v *Vocabulary) NewReader() *Reader {
	return &Reader{
		set:   &Set{kinds: map[Kind][]*Observation{}, env: map[string][]*Env{}, Dropped: map[string]int{}, Steps: map[int]*Steps{}},
		words: v, env: &envReader{envPatterns: v.env}, log: nccllog.NewReader(), nets: &subnetReader{subnetPatterns: v.subnets},
	}
}

// Read takes in one source: a text, or a file that gzip or bzip2 made of it, or
// an archive of such files.
func (r *Reader) Read(name string, in io.Reader) error {
	mute := r.mute
	defer func() { r.mute = mute }()
	b := bufio.NewReaderSize(in, 1<<16)
	if archived, err := r.packed(name, b, 0); archived {
		return err
	}
	return r.text(name, b)
}

// ReadOutput takes in what a tool printed: nothing in it is what somebody tells.
func (r *Reader) ReadOutput(name string, in io.Reader) error {
	r.mute = true
	defer func() { r.mute = false }()
	return r.Read(name, in)
}

// Fragment takes in what another reader made, such as that of a live machine.
func (r *Reader) Fragment(f *cluster.Fragment) { r.frags = append(r.frags, f) }

// text reads a plain text: NCCL's reader and the recognisers each take every line,
// side by side.
func (r *Reader) text(name string, in *bufio.Reader) error {
	head, _ := in.Peek(1 << 12)
	if i := bytes.IndexByte(head, 0); i >= 0 && binary(head) {
		return fmt.Errorf("%s: binary data (a zero byte at offset %d); expected text, or an archive of texts", name, i)
	}
	r.name = name
	r.document = document(head)
	r.kept.Reset()
	r.nets.begin()
	r.nets.host++
	r.busy = r.busy[:0]
	r.told, r.sentences, r.count = r.told[:0], 0, 0
	r.set.Sources = append(r.set.Sources, name)
	in, answer, err := r.answer(in)
	if answer || err != nil {
		return err
	}
	out, pipe := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := r.log.Add(name, out)
		_, _ = io.Copy(io.Discard, out) // let the writer go on whatever happened
		done <- err
	}()
	err = r.lines(lines.New(io.TeeReader(in, pipe)))
	pipe.Close()
	if e := <-done; err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	if formats := r.whole(); r.talks() {
		r.tell(formats)
	}
	return nil
}

// binary reports a beginning that is no text: more zeros than a log has that was
// cut while it was written to, and no mark of UTF-16.
func binary(head []byte) bool {
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return false
	}
	rest := bytes.TrimLeft(head, "\x00") // what a truncated file is filled up with
	return len(rest) == 0 || 64*bytes.Count(rest, []byte{0}) > len(rest)
}

// document reports a text that is XML, a manifest or a script, in which no
// sentence tells of a fault.
func document(head []byte) bool {
	t := bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))
	return bytes.HasPrefix(t, []byte("<")) || bytes.HasPrefix(t, []byte("#!")) || bytes.Contains(t, []byte("apiVersion:")) || bytes.HasPrefix(t, []byte("<?xml"))
}

// lines takes in all lines of a source.
func (r *Reader) lines(in *lines.Reader) error {
	count := 0
	for in.Next() {
		count = in.Num()
		text := unwrap(in.Text())
		record := strings.Contains(text, "NCCL INFO ")
		r.keep(text, record)
		if parts := flatten(text); parts != nil {
			for _, p := range parts {
				r.line(p, count, strings.Contains(p, "NCCL INFO "))
			}
			continue
		}
		r.line(text, count, record)
	}
	switch err := in.Err(); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s: the packed file breaks off after line %d; copy it again, or unpack what there is of it and give that", r.name, count)
	case err != nil:
		return fmt.Errorf("%s:%d: %w", r.name, count, err)
	}
	r.set.Lines += count
	r.set.Bytes += in.Bytes()
	r.count = count
	return nil
}

// keep holds on to a line for the readers of whole formats; a record of NCCL
// becomes an empty line, so that the others keep their numbers.
func (r *Reader) keep(text string, record bool) {
	if r.kept.Len() >= maxWhole {
		return
	}
	if !record || torn(text) {
		r.kept.WriteString(text)
	}
	r.kept.WriteByte('\n')
}

// line shows one line to the recognisers whose words it holds.
func (r *Reader) line(text string, num int, record bool) {
	if record && r.bulk(text, num) {
		return
	}
	if r.last { // the line after "Last error:"
		r.last = false
		if msg, _ := shapeOf([]string{unlabelled(text)}); msg[0] != "" {
			_, rank := speaker(text)
			r.set.add(LastError, msg, finding.Quote{File: r.name, Line: num, Text: text}, "", rank)
		}
	}
	r.last = strings.HasSuffix(strings.TrimRight(text, " "), "Last error:")
	if len(text) > 1<<15 && !record {
		text = text[:1<<15]
	}
	var host string
	rank, asked, sentence, took := -1, false, 0, false
	q := finding.Quote{File: r.name, Line: num, Text: text}
	said := func() bool { // asked at most once
		if sentence == 0 {
			sentence = 1
			if num <= maxTalk && !record {
				if words, ok := talk(text); ok && (words >= 2 || alone(text) || model(text)) {
					sentence = 2
				} else if ok {
					r.told = append(r.told, sighting{"", nil, short(q), text})
				}
			}
		}
		return sentence == 2
	}
	r.hits = r.words.find(text, r.hits)
	for _, i := range r.hits {
		row := &r.words.rows[i]
		if row.told && !said() {
			continue
		}
		switch row.special { // who says it is of no use to these, and costs
		case waiting:
			r.wait(text, num)
			continue
		case addresses:
			took = r.nets.read(r.set, text, q) || took
			continue
		}
		if !asked {
			host, rank = speaker(text)
			asked = true
		}
		if row.special != 0 {
			took = r.special(row.special, text, said(), q, host) || took
			continue
		}
		words := text
		if row.kind == Symptom {
			words = affirmed(text)
		}
		args, own, ok := row.match(words)
		if !ok {
			continue
		}
		if row.told {
			r.told = append(r.told, sighting{row.kind, args, short(q), ""})
			continue
		}
		if own < 0 {
			own = rank
		}
		took = true
		r.set.add(row.kind, args, q, host, own)
	}
	if said() {
		r.sentences++
		r.told = append(r.told, sighting{"", nil, short(q), text})
	}
	if !took && !record && !said() && strings.Contains(text, "NCCL WARN") {
		r.unknown(q)
	}
}

// bulk takes the lines that make up most of a long log, without looking for words:
// calls, of which NCCL's own reader keeps what matters, and connections, which are
// counted by their way once a few of each were seen.
func (r *Reader) bulk(text string, num int) bool {
	_, msg, _ := strings.Cut(text, "NCCL INFO ")
	if strings.Contains(msg, "NCCL ") {
		return false // lines that ran together
	}
	if !strings.HasPrefix(msg, "Channel ") {
		return strings.Contains(msg, ": opCount ")
	}
	var args []string
	var ok bool
	kind := OverP2P
	switch g := []string{msg}; {
	case strings.Contains(msg, " via P2P/"):
		args, ok = overP2P(g)
	case strings.Contains(msg, " via NET/"):
		kind = OverNet
		args, ok = overNet(g)
	}
	if !ok {
		return false
	}
	host, rank := speaker(text)
	r.set.add(kind, args, finding.Quote{File: r.name, Line: num, Text: text}, host, rank)
	return true
}

// special handles rows whose line holds several things.
func (r *Reader) special(which int, text string, sentence bool, q finding.Quote, host string) bool {
	switch which {
	case settings:
		return r.env.read(r.set, text, sentence, q, host)
	case stepTimes:
		return r.words.steps.read(r.set, text, q)
	}
	return false
}

// talks reports that a source tells of a fault: it is short, and most of its
// sentences are English, or there are so few that a known word is enough.
func (r *Reader) talks() bool {
	if r.mute || r.document || r.count > maxTalk || r.sentences > maxSentences {
		return false
	}
	whole, known := 0, false
	for _, s := range r.told {
		if s.kind == "" && english(s.text) {
			whole++
		}
		known = known || s.kind != "" || strings.Contains(s.text, "B/s") || strings.Contains(s.text, "b/s")
	}
	return r.sentences <= fewLines && r.count <= 4*fewLines && (known || whole > 0) || whole > 0 && 4*whole >= r.sentences
}

// tell files what the sentences of a source say, once it is known to be short
// enough to be talk. Where tools have printed too, their own sentences look alike;
// then only those are taken that are English and stand beside no such tool's
// explanations.
func (r *Reader) tell(tools int) {
	for _, s := range r.told {
		if tools > 0 && !worded(s.q.Text) {
			continue
		}
		if s.kind == "" {
			r.set.Told = r.set.Told || r.sentences > 0
			r.words.figures.read(r.set, s.text, s.q)
			continue
		}
		r.set.add(s.kind, s.args, s.q, "", -1)
	}
}

// unknown counts a line that nothing took.
func (r *Reader) unknown(q finding.Quote) {
	r.set.Unknown++
	if len(r.set.Samples) < 20 {
		r.set.Samples = append(r.set.Samples, short(q))
	}
}

// Set is everything that was read. The Reader is of no use after it.
func (r *Reader) Set() (*Set, error) {
	if len(r.set.Sources) == 0 && len(r.frags) == 0 {
		return nil, errors.New("nothing was read")
	}
	s := r.set
	if !r.log.Empty() {
		s.Log = r.log.Log()
		s.Unknown += s.Log.NotUnderstood
		for _, c := range s.Log.Unknown {
			if len(s.Samples) >= 20 {
				break
			}
			s.Samples = append(s.Samples, short(finding.Quote{File: c.First.Source, Line: c.First.Line, Text: c.Text}))
		}
	}
	r.join()
	return s, nil
}
