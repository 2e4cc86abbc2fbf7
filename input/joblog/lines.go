package joblog

import (
	"cmp"
	_ "embed" // for the shapes
	"strconv"
	"strings"
	"sync"

	"busbar.dev/internal/csvtable"
	"busbar.dev/internal/lazyre"
)

//go:embed lines.csv
var lineTable string

// shape is a row of lines.csv.
type shape struct {
	Word    string `csv:"word"`
	Kind    Kind   `csv:"kind"`
	By      string `csv:"by"`
	Once    bool   `csv:"once,optional"`
	Pattern string `csv:"pattern,optional"`
	Source  string `csv:"source"`

	line *lazyre.Regexp
}

// shapes are the rows by who writes such lines.
var shapes = sync.OnceValue(func() map[string][]shape {
	by := map[string][]shape{}
	for _, s := range csvtable.Must[shape]("lines.csv", lineTable) {
		s.line = lazyre.New(s.Pattern)
		by[s.By] = append(by[s.By], s)
	}
	return by
})

// take adds the event of the first shape of a writer that a line has.
func (r *Reader) take(by string, e Event) bool { return r.takeOf(by, e, e.Text) }

// takeOf does so of a part of a line.
func (r *Reader) takeOf(by string, e Event, text string) bool {
	list := shapes()[by]
	for i := range list {
		s := &list[i]
		if !strings.Contains(text, s.Word) || s.Pattern != "" && !r.fill(&e, s.line, text) {
			continue
		}
		if e.Kind = s.Kind; s.Once {
			r.addOnce(e, "", r.rank)
		} else {
			r.addEvent(e)
		}
		return true
	}
	return false
}

// fill gives an event the named groups of an expression; false where it does not match.
func (r *Reader) fill(e *Event, line *lazyre.Regexp, text string) bool {
	m := line.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	signal := 0
	texts := map[string]*string{"op": &e.Op, "host": &e.Host, "bus": &e.Bus}
	numbers := map[string]*int{
		"seq": &e.Seq, "enqueued": &e.Enqueued, "done": &e.Done, "nranks": &e.NRanks, "rank": &e.Rank,
		"grouprank": &e.GroupRank, "pid": &e.PID, "code": &e.Code, "signal": &signal,
	}
	for i, name := range line.SubexpNames() {
		if to := texts[name]; to != nil {
			*to = m[i]
		}
		if n, err := strconv.Atoi(m[i]); err == nil && numbers[name] != nil {
			*numbers[name] = n
		}
		if name == "ranks" {
			e.Ranks = taskList(m[i], min(1<<16, maxListed-r.listed)) // a short line can name very many
		}
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

var (
	groupLine = lazyre.New(`\[PG ID (\d+) PG GUID ([^\s(]+)(?:\(([^)]*)\))? Rank (\d+)\]`)
	tableRank = lazyre.New(`^\s*rank\s*: (?P<rank>\d+) \(local_rank: \d+\)`)
	tableCode = lazyre.New(`^\s*exitcode\s*: (?P<code>-?\d+) \(pid: (?P<pid>\d+)\)`)
	tableHost = lazyre.New(`^\s*host\s*: (?P<host>\S+)`)
	srunLine  = lazyre.New(`srun: error: (?P<host>\S+): tasks? (?P<ranks>[\d,\-]+): (.*)`)
	// srunWord is what srun says of an end, and srunCodes its codes.
	srunWord  = lazyre.New(`Killed|Aborted|Segmentation|Terminated`)
	srunCodes = map[string]int{"Killed": -9, "Aborted": -6, "Segmentation": -11, "Terminated": -15}
)

// torch reads PyTorch's own lines.
func (r *Reader) torch(text string) {
	e := Event{Rank: r.rank, Text: text, GroupRank: -1}
	if strings.Contains(text, "[PG ID ") {
		if m := groupLine.FindStringSubmatch(text); m != nil {
			e.Group, e.Desc = m[2], m[3]
			if n, err := strconv.Atoi(m[4]); err == nil && e.Rank < 0 && (m[3] == "default_pg" || m[1] == "0") {
				e.Rank = n
			}
		}
	}
	switch again := strings.Contains(text, "what():"); {
	case strings.Contains(text, "Watchdog caught collective operation timeout") &&
		(again || strings.Contains(text, "terminated with exception")):
		// said before, again at the end
	case strings.Contains(text, "Detected mismatch between collectives"):
		r.mismatch(text)
	case !r.take("torch", e) && isCUDA(text) && !again:
		e.Kind = CUDAError
		r.addOnce(e, "", r.rank)
	}
}

// launcher reads how torchrun, srun and mpirun say that a rank ended.
func (r *Reader) launcher(text string) {
	e := Event{Kind: Exit, Rank: -1, Text: text, Code: 1}
	switch {
	case r.fill(&r.failed, tableRank, text):
		r.fatal = true
	case r.fill(&r.failed, tableHost, text):
		r.failed.Host = strings.Clone(r.failed.Host)
	case r.fatal && r.fill(&r.failed, tableCode, text):
		r.failed.Kind, r.failed.Text = Exit, text
		r.addEvent(r.failed)
		r.fatal, r.failed = false, Event{}
	case strings.Contains(text, "srun: error: ") && r.fill(&e, srunLine, text):
		e.Code = cmp.Or(srunCodes[srunWord.FindString(text)], e.Code)
		if len(e.Ranks) == 1 {
			e.Rank = e.Ranks[0]
		}
		r.addEvent(e)
	default:
		r.take("launcher", e)
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
