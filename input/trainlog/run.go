package trainlog

import (
	"cmp"
	_ "embed" // for the words
	"math"
	"slices"
	"strings"
	"sync"

	"busbar.dev/internal/alike"
	"busbar.dev/internal/csvtable"
	"busbar.dev/internal/keywords"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/stats"
)

// Run is how fast a training went, by its log. Figures are of the steps that are left when the first ones, which
// compile and allocate, are left out.
type Run struct {
	Framework string `json:"framework,omitempty"`
	First     int    `json:"first_step"`
	Last      int    `json:"last_step"`
	Of        int    `json:"of_steps,omitempty"`     // that the run was to have
	Lines     int    `json:"lines"`                  // with a rate or a time
	Again     int    `json:"begins_again,omitempty"` // so often the numbers of the steps do
	LeftOut   int    `json:"left_out"`               // of them: the first ones

	// Bar says that progress bars told the rate and nothing names a loss or a trainer: it may be of something else.
	Bar bool `json:"bar_alone,omitempty"`

	Step *Spread `json:"step_s,omitempty"`
	Rates

	// Share of the lines that took half as long again as the median, or longer, and how much longer the last fifth took
	// than the first: 0.1 is ten percent.
	Slow  float64 `json:"slow_share"`
	Drift float64 `json:"drift"`

	// Skipped is how many steps were skipped for an overflow, of so many; ScaleFell says that the scale of the loss fell
	// to 1, below which no framework takes it.
	Skipped   int  `json:"skipped,omitempty"`
	SkippedOf int  `json:"skipped_of,omitempty"`
	ScaleFell bool `json:"loss_scale_fell,omitempty"`

	// NaN is the loss or the norm of the gradients where it is nan to the end, in the last NaNs lines that name one, from
	// a step on; -1: no line numbers it. "zero" is a loss that fell to exactly 0.
	NaN     string `json:"nan,omitempty"`
	NaNs    int    `json:"nan_lines,omitempty"`
	NaNFrom int    `json:"nan_from_step,omitempty"`

	// Memory is the greatest share of a GPU's memory that is taken, and Retries how often CUDA's allocator had to try
	// again, where torchtitan says it.
	Memory  float64 `json:"memory_share,omitempty"`
	Retries float64 `json:"allocation_retries,omitempty"`

	GPU   string `json:"gpu,omitempty"`   // by its name
	Model string `json:"model,omitempty"` // by the name that programs of a plan print
	Facts
}

// Spread is the time of a step; of fewer than ten, P10 is the least and P90 the most.
type Spread struct {
	Median float64 `json:"median"`
	P10    float64 `json:"p10"`
	P90    float64 `json:"p90"`
	Worst  float64 `json:"worst"`
}

// Log collects the lines of one log.
type Log struct {
	facts      Facts
	gpu, model string
	framework  string
	lines      []Line
	stride     int // so many lines are passed over after one
	taken      int
	forms      alike.Memo[form]
	trains     bool
	numbered   bool   // lines name a loss and their step, so that bars are of something else
	open       int    // the step of a line before that names no rate; less than 1: none
	total      Line   // what Hugging Face's Trainer says of all steps at its end
	unnumbered []Line // that name a loss and a rate, and no step
	// The first and the last line that counts skipped steps, and the greatest and the last scale.
	counts        [2]Line
	scale, scaled float64
	losses        int // lines that name a loss and the like
	nan           string
	nans, nanFrom int

	memory, retries float64

	all, loss float64 // samples/s of all processes; the last loss above 0
	mixed     bool    // losses of 0 stand among others, as ranks print them that have none
}

// fallen is what is said, as of a loss that is nan, of one that fell to 0 at once.
const fallen = "zero"

const huggingFace = "Hugging Face Trainer"

// Bounds of what is kept and of what is believed.
const (
	maxKept   = 1 << 14
	leastLog  = 3 // lines
	leastBars = 2 // lines with a clock
	slower    = 1.5
)

//go:embed words.csv
var wordTable string

type wordRow struct {
	Word   string `csv:"word"`
	Prints string `csv:"prints"`
}

// words are the rows of words.csv, and what finds them.
var words = sync.OnceValue(func() (by struct {
	rows []wordRow
	set  *keywords.Set
},
) {
	by.rows = csvtable.Must[wordRow]("words.csv", wordTable)
	var list []string
	for _, r := range by.rows {
		list = append(list, r.Word)
	}
	by.set = keywords.New(list)
	return by
})

// gpuName is how torchtitan and the programs of a plan name the GPU.
var gpuName = lazyre.New(`(?:(\S+) on |CUDA capacity: )(NVIDIA .+?)(?: with |: )`)

// mesh is how torchtitan lists the names of degrees and then their sizes, or each with its own.
var mesh = lazyre.New(`mesh with (?:\[(.+?)\], \[(.+?)\]|parallelism: (.+))`)

