package cause

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"busbar.dev/internal/yamldoc"
)

// Polarity is what a clause says of the things it names.
type Polarity uint8

// Polarities. What is absent although it would be there is seen: the clause itself
// says no, and signs hold such words.
const (
	Seen     Polarity = iota
	Helped            // tried, and it made the difference
	NoEffect          // tried, and nothing changed
	InOrder           // stated not to be the fault
)

// polarityNames are those of words.yaml.
var polarityNames = [...]string{"seen", "helped", "no-effect", "in-order"}

func (p Polarity) String() string { return polarityNames[p] }

// Observation is one clause and what it says.
type Observation struct {
	Text     string
	Polarity Polarity
	norm     string
	ordered  bool // a sign says that something is in order: its words speak for nothing
	narrow   float64
}

// vocabulary is words.yaml.
type vocabulary struct {
	symptoms, tags map[string][]term
	exclusive      [][]string
	complaints     []term
	changes        []term          // what is said of something that was tried
	verdicts       map[string]bool // words of polarity
	polarity       [len(polarityNames)][]term
}

// wordsFile is words.yaml.
var wordsFile = sync.OnceValue(func() *yamldoc.Value {
	return embedded("words.yaml")
})

// embedded is a file of one document that the program carries.
func embedded(name string) *yamldoc.Value {
	text, err := data.ReadFile(name)
	if err != nil {
		panic(err)
	}
	docs, err := yamldoc.Parse(string(text))
	if err != nil || len(docs) != 1 {
		panic(fmt.Sprint(name, ": ", err))
	}
	return &docs[0]
}

var wordList = sync.OnceValue(func() *vocabulary {
	doc := wordsFile()
	v := &vocabulary{symptoms: termsOf(doc.Get("symptoms")), tags: termsOf(doc.Get("tags"))}
	for _, item := range doc.Get("complaints").List() {
		v.complaints = append(v.complaints, parseTerms(item.Str())...)
	}
	for _, item := range doc.Get("changes").List() {
		v.changes = append(v.changes, parseTerms(item.Str())...)
	}
	for _, group := range doc.Get("exclusive").List() {
		var names []string
		for _, n := range group.List() {
			names = append(names, n.Str())
		}
		v.exclusive = append(v.exclusive, names)
	}
	v.verdicts = map[string]bool{}
	for p := Seen; p <= InOrder; p++ {
		v.polarity[p] = termsOf(doc.Get("polarity"))[polarityNames[p]]
		if p == Seen {
			continue
		}
		for _, t := range v.polarity[p] {
			for w := range strings.FieldsSeq(t.text) {
				v.verdicts[w] = true
			}
		}
	}
	return v
})

func termsOf(v *yamldoc.Value) map[string][]term {
	list := map[string][]term{}
	for _, m := range v.Map() {
		for _, item := range m.List() {
			list[m.Key] = append(list[m.Key], parseTerms(item.Str())...)
		}
	}
	return list
}

// Told is what somebody tells, taken apart.
type Told struct {
	Observations []Observation
	symptoms     map[string]bool
	tags         map[string]bool
	answers      map[string]bool // to questions
	words        []string        // of what is seen or helped, each once
	stems        string          // of words, in order, clauses parted by full stops
	all          string          // what is seen, normalised
}

// maxTold bounds what is looked at.
const maxTold = 64 << 10

// Tell takes a text apart: clauses, what they say, symptoms and circumstances.
func Tell(text string) *Told {
	t := &Told{}
	for line := range strings.Lines(text[:min(len(text), maxTold)]) {
		for _, s := range sentences(line) {
			for _, c := range clauses(s) {
				if !t.verdict(c) {
					t.Add(c, polarity(c))
				}
			}
		}
	}
	t.finish()
	return t
}

// verdict files a clause that only says how the change before it went: "NCCL_P2P_DISABLE=1 is set, it works now".
func (t *Told) verdict(clause string) bool {
	p, v := polarity(clause), wordList()
	if p != Helped && p != NoEffect || len(t.Observations) == 0 {
		return false
	}
	last := &t.Observations[len(t.Observations)-1]
	if last.Polarity != Seen && last.Polarity != InOrder || !anyIn(v.changes, last.norm) {
		return false
	}
	n := normalise(clause)
	for w := range strings.FieldsSeq(n) {
		if !v.verdicts[w] && !v.verdicts[strings.TrimSuffix(w, "s")] && !slices.Contains(stopWords, w) {
			return false
		}
	}
	last.Text, last.norm, last.Polarity = last.Text+", "+strings.TrimSpace(clause), last.norm[:len(last.norm)-1]+n, p
	return true
}

