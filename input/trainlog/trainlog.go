// Package trainlog reads how fast a training goes from what it prints at every step: nanotron, Megatron-LM, torchtitan,
// NeMo, DeepSpeed, Lightning, Hugging Face's Trainer and what builds on it, llm.c, nanoGPT, MaxText, and programs of
// one's own that print a loss beside a time, tokens/s, samples/s, it/s or MFU.
//
// A line is a row of numbers, each with words before it, or a unit behind it, that say what it is. Names are compared
// without case and without what is no letter, so that tokens_per_sec, "tokens per sec" and tokens/sec are one.
package trainlog

import (
	"cmp"
	_ "embed" // for the names
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"busbar.dev/input/internal/num"
	"busbar.dev/internal/csvtable"
	"busbar.dev/internal/lazyre"
)

// Line is what one line says. What it does not say is 0, but for Number and Rank, which are -1.
type Line struct {
	Number, Of, Rank int
	Seconds          float64 // of a step
	Trains           bool    // it names a loss, a learning rate or a norm of gradients
	Skipped          float64 // steps so far, for an overflow; less than 0: it does not say
	Scale            float64 // of the loss
	Rates

	bar    bool    // its number is of a bar
	loose  bool    // its number may be of something else: nothing names it
	clock  float64 // of the bar: seconds since it began
	avg    bool    // its time is the mean of all steps so far
	eta    bool    // it says how long the rest or the data takes, as those do whose times are seconds without a unit
	prints string  // of a row of words.csv
	nan    string  // which of loss and norm is nan
	memory float64 // the share of a GPU's that is taken
	retry  float64 // of CUDA's allocations, so many
	all    float64 // samples/s of all processes, at the end of a log whose lines are each of one
	loss   float64 // negative: the line names none
	Facts
}

// Rates are how fast a training goes. What is not said is 0.
type Rates struct {
	Tokens  float64 `json:"tokens_per_s,omitempty"`     // of all GPUs
	PerGPU  float64 `json:"tokens_per_s_gpu,omitempty"` // of one
	Samples float64 `json:"samples_per_s,omitempty"`
	MFU     float64 `json:"mfu,omitempty"`            // a share
	TFLOPS  float64 `json:"tflops_per_gpu,omitempty"` // of one GPU
}

// list are the rates, first those that tell most of the time of a step.
func (r *Rates) list() []*float64 {
	return []*float64{&r.Tokens, &r.PerGPU, &r.Samples, &r.TFLOPS, &r.MFU}
}

// Facts are what a log says about its job. What it does not say is 0.
type Facts struct {
	World    int `json:"gpus,omitempty"`
	DP       int `json:"dp,omitempty"`
	TP       int `json:"tp,omitempty"`
	PP       int `json:"pp,omitempty"`
	CP       int `json:"cp,omitempty"`
	EP       int `json:"ep,omitempty"`
	Batch    int `json:"global_batch,omitempty"`
	Micro    int `json:"micro_batch,omitempty"`
	Sequence int `json:"seq,omitempty"`
	Layers   int `json:"layers,omitempty"`
	Hidden   int `json:"hidden,omitempty"`
	Experts  int `json:"experts,omitempty"` // 1: none
	Params   int `json:"parameters,omitempty"`
}

// factNames are those of the fields in names.csv.
var factNames = strings.Fields("gpus dp tp pp cp ep global_batch micro_batch seq layers hidden experts parameters")

func (f *Facts) list() []*int {
	return []*int{
		&f.World, &f.DP, &f.TP, &f.PP, &f.CP, &f.EP, &f.Batch, &f.Micro, &f.Sequence, &f.Layers, &f.Hidden, &f.Experts,
		&f.Params,
	}
}

// join keeps what was said last, and of GPUs the most: stages of a pipeline count those of their own.
func (f *Facts) join(from Facts) {
	most := max(f.World, from.World)
	to := f.list()
	for i, v := range from.list() {
		if *v > 0 {
			*to[i] = *v
		}
	}
	f.World = most
}

// Against is what a log says that is otherwise in a job, as far as both say it; parameters are counted in several ways.
func (f *Facts) Against(job Facts) (other []string) {
	for i, v := range f.list() {
		if has := *job.list()[i]; *v > 0 && has > 0 && max(*v-has, has-*v) > has/1_000_000*20_000 {
			other = append(other, fmt.Sprintf("the log says %s=%d, the job has %d", factNames[i], *v, has))
		}
	}
	return other
}

