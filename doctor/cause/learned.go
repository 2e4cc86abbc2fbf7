package cause

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
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

// termRow is a row of terms.csv: how many threads hold a word, and how many of each cause.
type termRow struct {
	Word    string   `csv:"word"`
	Threads float64  `csv:"threads"`
	Causes  []string `csv:"causes,optional"` // name=threads
}

// anyWord is the row that counts all threads.
const anyWord = "*"

// terms are the words of threads by cause.
type terms struct {
	all     float64            // threads
	of      map[string]float64 // threads of a cause
	word    map[string]float64 // threads with a word
	both    map[string]float64 // threads with a word, of a cause
	written map[string][]string
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
	words, err := table[termRow]("terms.csv")
	if err != nil {
		return err
	}
	signs, err := table[signRow]("signs.csv")
	if err != nil {
		return err
	}
	m.take(words, signs)
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

// take replaces what was counted.
func (m *Model) take(words []termRow, signs []signRow) {
	t := &terms{of: map[string]float64{}, word: map[string]float64{}, both: map[string]float64{}, written: map[string][]string{}}
	for _, r := range words {
		if r.Word == anyWord {
			t.all = r.Threads
		} else {
			t.word[r.Word] = r.Threads
		}
		for _, x := range r.Causes {
			id, count, _ := strings.Cut(x, "=")
			n, err := strconv.ParseFloat(count, 64)
			switch {
			case err != nil:
			case r.Word == anyWord:
				t.of[id] = n
			default:
				t.both[id+"\t"+r.Word] = n
			}
		}
	}
	for _, c := range m.causes {
		t.written[c.ID] = c.vocabulary()
	}
	m.terms, m.counts = t, map[string]float64{}
	for _, r := range signs {
		m.counts[r.Sign] = r.Threads
	}
}

// vocabulary are the words of a cause's own description and signs.
func (c *Cause) vocabulary() []string {
	text := normalise(c.Title + " " + c.Why + " " + c.Fix)
	for _, k := range []int{strong, weak, helps} {
		for _, s := range c.signs[k] {
			text += normalise(strings.NewReplacer("|", " ", "+", " ").Replace(s.text))
		}
	}
	list := stems(text)
	slices.Sort(list)
	return slices.Compact(list)
}

// Pseudo-threads: how much the background, and a cause's own description, count.
const (
	background  = 3.0
	description = 1.0
	priorMass   = 0.5
	often       = 8.0  // threads beyond this say more of what was collected than of the field
	fewWords    = 20.0 // and pairs of words; fewer tell little
)

// score is how much likelier words are with a cause than with any, in nats, shortened for long texts.
func (t *terms) score(words []string, c *Cause, without *Thread) float64 {
	n := t.of[c.ID]
	share := 0.0
	if without != nil {
		share = without.shareOf(c)
		n -= share
	}
	written := t.written[c.ID]
	sum := 0.0
	for _, w := range words {
		b := (t.word[w] + 0.5) / (t.all + 1)
		k := t.both[c.ID+"\t"+w]
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
func (t *terms) prior(c *Cause, without *Thread) float64 {
	n := t.of[c.ID]
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
	Case

	ready *example
}

func (t *Thread) shareOf(c *Cause) float64 {
	if !slices.Contains(t.Accept, c.ID) {
		return 0
	}
	return 1 / float64(len(t.Accept))
}

// Learn counts signs and words of threads.
func (m *Model) Learn(threads []*Thread) { m.take(countWords(threads), m.countSigns(threads)) }

func countWords(threads []*Thread) (list []termRow) {
	n := map[string]float64{anyWord: float64(len(threads))}
	by := map[string]map[string]float64{}
	for _, t := range threads {
		for i, w := range append([]string{anyWord}, t.Told.words...) {
			if i > 0 {
				n[w]++
			}
			for _, id := range t.Accept {
				if by[w] == nil {
					by[w] = map[string]float64{}
				}
				by[w][id] += 1 / float64(len(t.Accept))
			}
		}
	}
	for _, w := range slices.Sorted(maps.Keys(n)) {
		if w != anyWord && n[w] < 2 {
			continue
		}
		r := termRow{Word: w, Threads: n[w]}
		for _, id := range slices.Sorted(maps.Keys(by[w])) {
			r.Causes = append(r.Causes, id+"="+strconv.FormatFloat(by[w][id], 'g', 3, 64))
		}
		list = append(list, r)
	}
	return list
}

func (m *Model) countSigns(threads []*Thread) (list []signRow) {
	for _, c := range m.causes {
		for _, kind := range []int{strong, weak} {
			for i := range c.signs[kind] {
				s := &c.signs[kind][i]
				k := 0.0
				for _, t := range threads {
					if !slices.Contains(t.Accept, c.ID) && t.shows(c, s) {
						k++
					}
				}
				name := signName(c, s)
				if k > 0 && !slices.ContainsFunc(list, func(r signRow) bool { return r.Sign == name }) {
					list = append(list, signRow{name, k})
				}
			}
		}
	}
	return list
}

func signName(c *Cause, s *sign) string { return c.ID + ": " + s.text }

// shows reports that a thread shows a sign of a cause, in one clause or over several.
func (t *Thread) shows(c *Cause, s *sign) bool {
	return s.in(t.Told.all) && (len(s.terms) > 1 || slices.ContainsFunc(t.Told.Observations, func(o Observation) bool { return speaks(&o, c, s) }))
}