// Remedy reports a change that some built-in cause has among its remedies.
func Remedy(text string) bool {
	list, err := builtin()
	n := normalise(text)
	return err == nil && slices.ContainsFunc(list, func(c *Cause) bool { return c.Remedies(n) })
}

// Add files a clause of known polarity; finish must follow.
func (t *Told) Add(text string, p Polarity) {
	n := normalise(text)
	if n == " " {
		return
	}
	t.Observations = append(t.Observations, Observation{
		Text: strings.TrimSpace(text), Polarity: p, norm: n, ordered: saysInOrder(n),
	})
}

func (t *Told) finish() {
	v := wordList()
	t.releases()
	t.symptoms, t.tags = map[string]bool{}, map[string]bool{}
	var b strings.Builder
	var said []string
	for _, o := range t.Observations {
		for name, list := range v.tags {
			if o.Polarity != NoEffect && anyIn(list, o.norm) {
				t.tags[name] = true
			}
		}
		if o.Polarity == InOrder || o.Polarity == NoEffect {
			continue
		}
		b.WriteString(o.norm)
		for name, list := range v.symptoms {
			if anyIn(list, o.norm) {
				t.symptoms[name] = true
			}
		}
		if !o.ordered {
			said = append(said, strings.Join(stems(o.norm), " "))
		}
	}
	said = append(said, marks(t.symptoms, t.tags)...)
	t.all, t.stems = b.String(), strings.Join(said, " . ")
	t.words, t.answers = pairsOf(t.stems), t.answersTold()
}

// marks are words for what was recognised: texts that tell the same in other words have them in common.
func marks(sets ...map[string]bool) (list []string) {
	for _, set := range sets {
		for name := range set {
			list = append(list, "@"+name)
		}
	}
	slices.Sort(list)
	return list
}

// Marks that are put beside clauses, for signs to name: another release helped; releases are told apart.
const (
	markNCCL    = "othernccl "
	markRelease = "otherrelease "
)

// releases marks what is said of releases: one that helped, and two of one program of which one has the fault.
func (t *Told) releases() {
	nccl, other := map[string]bool{}, map[string]string{}
	two := false
	about := slices.ContainsFunc(t.Observations, func(o Observation) bool { return strings.Contains(o.norm, " nccl ") })
	for i := range t.Observations {
		o := &t.Observations[i]
		changed := anyIn(changeWords, o.norm)
		for w := range strings.FieldsSeq(o.norm) {
			if !release(w) {
				continue
			}
			major, _, _ := strings.Cut(w, ".")
			changed = true
			if about && major == "2" {
				nccl[w] = true
			} else if was, seen := other[major]; seen && was != w {
				two = true
			} else {
				other[major] = w
			}
		}
		if o.Polarity == Helped && changed && !strings.Contains(o.norm, markRelease) {
			if strings.Contains(o.norm, " nccl ") {
				o.norm += markNCCL
			}
			o.norm += markRelease
		}
	}
	if len(nccl) > 1 {
		t.Observations = append(t.Observations, Observation{Text: "releases of NCCL are told apart", norm: " ncclreleases "})
	}
	if two {
		t.Observations = append(t.Observations, Observation{Text: "releases are told apart", norm: " tworeleases "})
	}
}

// changeWords are those of a change of release.
var changeWords = parseTerms("newer|older|upgrad|downgrad|revert|previous+version|latest|nightly")

// worksWords are those of what has no fault.
var worksWords = parseTerms("works|worked|does+work|did+work|is+fine|was+fine|runs+fine")

// release reports the number of one.
func release(w string) bool {
	major, minor, ok := strings.Cut(w, ".")
	return ok && number(major) && minor != "" && minor[0] >= '0' && minor[0] <= '9'
}

func number(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != "" && len(s) < 4
}

// sentences cuts a line at full stops and semicolons.
func sentences(line string) []string {
	var list []string
	start := 0
	for i := 0; i < len(line); i++ {
		if c := line[i]; c == ';' ||
			(c == '.' || c == '?' || c == '!') && (i+1 == len(line) || line[i+1] == ' ' || line[i+1] == '\n') {
			list = append(list, line[start:i])
			start = i + 1
		}
	}
	return append(list, line[start:])
}

