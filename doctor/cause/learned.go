package cause

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"busbar.dev/internal/csvtable"
)

// weightRow is a row of weights.csv.
type weightRow struct {
	Feature string  `csv:"feature"`
	Weight  float64 `csv:"weight"`
}

// signRow is a row of signs.csv: how many threads of other causes show a sign. Signs that none shows are left out.
type signRow struct {
	Sign    string  `csv:"sign"` // cause: words
	Threads float64 `csv:"threads"`
}

// threadRow is a row of threads.csv: what was told in a thread whose cause is known.
type threadRow struct {
	Thread string   `csv:"thread"`
	Causes []string `csv:"causes,optional"`
	Words  string   `csv:"words,optional"` // stems of what was seen, in order, clauses parted by full stops
	Why    string   `csv:"why,optional"`   // likewise of its cause and its fix
}

// memory is the threads that were learned from, and the causes' own descriptions.
type memory struct {
	all    float64            // threads
	of     map[string]float64 // threads of a cause
	idf    map[string]float64 // how seldom a word is
	seldom float64            // of a word that no thread holds
	texts  [kindsOfText]texts
	both   map[string]float64  // threads with a word, of a cause or an area
	areas  map[string]string   // of causes
	own    map[string][]string // words of a cause's description
}

// Kinds of texts that what is told is compared with.
const (
	toldText = iota // what was seen in threads
	whyText         // why it was so, and the fix
	docText         // causes' descriptions
	kindsOfText
)

// texts are vectors of words with the causes they speak for.
type texts struct {
	length []float64
	causes [][]string
	ids    []string           // of threads
	with   map[string][]int32 // texts that hold a word
}

// learned fills the model with what the fit wrote.
func (m *Model) learned() error {
	weights, err := table[weightRow]("weights.csv")
	if err != nil {
		return err
	}
	for _, r := range weights {
		switch r.Feature {
		case "calibrate-offset":
			m.offset = r.Weight
			continue
		case "calibrate-slope":
			m.slope = r.Weight
			continue
		}
		i := slices.Index(FeatureNames[:], r.Feature)
		if i < 0 {
			return fmt.Errorf("weights.csv: no feature %q", r.Feature)
		}
		m.weights[i] = r.Weight
	}
	rows, err := table[threadRow]("threads.csv")
	if err != nil {
		return err
	}
	signs, err := table[signRow]("signs.csv")
	if err != nil {
		return err
	}
	records, err := table[recordRow]("records.csv")
	if err != nil {
		return err
	}
	m.takeRows(rows, signs, records)
	return nil
}