// Words are those of which one is in every line that Parse is to be asked about.
const Words = "loss|tok/s|tokens/s|tokens_per_sec|it/s|s/it|samples/s|samplespersec|samples_per_sec|samples per sec|" +
	"images/sec|mfu|step_timing|step time|step_time|steptime|iteration time|iter time|iter_time|batch time|batch_time|" +
	"step took|allocation retries|skipped=|trl:|[step=|[batch=|batches_per_sec|world size|world_size|parallel size|" +
	"parallel_size|seq_length|n_layers|num_layers|hidden_size|hidden_layers|train batch size|cuda capacity|" +
	"global batch size|batch_size .|num_experts .|device mesh|total parameters"

// setter takes a number with its unit; false where it cannot be what the name says.
type setter func(l *Line, v float64, unit string) bool

//go:embed names.csv
var nameTable string

// givers are what takes a number, by their names in names.csv.
var givers = map[string]setter{
	"step": number, "rank": rank, "nothing": func(*Line, float64, string) bool { return true },
	"s": seconds, "ms": func(l *Line, v float64, _ string) bool { return seconds(l, v, "ms") }, "time": unitSeconds,
	"average": average, "per_s": perSecond,
	"tokens_per_s": rate(0, 1e12), "tokens_per_s_gpu": rate(1, 1e9), "samples_per_s": rate(2, 1e9), "mfu": share,
	"tflops_per_gpu": func(l *Line, v float64, _ string) bool { return l.TFLOPS == 0 && set(&l.TFLOPS, v, 1e5) },
	"trains":         func(l *Line, _ float64, _ string) bool { l.Trains = true; return true },
	"skipped":        func(l *Line, v float64, _ string) bool { l.Skipped = v; return true },
	"all":            func(l *Line, v float64, _ string) bool { l.all = v; return true },
	"scale":          func(l *Line, v float64, _ string) bool { return set(&l.Scale, v, 1e12) },
}

// ending is a name, and what it gives.
type ending struct {
	name string
	give setter
}

// named are the rows of names.csv: names, the longest first, and units.
var named = sync.OnceValue(func() (by struct {
	names []ending
	unit  map[string]setter
},
) {
	by.unit = map[string]setter{}
	for _, r := range csvtable.Must[struct {
		Name  string `csv:"name"`
		Gives string `csv:"gives"`
	}]("names.csv", nameTable) {
		give := givers[r.Gives]
		if give == nil {
			give = fact(r.Gives)
		}
		if unit, ok := strings.CutPrefix(r.Name, "N "); ok {
			by.unit[unit] = give
		} else {
			by.names = append(by.names, ending{r.Name, give})
		}
	}
	slices.SortFunc(by.names, func(a, b ending) int { return len(b.name) - len(a.name) })
	return by
})

func number(l *Line, v float64, unit string) bool {
	if v != float64(int(v)) || v < 0 || v > 1e9 || unit == "ms" || unit == "s" {
		return false
	}
	// A bar's is exact, and the others may be rounded; an iteration stands before the step that it is part of.
	if l.Number < 0 || l.loose {
		l.Number, l.loose = int(v), false
	}
	return true
}

func rank(l *Line, v float64, _ string) bool {
	if v < 0 || v > 1e9 || v != float64(int(v)) {
		return false
	}
	l.Rank = int(v)
	return true
}

// fact takes a whole number of the job; nanotron's 1.02K is none, for it is 1024.
func fact(name string) setter {
	at := slices.Index(factNames, name)
	return func(l *Line, v float64, unit string) bool {
		if v < 1 || v > 1e9 && name != "parameters" || v != float64(int(v)) || scales[unit] > 0 ||
			v == 1 && name == "gpus" { // as of code: (n + world_size - 1)
			return false
		}
		*l.Facts.list()[at] = int(v)
		return true
	}
}

func seconds(l *Line, v float64, unit string) bool {
	if unit == "ms" {
		v /= 1000
	}
	return set(&l.Seconds, v, 1e6)
}

// unitSeconds takes a time that has a unit: without one, a time may be of the day.
func unitSeconds(l *Line, v float64, unit string) bool {
	switch unit {
	case "ms", "s", "sec", "seconds":
		return l.Seconds == 0 && seconds(l, v, unit)
	case "":
		return l.Seconds == 0 && l.eta && l.Number >= 0 && seconds(l, v, unit)
	}
	return false
}

func average(l *Line, v float64, unit string) bool {
	l.avg = unitSeconds(l, v, unit)
	return l.avg
}

func perSecond(l *Line, v float64, _ string) bool {
	return v > 0 && l.Seconds == 0 && set(&l.Seconds, 1/v, 1e6)
}