// turns are words at which a sentence turns to something else.
var turns = []string{" but ", " however ", " although ", " though ", " yet ", " whereas ", " while "}

// clauses cuts a sentence at words that turn it, and at commas where a part says
// something of its own: "ACS is disabled, iommu=pt is set, still hangs".
func clauses(sentence string) []string {
	parts := []string{sentence}
	for _, turn := range turns {
		var cut []string
		for _, p := range parts {
			cut = append(cut, strings.Split(p, turn)...)
		}
		parts = cut
	}
	var list []string
	for _, p := range parts {
		pieces := []string{p}
		if !strings.ContainsAny(p, "([{") { // commas in brackets part no clauses
			pieces = strings.Split(p, ",")
		}
		keep := ""
		flush := func() {
			if strings.Trim(keep, ", ") != "" {
				list = append(list, strings.TrimSuffix(keep, ","))
			}
			keep = ""
		}
		for _, piece := range pieces {
			if len(pieces) > 1 && (polarity(piece) != Seen || saysInOrder(piece)) {
				flush()
				list = append(list, piece)
				continue
			}
			keep += piece + ","
		}
		flush()
	}
	return list
}

// saysInOrder reports a clause that is a sign of any cause's being in order.
func saysInOrder(clause string) bool {
	n := normalise(clause)
	return slices.ContainsFunc(orderSigns(), func(s sign) bool { return s.in(n) })
}

// orderSigns are the signs of all causes that say one is in order.
var orderSigns = sync.OnceValue(func() (list []sign) {
	causes, err := builtin()
	if err != nil {
		return nil
	}
	for _, c := range causes {
		list = append(list, c.signs[inOrder]...)
	}
	return list
})

// polarity reads what a clause says. What had no effect is asked first: "does not
// help" holds "help".
func polarity(clause string) Polarity {
	n := normalise(clause)
	v := wordList()
	for _, p := range []Polarity{NoEffect, Seen, Helped, InOrder} {
		if anyIn(v.polarity[p], n) {
			return p
		}
	}
	switch {
	case failsWith(n):
		return NoEffect
	case anyIn(worksWords, n) && slices.ContainsFunc(strings.Fields(n), release): // another release has no such fault
		return Helped
	}
	return Seen
}

// failsWith reports a fault in spite of a setting: "hangs with NCCL_P2P_DISABLE=1".
func failsWith(n string) bool {
	for _, w := range []string{
		" hangs with nccl ", " fails with nccl ", " hang with nccl ", " crashes with nccl ", " slow with nccl ",
		" hangs also with nccl ", " also hangs with nccl ",
	} {
		if i := strings.Index(n, w); i >= 0 {
			value := n[i+len(w):]
			return strings.Contains(value, "=0 ") || strings.Contains(value, "=1 ")
		}
	}
	return false
}

// stems are the words of a normalised text without endings and without those that
// say nothing.
func stems(n string) []string {
	var list []string
	for w := range strings.FieldsSeq(n) {
		if len(w) < 2 || len(w) > 40 || slices.Contains(stopWords, w) {
			continue
		}
		list = append(list, stem(w))
	}
	return list
}

// pairs are words and each two that follow each other.
func pairs(list []string) []string {
	for i := len(list) - 2; i >= 0; i-- {
		list = append(list, list[i]+" "+list[i+1])
	}
	return list
}

// stemsOf are the stems of sentences, parted by full stops.
func stemsOf(text string) string {
	var list []string
	for _, s := range sentences(text) {
		list = append(list, strings.Join(stems(normalise(s)), " "))
	}
	return strings.Join(list, " . ")
}

// pairsOf are words and pairs of them in stems, clauses parted by full stops, each once.
func pairsOf(stems string) []string {
	var list []string
	for clause := range strings.SplitSeq(stems, " . ") {
		list = append(list, pairs(strings.Fields(clause))...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

var stopWords = strings.Fields("the an is are was were be been of to in on at for and or with without by from as it " +
	"its this that these those than then there their they we our my you your he she has have had do does did not no all " +
	"any each every one two into over after before when while which what who will can could would should may might must " +
	"if but so also only same other more most very up out about between through during per via")

func stem(w string) string {
	if c := canonical(w); c != "" {
		return c
	}
	for _, end := range []string{"ing", "ed", "es", "s"} {
		if s, ok := strings.CutSuffix(w, end); ok && len(s) >= 4 {
			return s
		}
	}
	return w
}
