package evidence

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/doctor/told"
	"busbar.dev/input/trainlog"
	"busbar.dev/internal/keywords"
)

// seen is one recogniser. A line that holds one of its words is matched against
// the pattern, whose groups become the arguments; the group named rank is who
// says it. Without a pattern the word is enough.
type seen struct {
	kind    Kind
	words   string // separated by |, without case
	also    string // words of which one must be there too, where the pattern is slow
	pattern string
	// take makes arguments from the groups, or from the line when there is no
	// pattern; it returns false when it is something else after all.
	take func(groups []string) ([]string, bool)
	// special marks the rows of lines that hold several things.
	special int
}

// Special rows.
const (
	settings  = 1 + iota // of an environment
	training             // steps of a training
	addresses            // of a host's interfaces
	waiting              // what a rank does while others wait
	warned               // a warning of NCCL, which counts where nothing knows it
)

// recogniser is a row made ready.
type recogniser struct {
	seen
	re    *regexp.Regexp
	rank  int           // group that names the rank, 0 none
	needs *keywords.Set // words of also; nil: none
	// digits are the words where some hold a digit; nil: none does. blind says that whether and where words and
	// pattern match does not depend on which digits a text has.
	digits *keywords.Set
	blind  bool
}

// Vocabulary is everything that readers look for, made ready: patterns and the
// automaton that finds their words. It is not changed by use, so that many readers
// may share one.
type Vocabulary struct {
	rows    []recogniser
	finder  *finder
	env     *envPatterns
	figures *figureReader
	subnets *subnetPatterns
	busy    *busyPatterns
}

// NewVocabulary makes the recognisers ready, which takes some milliseconds.
func NewVocabulary() *Vocabulary {
	rs := &Vocabulary{
		env: newEnvPatterns(), figures: newFigureReader(), subnets: newSubnetPatterns(), busy: newBusyPatterns(),
	}
	rs.finder = &finder{}
	for _, table := range [][]seen{
		seenLines(), seenHarmless(),
		{
			{words: envWords, special: settings},
			{words: trainlog.Words, special: training},
			{words: subnetWords, special: addresses},
			{words: busyWords + "|" + gaveUpWords, special: waiting},
			{words: "nccl warn", special: warned},
		},
	} {
		for _, s := range table {
			r := recogniser{seen: s}
			if s.pattern != "" {
				r.re = regexp.MustCompile(s.pattern)
				r.rank = max(r.re.SubexpIndex("rank"), 0)
			}
			r.blind = !strings.ContainsAny(s.words+s.also, digits) && blind(s.pattern)
			if strings.ContainsAny(s.words, digits) {
				r.digits = keywords.New(strings.Split(strings.ToLower(s.words), "|"))
			}
			if s.also != "" {
				r.needs = keywords.New(strings.Split(strings.ToLower(s.also), "|"))
			}
			rs.finder.addWords(len(rs.rows), s.words)
			rs.rows = append(rs.rows, r)
		}
	}
	rs.finder.set = keywords.NewDigitless(rs.finder.words)
	return rs
}

// finder finds the rows whose words are in a text.
type finder struct {
	set   *keywords.Set
	words []string
	of    []int // row of a word
}

func (f *finder) addWords(row int, words string) {
	for w := range strings.SplitSeq(words, "|") {
		f.words, f.of = append(f.words, strings.ToLower(w)), append(f.of, row)
	}
}

// rows lists the rows in the order of the table.
func (f *finder) rows(text string, hits []int) []int {
	hits = hits[:0]
	f.set.Scan(text, func(w int) {
		if row := f.of[w]; !slices.Contains(hits, row) {
			hits = append(hits, row)
		}
	})
	slices.Sort(hits)
	return hits
}

// find is where the groups of the pattern are; false where the pattern, or a word, is not there.
func (r *recogniser) find(text string) (at []int, ok bool) {
	if r.digits != nil && !r.digits.In(text) || r.needs != nil && !r.needs.In(text) {
		return nil, false
	}
	if r.re == nil {
		return nil, true
	}
	at = r.re.FindStringSubmatchIndex(text)
	return at, at != nil
}

// denied reports that a sentence says of what a row sees that it is not there.
func (r *recogniser) denied(text string, at []int) bool {
	if len(at) > 1 {
		return told.Denies(text, at[0], at[1])
	}
	low := strings.ToLower(text)
	for w := range strings.SplitSeq(strings.ToLower(r.words), "|") {
		if i := strings.Index(low, w); i >= 0 && len(low) == len(text) {
			return told.Denies(text, i, i+len(w))
		}
	}
	return false
}

// read looks closer: the arguments, and the rank where the line names it.
func (r *recogniser) read(text string, at []int) (args []string, rank int, ok bool) {
	rank = -1
	if r.re == nil && r.take != nil {
		args = []string{text}
	}
	for i := 2; i+1 < len(at); i += 2 {
		group := ""
		if at[i] >= 0 {
			group = text[at[i]:at[i+1]]
		}
		if i == 2*r.rank {
			rank = atoi(group)
			continue
		}
		args = append(args, group)
	}
	if r.take == nil {
		return args, rank, true
	}
	args, ok = r.take(args)
	return args, rank, ok
}

// atoi reads a short number; -1 when it is none.
func atoi(s string) int {
	if s == "" || len(s) > 9 {
		return -1
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
		n = 10*n + int(s[i]-'0')
	}
	return n
}

// What busbar's own programs print: bench, and whatever else runs on its engine.
const (
	RankDied   Kind = "rank-died"
	RankSilent Kind = "rank-silent"
	LocalDial  Kind = "local-dial"
	NotCome    Kind = "not-come"
	EngineRun  Kind = "engine-run"
)

// What frameworks warn of themselves, and temperatures.
const (
	FP32Matmul    Kind = "fp32-matmul"
	UnusedFlag    Kind = "unused-flag"
	LoaderWorkers Kind = "loader-workers"
	PinWithoutGPU Kind = "pin-without-gpu"
	HotGPU        Kind = "gpu-hot"
	// GPU, its temperature and power, the greatest temperature and least power of its equals
	HotAmongEqual Kind = "gpu-hot-apart"
)

func fewWorkers([]string) ([]string, bool)  { return []string{"few"}, true }
func manyWorkers([]string) ([]string, bool) { return []string{"many"}, true }

// hot keeps temperatures at which GPUs lower their clocks or soon will: data sheets give 87 to 98 °C.
func hot(g []string) ([]string, bool) {
	n, err := strconv.Atoi(g[0])
	return g, err == nil && n >= 90 && n <= 125
}