// rate takes one of the rates, up to the most that is believed.
func rate(at int, most float64) setter {
	return func(l *Line, v float64, _ string) bool { return set(l.Rates.list()[at], v, most) }
}

// share takes 41.2% and 0.412.
func share(l *Line, v float64, unit string) bool {
	if strings.HasPrefix(unit, "%") || v > 1 {
		v /= 100
	}
	return set(&l.MFU, v, 1)
}

// set keeps a number that a training can have.
func set(to *float64, v, most float64) bool {
	if !(v > 0 && v <= most) {
		return false
	}
	*to = v
	return true
}

// maxLine is how much of a line is looked at.
const maxLine = 4 << 10

// form is what lines have in common that differ in nothing but which digits they hold.
type form struct {
	Line    // what is said without a number
	numbers []spot
}

// spot is a number of a line, and what may take it.
type spot struct {
	from, to   int
	unit       string
	scale      float64 // of what the letter behind it and the minus before it say
	bar, among bool    // a stroke stands behind it, or blanks and a stroke
	bare       bool    // no word stands before it
	takes      []setter
}

// newForm looks at the words of a line, whose names have no letters but those of ASCII.
func newForm(line string) form {
	low := []byte(line)
	for i, c := range low {
		if c-'A' < 26 {
			low[i] += 'a' - 'A'
		}
	}
	text := string(low)
	f := form{Line: Line{Number: -1, Rank: -1, Skipped: -1, loss: -1}}
	words().set.Scan(text, func(i int) {
		switch p := words().rows[i].Prints; {
		case p == "s":
			f.eta = true
		case p == "-" || f.prints == "":
			f.prints = p
		}
	})
	if strings.Contains(text, "nan") {
		for _, m := range notNumber.FindAllStringSubmatch(text, -1) {
			f.nan = min(cmp.Or(f.nan, m[1]), m[1])
		}
	}
	var buf [48]byte
	before := 0 // where the words before a number begin
	for from, to := nextNumber(text, 0); from >= 0; from, to = nextNumber(text, to) {
		rest := text[to:]
		name := string(letters(buf[:], text[before:from]))
		before = to
		f.Trains = f.Trains || strings.Contains(name, "loss")
		isLoss := strings.TrimPrefix(strings.TrimPrefix(name, "train"), "lm") == "loss"
		n := spot{
			from: from, to: to, scale: 1, bar: strings.HasPrefix(rest, "/"),
			among: strings.HasPrefix(strings.TrimLeft(rest, " "), "/"),
		}
		n.unit, _, _ = strings.Cut(strings.TrimPrefix(rest, " "), " ")
		if n.unit = strings.TrimRight(n.unit, ",;|])}'\""); strings.HasPrefix(n.unit, "(") { // an average
			n.unit = ""
		}
		for _, e := range named().names {
			if strings.HasSuffix(name, e.name) && e.give(&Line{eta: true}, 2, n.unit) { // any number in this unit
				n.takes = append(n.takes, e.give)
			}
		}
		if isLoss {
			n.takes = []setter{func(l *Line, v float64, _ string) bool { l.loss = v; return true }}
		}
		if from == 0 && strings.HasPrefix(rest, " | loss ") || strings.HasPrefix(rest, "\timages/sec") { // llama2.c
			n.takes = append(n.takes, number)
		}
		if strings.HasPrefix(rest, n.unit) {
			n.scale = cmp.Or(scales[n.unit], 1)
		}
		if from > 0 && text[from-1] == '-' && (from == 1 || !isWord(text[from-2])) {
			n.scale = -n.scale
		}
		if give := byUnit(name, rest, n.unit); give != nil {
			if n.takes == nil { // else it names the next number
				before += strings.Index(rest, n.unit) + len(n.unit)
			}
			n.takes = append(n.takes, give)
		}
		n.bare = name == ""
		if n.bar || n.among && n.bare || n.takes != nil {
			f.numbers = append(f.numbers, n)
		}
	}
	return f
}

// parse reads a line; false where it says nothing of a step or a job.
func (g *Log) parse(text string) (l Line, known bool) {
	text = text[:min(len(text), maxLine)]
	f := g.forms.Of(text, newForm)
	l = f.Line
	for i := range f.numbers {
		n := &f.numbers[i]
		num, rest := text[n.from:n.to], text[n.to:]
		known = n.bar && l.progress(num, rest) || l.take(n, num, rest) || known
	}
	return l, known
}

