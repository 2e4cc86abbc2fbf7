package evidence

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/input"
	"busbar.dev/input/joblog"
	"busbar.dev/input/nccllog"
	"busbar.dev/input/trainlog"
	"busbar.dev/internal/lines"
	"busbar.dev/internal/unpack"
)

// maxWhole is how much of a text is kept for the readers of whole formats. Of a
// longer one they see the beginning, without NCCL's records.
const maxWhole = 16 << 20

// A text that is longer than longLog is a log, of which a beginning is kept only. So is one that is of no kind from end
// to end, by its first bytes: of the rest those lines are kept that begin a block of a format, and so many behind each.
const (
	longLog = 64 << 20
	telling = 1 << 18
	block   = 1 << 10
)

// Reader takes in sources, one after another. The zero value is of no use; make
// one with NewReader.
type Reader struct {
	// Budget is what documents among the sources may cost, and says when nobody waits any more; nil for the usual bounds.
	Budget *cluster.Budget
	// Patterns are what causes of the user look for in every line.
	Patterns []*regexp.Regexp

	set     *Set
	words   *Vocabulary
	look    *looker
	lookers []*looker // of those who look ahead
	log     *nccllog.Reader
	frags   []*cluster.Fragment
	mute    bool   // sentences do not count
	pending string // a setting that a manifest named and whose value is to come
	last    bool   // NCCL's last error comes next
	gpu     string // the last one that nvidia-smi -q of this source began
	// chunk and workers are how the lines are read, 0 for as usual: what comes of it is the same.
	chunk, workers int

	// Of the source at hand.
	document         bool // it is written for machines from end to end
	manual, fenced   bool // it explains, in Markdown; and is within a fence there
	name             string
	kept             bytes.Buffer   // its text, for readers of whole formats
	events           *joblog.Reader // what it says of how a job is
	size             int            // of the text so far; negative: it was cut to the beginning
	plain            int            // of it what told that it is a log; 0: it is none
	nccl             bool           // it has records of NCCL
	left             int            // lines of a block in it that are still kept
	trained          trainlog.Log   // what it says of a training
	told             []sighting     // in sentences, until its length is known
	sentences, count int            // of it; lines of it
	failed           bool           // a program says why it ended
}

// sighting is a line that may be a sentence.
type sighting struct {
	q    finding.Quote
	text string
}

// NewReader makes a Reader with a vocabulary of its own.
func NewReader() *Reader { return NewVocabulary().NewReader() }

// NewReader makes a Reader.
func (v *Vocabulary) NewReader() *Reader {
	return &Reader{
		set: &Set{
			kinds: map[Kind][]*Observation{}, index: map[string]*Observation{}, env: map[string][]*Env{},
			Dropped: map[string]int{}, Steps: map[int]*Steps{}, Talk: map[string]bool{},
		},
		words: v, look: v.newLooker(), log: nccllog.NewSetupReader(),
	}
}

// Read takes in one source: a text, or a file that gzip or bzip2 made of it, or
// an archive of such files.
func (r *Reader) Read(name string, in io.Reader) error {
	mute := r.mute
	defer func() { r.mute = mute }()
	return unpack.Walk(r.Budget, name, in, unpack.Visitor{File: r.member, Tar: r.machine})
}

// ReadSentence takes in what somebody says.
func (r *Reader) ReadSentence(text string) error {
	if err := notEnglish(text); err != nil {
		return err
	}
	if err := r.Read("the sentence", strings.NewReader(text)); err != nil {
		return err
	}
	r.set.Told, r.set.Asked = true, true
	if !r.set.Talk[r.name] {
		r.set.Talk[r.name] = true
		r.set.addWords(text)
	}
	return nil
}

// ReadOutput takes in what a tool printed: nothing in it is what somebody tells.
func (r *Reader) ReadOutput(name string, in io.Reader) error {
	r.mute = true
	defer func() { r.mute = false }()
	return r.Read(name, in)
}

// Fragment takes in what another reader made, such as that of a live machine.
func (r *Reader) Fragment(f *cluster.Fragment) { r.frags = append(r.frags, f) }

// text reads a plain text.
func (r *Reader) text(name string, in *bufio.Reader) error {
	head, _ := in.Peek(1 << 14)
	if len(input.Find(head, input.Dump)) > 0 {
		data, done, err := unpack.Whole(r.Budget, in)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		defer done()
		_, err = r.job().AddOf(input.Dump, name, data)
		if err != nil || len(input.Find(data, input.Dump|input.Log)) < 2 {
			r.set.Sources = append(r.set.Sources, name)
			r.set.Lines += bytes.Count(data, []byte("\n"))
			r.set.Bytes += int64(len(data))
			return err
		}
		in, head = bufio.NewReader(bytes.NewReader(data)), data[:min(len(data), len(head))] // RAS's answer and a log
	}
	if len(input.Find(head, input.Trace)) > 0 { // another question reads them
		r.set.Sources, r.set.Traces = append(r.set.Sources, name), append(r.set.Traces, name)
		return nil
	}
	if i := bytes.IndexByte(head, 0); i >= 0 && isBinary(head) {
		return fmt.Errorf("%s: binary data (a zero byte at offset %d); expected text, or an archive of texts", name, i)
	}
	r.name = name
	r.document = document(head[:min(len(head), 1<<12)])
	r.manual, r.fenced = markdown(head), false
	r.kept.Reset()
	r.events = joblog.NewReader(name)
	r.size, r.plain, r.left, r.nccl = 0, 0, 0, false
	r.gpu = ""
	r.told, r.sentences, r.count, r.failed = r.told[:0], 0, 0, false
	r.set.Sources = append(r.set.Sources, name)
	in, answer, err := r.answer(in)
	if answer || err != nil {
		return err
	}
	if err := r.lines(in); err != nil {
		return err
	}
	r.jobLog()
	formats := r.training() + r.whole()
	if r.talks() {
		r.set.Talk[r.name] = formats == 0
		if formats == 0 {
			r.set.addWords(r.kept.String())
		}
		r.tell(formats)
	}
	return nil
}

