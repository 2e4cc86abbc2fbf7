package cause

import (
	"maps"
	"math"
	"slices"
	"strings"

	"busbar.dev/doctor/told"
)

// Row is a row of threads.csv, a report whose cause is known, or of described.csv, how somebody would tell of one.
type Row struct {
	Thread string   `csv:"thread,optional"`
	Causes []string `csv:"causes,optional"`
	Words  string   `csv:"words,optional"` // Words of what was told
	Why    string   `csv:"why,optional"`   // Words of its cause and its fix
	Shown  []string `csv:"shown,optional"` // what lines said of its cause
}

// memory is what was learned: threads, the causes' own texts, and descriptions of each.
type memory struct {
	rows  []Row
	said  []Row
	all   float64            // threads
	idf   map[string]float64 // how seldom a word is among threads
	texts [fTexts]index      // by the feature that compares with them
}

// index finds texts by their words.
type index struct {
	texts []text
	with  map[string][]int32 // texts that hold a word
}

type text struct {
	length, words float64
	causes        []string
	id            string // of a thread
}

const (
	fewWords   = 10   // and pairs of words; fewer tell little
	pairWeight = 0.35 // a pair of words tells less than both
	longText   = 10   // squared: words beyond make an answer no surer
	smoothing  = 500  // words that every cause is taken to have of all texts' words
	further    = 0.7  // what each text tells of the one that is nearer
	asked      = 0.8  // the power of the length by which what is told is divided: more words tell more
)

func newMemory(rows, said []Row, causes []*Cause) *memory {
	y := &memory{rows: rows, said: said, all: float64(len(rows) + len(said)), idf: map[string]float64{}}
	for _, r := range slices.Concat(rows, said) {
		for _, w := range terms(r.Words) {
			y.idf[w]++
		}
	}
	for w, n := range y.idf {
		y.idf[w] = math.Log((y.all + 1) / (n + 0.5))
	}
	for _, r := range rows {
		y.addText(fNear, r.Thread, r.Causes, r.Words)
		y.addText(fWhy, r.Thread, r.Causes, r.Why)
	}
	for _, r := range said {
		y.addText(fSaid, r.Thread, r.Causes, r.Words)
	}
	for _, c := range causes {
		for _, text := range []string{c.Title + ". " + c.Why, c.Fix + ". " + c.Ask + ". " + c.Test} {
			y.addText(fDoc, "", []string{c.ID}, Words(text))
		}
	}
	return y
}

func (y *memory) addText(kind int, id string, causes []string, words string) {
	list := terms(words)
	if len(list) == 0 || len(causes) == 0 {
		return
	}
	t := &y.texts[kind]
	if t.with == nil {
		t.with = map[string][]int32{}
	}
	for _, w := range list {
		t.with[w] = append(t.with[w], int32(len(t.texts)))
	}
	t.texts = append(t.texts, text{y.length(list), float64(len(list)), causes, id})
}

// weigh is what a word tells.
func (y *memory) weigh(w string) float64 {
	x, ok := y.idf[w]
	if !ok {
		x = math.Log((y.all + 1) / 0.5)
	}
	if strings.Contains(w, " ") {
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

// likeness is how much a text resembles those of each kind, by cause: the cosine with the nearest, and of each further
// one a part of the one before. Of all texts of a cause together it is how likely they make its words. How often it was
// the cause of a thread is the last.
func (y *memory) likeness(text, without string) (of [fSuggests]map[string]float64) {
	words := terms(text)
	length := math.Pow(y.length(words), asked)
	said := make([]map[string]float64, len(words)) // how many of a cause's texts have a word
	size, all := map[string]float64{}, 0.0
	of[fOften] = map[string]float64{}
	for k := range y.texts {
		of[k] = map[string]float64{}
		t := &y.texts[k]
		share := make([]float64, len(t.texts)) // of each of its causes in a text
		for i, x := range t.texts {
			if without == "" || x.id != without {
				share[i] = 1 / float64(len(x.causes))
				all += x.words
			}
			for _, id := range x.causes {
				size[id] += float64(x.words * share[i])
				if k == fNear {
					of[fOften][id] += share[i]
				}
			}
		}
		dots := make([]float64, len(t.texts))
		for at, w := range words {
			if said[at] == nil {
				said[at] = map[string]float64{}
			}
			x := y.weigh(w)
			for _, i := range t.with[w] {
				dots[i] += float64(x * x)
				for _, id := range t.texts[i].causes {
					said[at][id] += share[i]
				}
			}
		}
		best := map[string][]float64{}
		for i, d := range dots {
			for _, id := range t.texts[i].causes {
				if d > 0 && share[i] > 0 {
					best[id] = append(best[id], d/(length*t.texts[i].length))
				}
			}
		}
		for id, list := range best {
			of[k][id] = fading(list) * min(1, float64(len(words))/fewWords)
		}
	}
	for id, n := range of[fOften] {
		of[fOften][id] = math.Log1p(n)
	}
	of[fTexts] = likelihood(said, size, all)
	return of
}

// likelihood is that of words by the texts of each cause, as a model of language with Dirichlet's smoothing has it.
func likelihood(said []map[string]float64, size map[string]float64, all float64) map[string]float64 {
	of := map[string]float64{}
	n := float64(len(said))
	for id, words := range size {
		of[id] = float64(n * math.Log(smoothing/(words+smoothing)))
	}
	for _, by := range said {
		sum := 0.5
		for _, id := range slices.Sorted(maps.Keys(by)) {
			sum += by[id]
		}
		for id, times := range by {
			of[id] += math.Log(1 + float64(times*all/(smoothing*sum)))
		}
	}
	for id := range of {
		of[id] /= max(math.Sqrt(n), n/longText, 1)
	}
	return of
}

// fading adds values, the greatest in full and of each further one a lesser part.
func fading(list []float64) float64 {
	slices.Sort(list)
	sum, part := 0.0, 1.0
	for _, v := range slices.Backward(list) {
		sum += float64(part * v)
		part *= further
	}
	return sum
}

// Words are the words of a text as they are compared: without endings and without those that say nothing, clauses
// parted by full stops. What was tried in vain, or is in order, is left out.
func Words(text string) string { return wordsOf(told.Read(text, nil)) }

func wordsOf(clauses []told.Clause) string {
	var list []string
	for i := range clauses {
		if v := clauses[i].Verdict; v == told.Seen || v == told.Works {
			list = append(list, strings.Join(stems(clauses[i].Norm), " "))
		}
	}
	return strings.Join(list, " . ")
}

func stems(norm string) (list []string) {
	for w := range strings.FieldsSeq(norm) {
		if len(w) >= 2 && len(w) <= 40 && !slices.Contains(stopWords, " "+w+" ") {
			list = append(list, stem(w))
		}
	}
	return list
}

func stem(w string) string {
	for _, end := range []string{"ing", "ed", "es", "s"} {
		if s, ok := strings.CutSuffix(w, end); ok && len(s) >= 4 {
			return s
		}
	}
	return w
}

// terms are words, and pairs of words that follow each other in a clause, each once.
func terms(words string) (list []string) {
	for clause := range strings.SplitSeq(words, " . ") {
		w := strings.Fields(clause)
		list = append(list, w...)
		for i := 1; i < len(w); i++ {
			list = append(list, w[i-1]+" "+w[i])
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// stopWords say nothing.
var stopWords = told.Words("stop")