// take gives a number to what its name or its unit says that it is.
func (l *Line) take(n *spot, num, rest string) bool {
	value, err := strconv.ParseFloat(strings.ReplaceAll(num, ",", ""), 64)
	if err != nil {
		return false
	}
	value *= n.scale
	if n.among && n.bare && l.Number < 0 && l.among(rest, value) {
		return true
	}
	for _, give := range n.takes {
		if give(l, value, n.unit) {
			if n.among && l.Number >= 0 && l.Of == 0 {
				l.total(rest, value)
			}
			return true
		}
	}
	return false
}

// nextNumber finds a number that is no part of a word.
func nextNumber(text string, at int) (from, to int) {
	for i := at; i < len(text); i++ {
		if !isDigit(text[i]) || i > 0 && isWord(text[i-1]) {
			continue
		}
		end := i
		for end < len(text) && (isDigit(text[end]) || end+1 < len(text) && isDigit(text[end+1]) &&
			(text[end] == '.' || text[end] == ',')) {
			end++
		}
		if end+2 < len(text) && text[end] == 'e' && (text[end+1] == '+' || text[end+1] == '-') && isDigit(text[end+2]) {
			for end += 2; end < len(text) && isDigit(text[end]); end++ {
			}
		}
		return i, end
	}
	return -1, -1
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isWord(c byte) bool  { return isDigit(c) || c >= 'a' && c <= 'z' || c == '_' || c == '.' }

// scales are the letters with which nanotron shortens numbers.
var scales = map[string]float64{"k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}

var (
	bar   = lazyre.New(`^/(\d{1,9}) \[(\d[\d:]*)?(?:[^\d:<][^<]*)?<`)
	among = lazyre.New(`^(?:/(\d{1,9})(?: *\( *\d+%\))?\]| / (\d{1,9})\s)`)
	// Not llm.c's (+nanz), nor Megatron's number of nan iterations.
	notNumber = lazyre.New(`(loss|norm)['"]?[:= ]+nan\b`)
	steps     = lazyre.New(`^ */ *(\d{1,9})(?:[.,](?:\D|$)|[^\d.,]|$)`)
)

// progress reads "100/1000 [01:23<", which tqdm prints behind its bar.
func (l *Line) progress(step, rest string) bool {
	m := bar.FindStringSubmatch(rest)
	n, err := strconv.Atoi(step)
	if m == nil || err != nil {
		return false
	}
	of := num.Int(m[1])
	if n > of {
		return false
	}
	l.Number, l.Of, l.bar, l.clock = n, of, true, 0
	for part := range strings.SplitSeq(m[2], ":") { // 5:28:58
		l.clock = 60*l.clock + float64(num.Int(part))
	}
	return true
}

// among reads the step in "[50/2500]" and " 450 / 1891 ", which nothing names: mostly one of so many in an epoch.
func (l *Line) among(rest string, value float64) bool {
	m := among.FindStringSubmatch(rest)
	if m == nil {
		return false
	}
	of, _ := strconv.ParseFloat(m[1]+m[2], 64)
	l.loose = value <= of && number(l, value, "")
	return l.loose
}

// byUnit is what takes a number for its unit, if anything.
func byUnit(name, rest, unit string) setter {
	if give := named().unit[unit]; give != nil {
		return give
	}
	switch { // llm.c prints the time of a step and its MFU without names
	case name == "" && unit == "ms":
		return unitSeconds
	case strings.HasPrefix(rest, " total parameters"):
		return fact("parameters")
	case strings.HasPrefix(rest, " cuda memory allocation retries"):
		return func(l *Line, v float64, _ string) bool { return set(&l.retry, v, 1e9) }
	case name == "gib" && strings.HasPrefix(rest, "%)"):
		return func(l *Line, v float64, _ string) bool { l.prints = "torchtitan"; return set(&l.memory, v/100, 1) }
	case strings.HasPrefix(rest, "%"):
		if behind, _, _ := strings.Cut(rest, "|"); strings.HasSuffix(strings.TrimSpace(behind), " mfu") {
			return share
		}
	}
	return nil
}

// total is the number of steps behind that of one: "10/ 50", "10 / 50".
func (l *Line) total(rest string, value float64) {
	if m := steps.FindStringSubmatch(rest); m != nil && int(value) == l.Number {
		if of := num.Int(m[1]); of >= l.Number {
			l.Of = of
		}
	}
}

// letters are those of the words right before a number, which no bar, comma or bracket parts from it; the last ones.
func letters(buf []byte, words string) []byte {
	from := len(buf)
	for i := len(words) - 1; i >= 0 && from > 0; i-- {
		switch c := words[i]; {
		case c >= 'a' && c <= 'z':
			from--
			buf[from] = c
		case strings.IndexByte("|,;[]{}", c) >= 0:
			return buf[from:]
		}
	}
	return buf[from:]
}