// Take adds a line, and returns what it says; false where that is nothing of a step or the job.
func (g *Log) Take(text string) (Line, bool) {
	if g.taken++; g.taken%(g.stride+1) != 0 && !strings.Contains(text, "ank") { // a rank's times all count
		return Line{Number: -1, Rank: -1}, true
	}
	if strings.Contains(text, "NVIDIA ") {
		if m := gpuName.FindStringSubmatch(text); m != nil {
			g.model, g.gpu = m[1], m[2]
		}
	}
	if at := strings.Index(text, "Trainer step "); at > 0 { // behind a bar without an end, whose rate counts what compiles
		text = text[at:]
	}
	if m := mesh.FindStringSubmatch(text); m != nil {
		text = "mesh" + strings.ReplaceAll(m[3], " ", "mesh")
		sizes := strings.Split(m[2], ", ")
		for i, name := range strings.Split(m[1], ", ") {
			text += ",mesh" + name + sizes[min(i, len(sizes)-1)]
		}
	}
	if strings.Contains(text, "num_experts .") {
		text = strings.Replace(text, "None", "1", 1)
	}
	l, ok := g.parse(text)
	if !ok || l.prints == "-" {
		return Line{Number: -1, Rank: -1}, false
	}
	g.framework = cmp.Or(g.framework, l.prints)
	g.facts.join(l.Facts)
	g.trains = g.trains || l.Trains
	g.numbered = g.numbered || (l.Trains || l.prints == huggingFace) && l.Number >= 0 && !l.bar
	if l.Skipped >= 0 && l.Number >= 0 {
		if g.counts[1] = l; g.counts[0].Number == 0 {
			g.counts[0] = l
		}
	}
	if l.loss > 0 {
		g.mixed = g.mixed || g.nan == fallen && g.nans > 0
		g.loss = l.loss
	} else if l.loss == 0 && g.loss > 0.1 && !g.mixed && l.nan == "" {
		l.nan = fallen
	}
	g.all = max(g.all, l.all)
	g.memory, g.retries = max(g.memory, l.memory), max(g.retries, l.retry)
	if l.Trains || l.nan != "" {
		g.losses++
		switch {
		case l.nan == "" || l.nan == "norm" && l.Scale > 1: // a scale that is sought overflows
			g.nans = 0
		case g.nans == 0:
			g.nan, g.nans, g.nanFrom = l.nan, g.stride+1, l.Number
		default:
			g.nan, g.nans = min(g.nan, l.nan), g.nans+g.stride+1
		}
	}
	if l.Scale > 0 && l.Number >= 0 { // else a list of arguments names the least and the first
		g.scale, g.scaled = max(g.scale, l.Scale), l.Scale
	}
	if l.Number < 0 && l.prints == huggingFace && l.Seconds > 0 {
		g.total = l
	}
	if l.Number < 0 && l.rated() { // a line before has the step
		l.Number = cmp.Or(g.open, -1)
	} else if l.Number >= 0 && !l.bar {
		if g.open = l.Number; l.rated() {
			g.open = -1
		}
	}
	if l.Number < 0 && l.Trains && l.rated() && len(g.unnumbered) < maxKept {
		l.Number = len(g.unnumbered) + 1
		g.unnumbered = append(g.unnumbered, l)
		return l, true
	}
	if l.Number >= 0 && l.rated() {
		g.keep(l)
	}
	return l, l.rated() || l.Facts != Facts{}
}

// rated reports a line that says how fast it goes.
func (l *Line) rated() bool { return l.Seconds > 0 || l.Rates != Rates{} }

// keep keeps a line. Where they are many, every second one goes, and from then on one of two is looked at, of four, and
// so on. Other ranks repeat a step, and other timers: DeepSpeed's own, beside Megatron's, tells no time of a step.
func (g *Log) keep(l Line) {
	for i := range min(len(g.lines), 4) {
		if last := &g.lines[len(g.lines)-1-i]; last.Number == l.Number {
			if !l.bar && (last.bar || last.Seconds == 0 && l.Seconds > 0) {
				*last, l = l, *last
			}
			for i, to := range last.Rates.list() {
				*to = cmp.Or(*to, *l.Rates.list()[i])
			}
			return
		}
	}
	if len(g.lines) == maxKept {
		for i := range maxKept / 2 {
			g.lines[i] = g.lines[2*i]
		}
		g.lines = g.lines[:maxKept/2]
		g.stride = 2*g.stride + 1
	}
	g.lines = append(g.lines, l)
}

