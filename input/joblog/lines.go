package joblog

import (
	"cmp"
	_ "embed" // for the shapes
	"slices"
	"strconv"
	"strings"
	"sync"

	"busbar.dev/internal/csvtable"
	"busbar.dev/internal/keywords"
	"busbar.dev/internal/lazyre"
)

//go:embed lines.csv
var lineTable string

// shape is a row of lines.csv.
type shape struct {
	Word    string   `csv:"word"`
	Kind    Kind     `csv:"kind,optional"`
	By      string   `csv:"by"`
	Once    bool     `csv:"once,optional"`
	Never   []string `csv:"never,optional"`
	Pattern string   `csv:"pattern,optional"`
	Source  string   `csv:"source"`

	line *lazyre.Regexp
}

// shapes are the rows, and what finds their words.
var shapes = sync.OnceValue(func() (all struct {
	rows []shape
	set  *keywords.Set
},
) {
	var words []string
	all.rows = csvtable.Must[shape]("lines.csv", lineTable)
	for i := range all.rows {
		s := &all.rows[i]
		s.line = lazyre.New(s.Pattern)
		words = append(words, s.Word)
	}
	all.set = keywords.New(words)
	return all
})

// match is the first of these rows that is of a writer and that a text has; nil for none.
func (r *Reader) match(by string, e *Event, text string) *shape {
	for _, i := range r.rows {
		s := &shapes().rows[i]
		holds := func(word string) bool { return strings.Contains(text, word) }
		if s.By == by && holds(s.Word) && !slices.ContainsFunc(s.Never, holds) &&
			(s.Pattern == "" || r.fill(e, s.line, text)) {
			return s
		}
	}
	return nil
}

// take adds the event of the row that matches, if any. One without a kind says that there is none.
func (r *Reader) take(by string, e Event) bool {
	s := r.match(by, &e, e.Text)
	if s == nil {
		return false
	}
	if s.Kind == Exit && len(e.Ranks) == 1 {
		e.Rank = e.Ranks[0]
	}
	if by == "kernel" {
		e.Host = cmp.Or(e.Host, HostOf(r.log.Name, e.Text))
	}
	switch e.Kind = s.Kind; {
	case s.Kind == "":
	case s.Kind == Mismatch:
		r.mismatch(e.Text)
	case s.Once:
		r.addOnce(e, "", r.rank)
	default:
		r.addEvent(e)
	}
	return true
}

// fill gives an event the named groups of an expression; false where it does not match.
func (r *Reader) fill(e *Event, line *lazyre.Regexp, text string) bool {
	g := line.Groups(text)
	if g == nil {
		return false
	}
	for name, to := range map[string]*string{"op": &e.Op, "host": &e.Host, "bus": &e.Bus, "text": &e.Text} {
		*to = cmp.Or(g[name], *to)
	}
	signal, in, out := signals[g["ended"]], 0, 0
	for name, to := range map[string]*int{
		"seq": &e.Seq, "enqueued": &e.Enqueued, "done": &e.Done, "nranks": &e.NRanks, "rank": &e.Rank,
		"grouprank": &e.GroupRank, "pid": &e.PID, "code": &e.Code, "signal": &signal, "in": &in, "out": &out,
	} {
		if n, err := strconv.Atoi(g[name]); err == nil {
			*to = n
		}
	}
	if small, large := min(in, out), max(in, out); small > 0 && large%small == 0 &&
		(strings.Contains(e.Op, "ALLGATHER") || strings.Contains(e.Op, "REDUCE_SCATTER")) {
		e.NRanks = large / small // one side has the parts of all
	}
	if g["ranks"] != "" {
		e.Ranks = taskList(g["ranks"], min(1<<16, maxListed-r.listed)) // a short line can name very many
	}
	if signal > 0 {
		e.Code = -signal
	}
	return true
}