// isBinary reports a beginning with a zero that is no text: more zeros than a log has that was
// cut while it was written to, or control characters all over.
func isBinary(head []byte) bool {
	rest := bytes.TrimLeft(head, "\x00") // what a truncated file is filled up with
	control := 0
	for _, c := range rest {
		if c < ' ' && strings.IndexByte("\x00\t\n\r\f\b\x1b", c) < 0 {
			control++
		}
	}
	return len(rest) == 0 || 64*bytes.Count(rest, []byte{0}) > len(rest) || 32*control > len(rest)
}

// document reports a text that is XML, a manifest or a script, in which no
// sentence tells of a fault.
func document(head []byte) bool {
	t := bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))
	return bytes.HasPrefix(t, []byte("<")) || bytes.HasPrefix(t, []byte("#!")) ||
		bytes.Contains(t, []byte("apiVersion:"))
}

// lines takes in all lines of a source: each is shown to the recognisers, and to
// the reader of what NCCL set up.
func (r *Reader) lines(text io.Reader) error {
	in := lines.NewAhead[batch](text)
	in.Size, in.Workers = cmp.Or(r.chunk, in.Size), cmp.Or(r.workers, in.Workers)
	count, used := 0, 0
	r.log.Begin(r.name)
	for b := range in.All(func() func(*lines.Chunk, *batch) {
		if used == len(r.lookers) {
			r.lookers = append(r.lookers, r.words.newLooker())
		}
		look := r.lookers[used]
		look.holds = holding(r.Patterns)
		used++
		return func(c *lines.Chunk, b *batch) { look.chunk(r.name, c, b) }
	}) {
		for i := range b.lines {
			l := &b.lines[i]
			count = l.Num
			r.keep(l.Text, b.sights[i].hits)
			r.log.Take(l) // it corrects hosts
			if r.size >= 0 {
				r.events.Form = b.sights[i].form
				r.events.Take(l)
			}
			r.fileLine(l, &b.sights[i])
		}
	}
	switch err := in.Err(r.name); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s: the packed file breaks off after line %d; copy it again, or unpack what there is of it and "+
			"give that", r.name, count)
	case err != nil:
		return err
	}
	r.set.Lines += count
	r.set.Bytes += in.Bytes()
	r.count = count
	return nil
}

// keep holds on to a line for the readers of whole formats; a record of NCCL
// becomes an empty line, so that the others keep their numbers.
func (r *Reader) keep(text string, hits []hit) {
	if r.size < 0 {
		return
	}
	had := r.size
	if r.size += len(text) + 1; r.size > longLog { // its beginning tells what it is
		r.size = math.MinInt
		return
	}
	if had <= telling && r.size > telling {
		kinds := input.Find(r.kept.Bytes(), input.Part|input.Table|input.Health)
		if !slices.ContainsFunc(kinds, func(k input.Kind) bool { return k.Class&input.Entire != 0 }) {
			r.plain = r.kept.Len()
		}
		if slices.ContainsFunc(kinds, func(k input.Kind) bool { return k.Name != nccllog.Format }) {
			r.left = block
		}
		r.nccl = len(kinds) > 0
	}
	r.left--
	for i := range hits {
		r.nccl = r.nccl || hits[i].special == warned
		if hits[i].special == begins {
			r.left = block
		}
	}
	if r.kept.Len() > 1<<20 && r.kept.Cap() < maxWhole { // not by doubling, which leaves as much garbage
		r.kept.Grow(maxWhole)
	}
	if r.kept.Len() >= maxWhole {
		return
	}
	if (r.plain == 0 || r.left > 0) && (!strings.Contains(text, infoMark) || torn(text)) {
		r.kept.WriteString(text)
	}
	r.kept.WriteByte('\n')
}

// talks reports that a source tells of a fault: it is short, and it begins with an English sentence, most of its
// sentences are English, or there are so few that a known word is enough.
func (r *Reader) talks() bool {
	if r.mute || r.document || r.count > maxTalk || r.sentences > maxSentences {
		return false
	}
	whole, opens := 0, false
	for _, s := range r.told {
		if english(s.text) {
			whole++
			opens = opens || s.q.Line == 1 && strings.Count(s.text, " ") >= fewLines
		}
	}
	return opens || r.failed || r.sentences > 0 && r.sentences <= fewLines && r.count <= 4*fewLines ||
		whole > 0 && 4*whole >= r.sentences
}

// tell files what the sentences of a source say, once it is known to be short
// enough to be talk. Where tools have printed too, their own sentences look alike;
// then only those are taken that are English and stand beside no such tool's
// explanations.
func (r *Reader) tell(tools int) {
	r.set.Failed = r.set.Failed || r.failed
	for _, s := range r.told {
		if tools > 0 && !worded(s.q.Text) {
			continue
		}
		r.set.Told = r.set.Told || r.sentences > 0
		if tools > 0 {
			r.set.addWords(s.text)
		}
	}
}

// unknown counts a warning of NCCL that nothing took.
func (r *Reader) unknown(q finding.Quote) {
	r.set.Unknown++
	r.set.Unread++
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
		s.rename(s.Log.Phantoms)
		for what, n := range s.Log.Dropped {
			s.Dropped[what] += n
		}
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
