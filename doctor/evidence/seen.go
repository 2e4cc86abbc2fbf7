package evidence

import (
	_ "embed" // for the table
	"regexp"
	"slices"
	"strings"

	"busbar.dev/doctor/told"
	"busbar.dev/input"
	"busbar.dev/input/nccllog"
	"busbar.dev/input/trainlog"
	"busbar.dev/internal/csvtable"
	"busbar.dev/internal/keywords"
	"busbar.dev/internal/lines"
)

//go:embed lines.csv
var lineTable string

// row is one recogniser: a row of lines.csv, where its columns are explained.
type row struct {
	Sees    string   `csv:"sees"`
	Words   []string `csv:"words"`
	Also    []string `csv:"also,optional"`
	Never   []string `csv:"never,optional"`
	Pattern string   `csv:"pattern,optional"`
	Says    []string `csv:"says,optional"`
	Takes   string   `csv:"takes,optional"`

	kind    Kind
	special int
	re      *regexp.Regexp
	rank    int // group that names the rank, 0 none
	// also and never are the words of these columns, digits the words where some hold a digit; nil: none.
	also, never, digits *keywords.Set
	blind               bool // whether and where it matches a text does not depend on which digits the text has
}

// Special rows, of lines that hold several things.
const (
	settings = 1 + iota // of an environment
	training            // steps of a training
	warned              // a warning of NCCL, which counts where nothing knows it
	begins              // a block of another format
)

// Vocabulary is everything that readers look for, made ready: patterns and the
// automaton that finds their words. It is not changed by use, so that many readers
// may share one.
type Vocabulary struct {
	rows []row
	set  *keywords.Set // of all words
	of   []int         // row of a word
	env  *envPatterns
}

// NewVocabulary makes the recognisers ready, which takes some milliseconds.
func NewVocabulary() *Vocabulary {
	v := &Vocabulary{env: newEnvPatterns()}
	v.rows = append(csvtable.Must[row]("lines.csv", lineTable),
		row{Words: strings.Split(envWords, "|"), special: settings},
		row{Words: strings.Split(trainlog.Words, "|"), special: training},
		row{Words: []string{"nccl warn"}, special: warned},
		row{Words: strings.Split(input.Marks, "|"), special: begins})
	var words []string
	for i := range v.rows {
		v.rows[i].ready()
		for _, w := range v.rows[i].Words {
			words, v.of = append(words, w), append(v.of, i)
		}
	}
	v.set = keywords.NewDigitless(words)
	return v
}

func (r *row) ready() {
	kind, _, _ := strings.Cut(r.Sees, "/")
	r.kind = Kind(kind)
	if r.Pattern != "" {
		r.re = regexp.MustCompile(r.Pattern)
		r.rank = max(r.re.SubexpIndex("rank"), 0)
	}
	if r.Also != nil {
		r.also = keywords.New(r.Also)
	}
	if r.Never != nil {
		r.never = keywords.New(r.Never)
	}
	if hasDigits(r.Words) {
		r.digits = keywords.New(r.Words)
	}
	r.blind = r.digits == nil && !hasDigits(r.Also) && !hasDigits(r.Never) && blind(r.Pattern)
}

func hasDigits(words []string) bool { return strings.ContainsAny(strings.Join(words, ""), digits) }

// find lists the rows whose words are in a text, in the order of the table.
func (v *Vocabulary) find(text string) []int {
	rows := v.set.All(text)
	for i, w := range rows {
		rows[i] = v.of[w]
	}
	return slices.Compact(rows)
}

// find is where the groups of the pattern are; false where the pattern, or a word, is not there.
func (r *row) find(text string) (at []int, ok bool) {
	if r.digits != nil && !r.digits.In(text) || r.also != nil && !r.also.In(text) || r.never != nil && r.never.In(text) {
		return nil, false
	}
	if r.re == nil {
		return nil, true
	}
	at = r.re.FindStringSubmatchIndex(text)
	return at, at != nil
}

// denied reports that a sentence says of what a row sees that it is not there.
func (r *row) denied(text string, at []int) bool {
	if len(at) > 1 {
		return told.Denies(text, at[0], at[1])
	}
	low := strings.ToLower(text)
	for _, w := range r.Words {
		if i := strings.Index(low, strings.ToLower(w)); i >= 0 && len(low) == len(text) {
			return told.Denies(text, i, i+len(w))
		}
	}
	return false
}

// read looks closer: the arguments, and the rank where the line names it.
func (r *row) read(text string, at []int) (args []string, rank int) {
	rank = -1
	for i := 2; i+1 < len(at); i += 2 {
		group := ""
		if at[i] >= 0 {
			group = text[at[i]:at[i+1]]
		}
		if i == 2*r.rank {
			rank = Atoi(group)
			continue
		}
		args = append(args, group)
	}
	if r.Says != nil {
		args = slices.Clone(r.Says)
	}
	if take := takes[r.Takes]; take != nil {
		args = take(args)
	}
	return args, rank
}

// takes are what is made of a pattern's groups, by their names in lines.csv.
var takes = map[string]func(groups []string) []string{
	"devices": devices, "lowered": lowered, "magnitude": magnitude, "shape": shapeOf,
}

func lowered(g []string) []string {
	for i, s := range g {
		g[i] = strings.TrimRight(strings.ToLower(strings.TrimSpace(s)), " .'\"")
	}
	return g
}

// shapeOf makes messages alike that differ in their numbers.
func shapeOf(g []string) []string { return []string{lines.Shape(g[0])} }

// magnitude keeps of a counter's value how large it is: values differ between hosts and times.
func magnitude(g []string) []string {
	return []string{strings.ToLower(g[0]), "1" + strings.Repeat("0", len(g[1])-1)}
}

// devices names those of "[0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>", and their link layers.
func devices(g []string) []string {
	var names, layers []string
	for _, n := range nccllog.ParseDevices("", g[0]).NICs {
		names = append(names, n.Name)
		if (n.Layer == "IB" || n.Layer == "RoCE") && !slices.Contains(layers, n.Layer) {
			layers = append(layers, n.Layer)
		}
	}
	slices.Sort(layers)
	return []string{strings.Join(names, ","), strings.Join(layers, "+")}
}

// Atoi reads a short number; -1 when it is none.
func Atoi(s string) int {
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