func table[T any](name string) ([]T, error) {
	text, err := data.ReadFile(name)
	if err != nil {
		return nil, err
	}
	rows, err := csvtable.Read[T](string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return rows, nil
}

// takeRows replaces what was learned.
func (m *Model) takeRows(rows []threadRow, signs []signRow, records []recordRow) {
	y := &memory{
		all: float64(len(rows)), of: map[string]float64{}, idf: map[string]float64{}, both: map[string]float64{},
		own: map[string][]string{}, areas: map[string]string{},
	}
	for _, c := range m.causes {
		y.areas[c.ID] = areaPrefix + c.Area
	}
	for _, r := range rows {
		share := 1 / float64(len(r.Causes))
		for _, id := range r.Causes {
			y.of[id] += share
			y.of[y.areas[id]] += share
		}
		for _, w := range pairsOf(r.Words) {
			y.idf[w]++
			for _, id := range r.Causes {
				y.both[id+"\t"+w] += share
				y.both[y.areas[id]+"\t"+w] += share
			}
		}
	}
	for w, n := range y.idf {
		y.idf[w] = math.Log((y.all + 1) / (n + 0.5))
	}
	y.seldom = math.Log((y.all + 1) / 0.5)
	for _, r := range rows {
		y.fileText(toldText, r.Thread, r.Causes, r.Words)
		y.fileText(whyText, r.Thread, r.Causes, r.Why)
	}
	for _, c := range m.causes {
		text := c.vocabulary()
		y.fileText(docText, "", []string{c.ID}, text)
		y.own[c.ID] = pairsOf(text)
	}
	m.memory, m.counts = y, map[string]float64{}
	for _, r := range signs {
		m.counts[r.Sign] = r.Threads
	}
	m.takeRecords(records)
	m.helpers()
}

// helpers counts how many causes a remedy may speak for.
func (m *Model) helpers() {
	m.remedies = nil
	for _, c := range m.causes {
		if len(c.signs[helps]) > 0 {
			m.remedies = append(m.remedies, c)
		}
	}
}

// fileText files a text.
func (y *memory) fileText(kind int, id string, causes []string, text string) {
	words := pairsOf(text)
	if len(words) == 0 || len(causes) == 0 {
		return
	}
	t := &y.texts[kind]
	if t.with == nil {
		t.with = map[string][]int32{}
	}
	for _, w := range words {
		t.with[w] = append(t.with[w], int32(len(t.length)))
	}
	t.length, t.causes, t.ids = append(t.length, y.length(words)), append(t.causes, causes), append(t.ids, id)
}

// weigh is what a word tells.
func (y *memory) weigh(w string) float64 {
	x, ok := y.idf[w]
	if !ok {
		x = y.seldom
	}
	if strings.Contains(w, " ") { // a pair of words tells less than both
		x *= pairWeight
	}
	return x
}

func (y *memory) length(words []string) float64 {
	sum := 0.0
	for _, w := range words {
		x := y.weigh(w)
		sum += float64(x * x)
	}
	return math.Sqrt(sum)
}

// vocabulary are the stems of a cause's own description and signs.
func (c *Cause) vocabulary() string {
	list := []string{stemsOf(c.Title + ". " + c.Why), stemsOf(c.Fix)}
	for _, k := range []int{strong, weak, helps} {
		for _, s := range c.signs[k] {
			list = append(list, stemsOf(strings.NewReplacer("|", " ", "+", " ").Replace(s.text)))
		}
	}
	told := Told{}
	told.Add(c.Title+". "+c.Why, Seen)
	told.finish()
	for _, s := range c.Symptoms {
		told.symptoms[s] = true
	}
	for _, s := range c.Where {
		told.tags[s] = true
	}
	list = append(list, marks(told.symptoms, told.tags)...)
	return strings.Join(list, " . ")
}

// Pseudo-threads: how much the background, and a cause's own description, count.
const (
	background  = 3.0
	description = 1.0
	priorMass   = 0.5
	often       = 8.0  // threads beyond this say more of what was collected than of the field
	fewWords    = 20.0 // and pairs of words; fewer tell little
	pairWeight  = 0.5
)

// likeness is how much what is told resembles texts of each cause, and how likely its words are.
type likeness struct {
	text   [kindsOfText]map[string]float64
	likely map[string]float64
	family map[string]float64 // by area
}

// areaPrefix tells the counts of an area from those of a cause.
const areaPrefix = "area:"

// alike compares what is told with all that was learned. without is left out.
func (y *memory) alike(t *Told, causes []*Cause, without *Thread) (l likeness) {
	for k := range l.text {
		l.text[k] = y.texts[k].alike(y, t.words, without)
	}
	l.likely, l.family = map[string]float64{}, map[string]float64{}
	for _, c := range causes {
		share := 0.0
		if without != nil {
			share = without.shareOf(c)
		}
		l.likely[c.ID] = y.score(t.words, c.ID, y.own[c.ID], share)
		if _, done := l.family[c.Area]; !done {
			share = 0
			if without != nil {
				for _, id := range without.Accept {
					if y.areas[id] == areaPrefix+c.Area {
						share += 1 / float64(len(without.Accept))
					}
				}
			}
			l.family[c.Area] = y.score(t.words, areaPrefix+c.Area, nil, share)
		}
	}
	return l
}

// alike are the cosines with the nearest texts of each cause; further ones count half of the one before.
func (t *texts) alike(y *memory, words []string, without *Thread) map[string]float64 {
	near := map[string]float64{}
	length := y.length(words)
	if length == 0 {
		return near
	}
	dots := make([]float64, len(t.length))
	for _, w := range words {
		x := y.weigh(w)
		for _, i := range t.with[w] {
			dots[i] += float64(x * x)
		}
	}
	best := map[string][]float64{}
	for i, d := range dots {
		if d == 0 || without != nil && t.ids[i] == without.ID {
			continue
		}
		for _, id := range t.causes[i] {
			best[id] = append(best[id], d/(length*t.length[i]))
		}
	}
	for id, list := range best {
		near[id] = halving(list)
	}
	return near
}

// score is how much likelier words are with a cause, or an area, than with any, in nats, shortened for long texts.
// share is how much of a thread to leave out is counted for it.
func (y *memory) score(words []string, id string, written []string, share float64) float64 {
	n := y.of[id] - share
	sum := 0.0
	for _, w := range words {
		b := (float64(len(y.texts[toldText].with[w])) + 0.5) / (y.all + 1)
		k := y.both[id+"\t"+w]
		if share > 0 && k > 0 {
			k = max(0, k-share)
		}
		if _, ok := slices.BinarySearch(written, w); ok {
			k += description
		}
		sum += math.Log((k + float64(background*b)) / (n + description + background) / b)
	}
	said := float64(len(words))
	return sum * 10 / (10 + said) * min(1, said/fewWords)
}

// prior is the logarithm of how often a cause was the one.
func (y *memory) prior(c *Cause, without *Thread) float64 {
	n := y.of[c.ID]
	if without != nil {
		n -= without.shareOf(c)
	}
	return math.Log((min(n, often) + priorMass) / (1 + priorMass))
}

// Thread is a case whose cause is known.
type Thread struct {
	ID, Project string
	Accept      []string // names of causes that answer it
	Kind        string   // of its main evidence
	Pull        bool     // it is a change, not a question: its cause is known from the start
	Why         string   // its cause and fix, in words
	Case

	ready *example
}

func (t *Thread) shareOf(c *Cause) float64 {
	if !slices.Contains(t.Accept, c.ID) {
		return 0
	}
	return 1 / float64(len(t.Accept))
}

func signName(c *Cause, s *sign) string { return c.ID + ": " + s.text }