// Run is what the lines say together; nil where they are not of a training.
func (g *Log) Run() *Run {
	if len(g.lines) == 0 {
		g.lines = g.unnumbered
	}
	lines := slices.DeleteFunc(slices.Clone(g.lines),
		func(l Line) bool { return l.bar && g.numbered && !l.Trains })
	if len(lines) == 0 { // the bars alone say how fast it goes
		lines = slices.Clone(g.lines)
	}
	of := 0
	for i := range lines {
		of = max(of, lines[i].Of)
		if l := &lines[i]; g.framework == "torchtitan" && l.Tokens > 0 { // its tps are those of one GPU
			l.PerGPU, l.Tokens = l.Tokens, 0
		}
	}
	counted := slices.DeleteFunc(slices.Clone(lines), // what counts less is of evaluations and the like
		func(l Line) bool { return l.Of < of })
	if len(counted) >= leastLog {
		lines = counted
	}
	bars := len(lines) >= leastBars && lines[len(lines)-1].clock-lines[0].clock >= clockSpan &&
		!slices.ContainsFunc(lines, func(l Line) bool { return !l.bar })
	known := g.trains || g.framework != ""
	least := leastLog
	if g.framework != "" {
		least--
	}
	r := &Run{
		Bar: !known, Framework: g.framework, Of: of, Facts: g.facts, ScaleFell: g.scale > 1 && g.scaled == 1,
		Memory: g.memory, Retries: g.retries, GPU: g.gpu, Model: g.model,
		Skipped: int(g.counts[1].Skipped - g.counts[0].Skipped), SkippedOf: g.counts[1].Number - g.counts[0].Number,
	}
	if g.nans > 1 || g.nans > 0 && g.nan != "norm" {
		r.NaN, r.NaNs, r.NaNFrom = g.nan, g.nans, g.nanFrom
	}
	switch {
	case bars || len(lines) >= least && known:
	case g.losses >= least && (g.framework != "" || r.NaN != ""):
		if s := g.total.Seconds; s > 0 {
			r.Lines, r.Step, r.Rates = 1, &Spread{s, s, s, s}, g.total.Rates
		}
		return r
	default:
		return nil
	}
	for i := range lines[1:] {
		if lines[i+1].Number < lines[i].Number {
			r.Again++
		}
	}
	r.First, r.Last, r.Lines = lines[0].Number, lines[len(lines)-1].Number, len(lines)*(g.stride+1)
	lines = clocked(lines)
	times := make([]float64, len(lines)) // of a step, in what the lines say
	for i := range lines {
		times[i] = lines[i].pace()
	}
	first := warmUp(times)
	r.LeftOut = first * (g.stride + 1)
	lines, times = lines[first:], times[first:]
	if s := above(lines, func(l *Line) float64 { return l.Seconds }); 2*len(s) >= len(lines) && len(s) > 0 {
		r.Step = &Spread{stats.Median(s), stats.Quantile(s, 0.1), stats.Quantile(s, 0.9), slices.Max(s)}
		if len(s) < 10 {
			r.Step.P10, r.Step.P90 = slices.Min(s), r.Step.Worst
		}
		if last := &lines[len(lines)-1]; last.avg {
			r.Step = &Spread{last.Seconds, last.Seconds, last.Seconds, last.Seconds}
			return r
		}
	}
	for i, to := range r.Rates.list() {
		*to = stats.Median(above(lines, func(l *Line) float64 { return *l.Rates.list()[i] }))
	}
	r.Samples = cmp.Or(g.all, r.Samples)
	if r.World == 0 && r.PerGPU > 0 {
		r.World = int(math.Round(r.Tokens / r.PerGPU))
	}
	r.judge(times)
	return r
}

// clockSpan is how many seconds a bar's clock, which counts whole ones, must have gone on to tell a rate.
const clockSpan = 50

// clocked gives lines the time of a step that the clock of their bar tells, of those together within which it went on
// for long enough: the rate that a bar prints is a mean of all that was. Where no clock tells it, they are left as they
// are.
func clocked(lines []Line) []Line {
	var list []Line
	from := 0
	for i := range lines {
		a, b := &lines[from], &lines[i]
		switch {
		case !b.bar || b.Number <= a.Number || b.clock < a.clock: // another epoch begins
			from = i
		case b.clock-a.clock >= clockSpan:
			for _, l := range lines[from+1 : i+1] {
				l.Seconds = (b.clock - a.clock) / float64(b.Number-a.Number)
				list = append(list, l)
			}
			from = i
		}
	}
	if len(list) == 0 {
		return lines
	}
	return list
}

// above are the values that lines have.
func above(lines []Line, value func(*Line) float64) (list []float64) {
	for i := range lines {
		if v := value(&lines[i]); v > 0 {
			list = append(list, v)
		}
	}
	return list
}

// pace is what a line says of the time of a step, in a unit of its own: only compared with that of other lines.
func (l *Line) pace() float64 {
	for _, rate := range l.Rates.list() {
		if l.Seconds == 0 && *rate > 0 {
			return 1 / *rate
		}
	}
	return l.Seconds
}

// warmUp is how many of the first steps took more than a fifth longer than the median, at most a third of all,
// or one of two.
func warmUp(times []float64) int {
	usual := 1.2 * median(times)
	for i, t := range times {
		if t <= usual || 3*(i+1) > max(len(times), 3) {
			return i
		}
	}
	return 0
}

// judge says how even the steps are.
func (r *Run) judge(times []float64) {
	usual, slow := median(times), 0
	for _, t := range times {
		if t >= slower*usual {
			slow++
		}
	}
	r.Slow = float64(slow) / float64(max(len(times), 1))
	if part := len(times) / 5; part >= 2 {
		r.Drift = median(times[len(times)-part:])/median(times[:part]) - 1
	}
}

// median leaves the list in its order.
func median(list []float64) float64 { return stats.Median(slices.Clone(list)) }