// taskList reads numbers of ranks, so many at most: Slurm's 3, 0-2 and 0,4-7, PyTorch's 5, 6.
func taskList(s string, most int) []int {
	var list []int
	for part := range strings.SplitSeq(s, ",") {
		low, high, _ := strings.Cut(strings.TrimSpace(part), "-")
		a, err := strconv.Atoi(low)
		b, err2 := strconv.Atoi(cmp.Or(high, low))
		if err != nil || err2 != nil || b-a > 1<<16 || b >= 1<<20 {
			continue
		}
		for ; a <= b && len(list) < most; a++ {
			list = append(list, a)
		}
	}
	return list
}

// signals are those that srun has words for.
var signals = map[string]int{"Killed": 9, "Aborted": 6, "Segmentation": 11, "Terminated": 15, "CANCELLED": 15}

var (
	groupLine = lazyre.New(`\[PG (?:ID (\d+) PG GUID )?([^\s(]+)(?:\(([^)]*)\))? Rank (\d+)\]`)
	// tableLine is one of torchrun's table of ranks that failed, of which the exit code is the last. The root cause is
	// the last table.
	tableLine = lazyre.New(`^\s*(?:time\s*: \d|(?P<op>Root Cause) \(first observed|` +
		`rank\s*: (?P<rank>\d+) \(local_rank: \d+\)|host\s*: (?P<host>\S+)|` +
		`exitcode\s*: (?P<code>-?\d+) \(pid: (?P<pid>\d+)\))`)
)

// written reads a line in which a word of somebody was found; false where it says nothing.
func (r *Reader) written(text string) bool {
	had := len(r.log.Events)
	if r.take("kernel", Event{Rank: -1, Text: text}) {
		return true
	}
	r.torch(text)
	switch table := r.fill(&r.failed, tableLine, text); {
	case !table:
		r.take("launcher", Event{Rank: -1, Text: text, Code: 1})
	case r.failed.PID > 0 && r.failed.Rank >= 0:
		r.failed.Kind, r.failed.Text = Exit, text
		r.addEvent(r.failed)
		r.failed = Event{Rank: -1}
	default:
		r.failed.Host, r.failed.Op = strings.Clone(r.failed.Host), strings.Clone(r.failed.Op)
		r.failed.PID, r.failed.Time = 0, cmp.Or(r.time, r.failed.Time)
	}
	return len(r.log.Events) > had
}

// torch reads PyTorch's own lines.
func (r *Reader) torch(text string) {
	e := Event{Rank: r.rank, Text: text, GroupRank: -1}
	if m := groupLine.FindStringSubmatch(text); m != nil {
		e.Group, e.Desc = m[2], m[3]
		if n, err := strconv.Atoi(m[4]); err == nil && e.Rank < 0 && (m[3] == "default_pg" || cmp.Or(m[1], m[2]) == "0") {
			e.Rank = n
		}
	}
	if !r.take("torch", e) {
		r.take("cuda", e)
	}
}

var (
	fingerLine = lazyre.New(
		`Rank (\d+) is running collective: CollectiveFingerPrint\((.*?TensorShape=\[[^\]]*\](?:, TensorDtypes=\w+)?|[^)]*)`)
	fingerFields = lazyre.New(`^(?:.*?SequenceNumber=(?P<seq>\d+))?(?:.*?OpType=(?P<op>\w+))?`)
	shapeField   = lazyre.New(`TensorShape=\[([^\]]*)\](?:, TensorDtypes=(\w+))?`)
)

// mismatch reads what two ranks say that they run: one event a rank.
func (r *Reader) mismatch(text string) {
	for _, m := range fingerLine.FindAllStringSubmatch(text, 4) {
		e := Event{Kind: Mismatch, Text: text}
		r.fill(&e, fingerFields, m[2])
		e.Rank, _ = strconv.Atoi(m[1])
		if s := shapeField.FindStringSubmatch(m[2]); s != nil {
			e.Desc = s[1] + " " + s[2]
		}
		r.addEvent(e)
	}
}
