package joblog

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"busbar.dev/input/internal/pyframe"
	"busbar.dev/input/nccllog"
	"busbar.dev/internal/alike"
	"busbar.dev/internal/lazyre"
)

// Reader finds the events of one file, of whose lines it is given each.
type Reader struct {
	Form   *Form // of the next line, where it is known
	log    Log
	traces map[int]*trace // open tracebacks, by rank
	seen   map[about]bool
	kinds  map[Kind]int // events of each
	num    int          // of the line
	rank   int
	time   int64
	listed int   // ranks in lists of events
	mark   int   // the first rank that a line is marked with; -1
	over   bool  // a watchdog gave up: what is written from here on follows from it
	failed Event // of the launcher's table that is open
	rows   []int // of lines.csv, whose words are in the text at hand
	form   *Form // of the line at hand
	former Former
	stamp  string // the last time of a line, as it stands there, and what it is
	at     int64
	spoke  int // the rank that the program's last line is of
	spoken Said
}

// about is what somebody repeats: a rank, or a host with a process or an address.
type about struct {
	kind Kind
	who  string
	num  int
}

// trace is a traceback whose last line has not come yet.
type trace struct {
	frame string
	own   string // the innermost frame of the program itself
}

// NewReader makes a Reader.
func NewReader(name string) *Reader {
	return &Reader{
		log: Log{Name: name, Said: map[int]Said{}}, mark: -1, traces: map[int]*trace{}, seen: map[about]bool{},
		kinds: map[Kind]int{}, failed: Event{Rank: -1},
	}
}

// Log is what was found.
func (r *Reader) Log() *Log {
	r.speak()
	l := r.log // without what was needed to read it
	return &l
}

// Take takes in a line: prefixes are taken off, then every kind of writer is asked.
func (r *Reader) Take(l *nccllog.Line) {
	r.num = l.Num
	if len(l.Records) > 0 {
		r.records(l)
		return
	}
	text := r.prefix(l.Text)
	if text == "" || r.traceback(text) {
		return
	}
	r.log.Stack = r.log.Stack || strings.HasSuffix(text, "(most recent call first):")
	if (len(r.rows) == 0 || !r.written(text)) && r.form.own && !r.over {
		if r.spoke != r.rank {
			r.speak()
		}
		word := strings.TrimSpace(text)
		if r.form.trains {
			r.log.trained = r.num
		}
		r.spoke, r.spoken = r.rank, Said{r.num, word[:min(len(word), maxText)]}
	}
}

// speak keeps the last line of the program itself, of the rank that it is of.
func (r *Reader) speak() {
	if _, ok := r.log.Said[r.spoke]; r.spoken.Line > 0 && (ok || len(r.log.Said) < maxSaid) {
		r.log.Said[r.spoke] = Said{r.spoken.Line, strings.Clone(r.spoken.Text)}
	}
}

// addEvent keeps an event, of which texts are parts of the line.
func (r *Reader) addEvent(e Event) {
	if r.kinds[e.Kind]++; r.kinds[e.Kind] > maxEvents || len(r.log.Events) >= maxAll {
		return
	}
	e.Line, e.Time = r.num, cmp.Or(e.Time, r.time)
	e.Text = e.Text[:min(len(e.Text), maxText)]
	for _, s := range []*string{&e.Text, &e.Host, &e.Group, &e.Desc, &e.Op, &e.Peer, &e.Bus} {
		*s = strings.Clone(*s)
	}
	r.over = r.over || e.Kind == Timeout
	r.listed += len(e.Ranks)
	r.log.Events = append(r.log.Events, e)
}

// addOnce keeps the first of events that somebody repeats.
func (r *Reader) addOnce(e Event, who string, num int) {
	if key := (about{e.Kind, who, num}); !r.seen[key] && len(r.seen) <= 1<<16 {
		key.who = strings.Clone(who)
		r.seen[key] = true
		r.addEvent(e)
	}
}

// loggerLine begins a line of PyTorch's logger in Python: W1112 10:11:47.714000 30050 torch/…
var loggerLine = lazyre.New(`^\[?[IWEF]\d{4} \d\d:\d\d:\d\d`)

// label is what launchers put before a line: torchrun's local rank, srun --label's, the rank, mpirun's.
var label = lazyre.New(`^(?:\[default(\d{1,9})\]: ?|\s{0,3}(\d{1,5}) *: |\[rank(\d{1,9})\]: ?|` +
	`\[\d{1,9},(\d{1,9})\]<std.{0,30}?>: ?)`)

// wrapping is what kubectl --prefix, docker compose, pm2, Ray, the runtimes of containers and syslog put before a line.
var wrapping = lazyre.New(
	`^(?:\[pod/[^\]\s]+\] |\([^()]*\bpid=\d[^()]*\) |[a-z0-9][\w.-]*[-_]\d+ +\| |\d+\|[^|]{1,60}\| |` +
		`(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S{8,32}) (?:[\w.-]+ [\w./-]+\[\d+\]: |std(?:out|err) [FP] )|` +
		`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*(?:Z|[+-]\d\d:\d\d) )`)

// Form is what lines have in common that differ in nothing but which digits they hold.
type Form struct {
	from   int    // where the text begins, behind what launchers and loggers put before it
	marks  []mark // there
	stamp  []int  // places of the time with which the text begins
	rows   []int  // of lines.csv, whose words are in the text
	own    bool   // it may be of the program itself: no line of PyTorch's logger or launcher, and no part of a stack
	trains bool   // it may be of a step of a training
}

// Former finds the forms of lines, and remembers them.
type Former struct {
	forms  alike.Memo[*Form]
	wraps  alike.Memo[int] // lengths of what wraps lines
	labels alike.Memo[[]int]
}

// mark is the number of a rank, by a group of label.
type mark struct{ group, from, to int }

// wrapped is how long what wraps a line is. It ends where one of these first stands: what comes before is looked at,
// for a system's log has few of those and very many lines.
func (m *Former) wrapped(text string) (n int) {
	var ends []string
	switch c := text[0]; {
	case c == '[':
		ends = []string{"] "}
	case c == '(':
		ends = []string{") "}
	case c >= 'a' && c <= 'z':
		ends = []string{"| "}
	case c >= '0' && c <= '9':
		ends = []string{"| ", " | ", "]: ", " F ", " P ", " "}
	case c >= 'A' && c <= 'Z':
		ends = []string{"]: ", " F ", " P "}
	}
	for _, end := range ends {
		if i := strings.Index(text[:min(len(text), 256)], end); i >= 0 && n == 0 {
			n = m.wraps.Of(text[:i+len(end)], func(head string) int { return len(wrapping.FindString(head)) })
		}
	}
	return n
}

// New finds the form of a line.
func (m *Former) New(line string) *Form {
	line = tidy(line)
	f, text := new(Form), line
	for i := 0; i < 4 && text != ""; i++ {
		if n := m.wrapped(text); n > 0 {
			text = text[n:]
			continue
		}
		var at []int
		if c := text[0]; c == '[' || c <= '9' { // a label ends at the first colon
			at = m.labels.Of(text[:min(strings.IndexByte(text, ':')+2, len(text))], label.FindStringSubmatchIndex)
		}
		if at == nil {
			if c := text[0]; c == '[' || c == 't' || c <= ' ' {
				f.stamp = stamp.FindStringSubmatchIndex(text)
			}
			break
		}
		begun := len(line) - len(text)
		for g := 1; 2*g < len(at); g++ {
			if at[2*g] >= 0 {
				f.marks = append(f.marks, mark{g, begun + at[2*g], begun + at[2*g+1]})
			}
		}
		text = text[at[1]:]
	}
	f.from, f.rows = len(line)-len(text), shapes().set.All(text)
	word := strings.TrimSpace(text)
	f.own = len(word) >= 4 && word[0] != '#' && !strings.HasPrefix(word, "frame #") &&
		!strings.HasPrefix(text, "*****") && (!strings.Contains("[IWEF", word[:1]) || !loggerLine.MatchString(word))
	f.trains = !strings.HasPrefix(word, "wandb:") && (strings.Contains(word, "loss") || strings.Contains(word, "it/s"))
	return f
}

// tidy is the part of a line that is looked at.
func tidy(line string) string { return strings.TrimRight(line[:min(len(line), maxLine)], " ") }

// prefix takes off what launchers and loggers put before a line, and keeps the rank and the time that it tells.
func (r *Reader) prefix(text string) string {
	f := r.Form
	if text = tidy(text); f == nil {
		f = r.former.forms.Of(text, r.former.New)
	}
	r.rank, r.time, r.form, r.rows = -1, 0, f, f.rows
	for _, m := range f.marks {
		switch n, _ := strconv.Atoi(text[m.from:m.to]); {
		case m.group == 1: // a local rank, unless another mark stands beside it
			r.rank = cmp.Or(1+r.rank, 1+n) - 1
		case m.group == 2:
			r.rank = n
		default:
			if r.rank = n; r.mark < 0 {
				r.mark = n
			}
			r.log.Several = r.log.Several || r.mark != n
		}
	}
	if text = text[f.from:]; f.stamp != nil {
		r.clock(text, f.stamp)
	}
	return text
}

// stamp is the time of PyTorch's lines, [E1116 02:35:23.156796868 …, of NCCL's, [2026-11-16 02:36:09], and of
// torchrun's table of ranks that failed.
var stamp = lazyre.New(`^(?:\[|\s*time\s*: )(?:[IWEF](\d\d)(\d\d) |\d{4}-(\d\d)-(\d\d)[ T_])` +
	`(\d\d:\d\d:\d\d(?:\.\d{1,9})?)`)

// clock reads the time of a line. Without a year, an order within it is all that can be had: that is one of 366 days.
func (r *Reader) clock(text string, places []int) {
	if at := text[:places[1]]; at != r.stamp { // most lines have the time of the one before
		r.stamp, r.at = at, 0
		var m [6]string
		for i := range m {
			m[i] = text[max(places[2*i], 0):max(places[2*i+1], 0)]
		}
		if t, err := time.Parse("01 02 15:04:05", m[1]+m[3]+" "+m[2]+m[4]+" "+m[5]); err == nil {
			r.at = int64(t.Sub(time.Date(0, 1, 0, 0, 0, 0, 0, time.UTC)))
			r.log.First = cmp.Or(r.log.First, r.at)
			r.log.Last = max(r.log.Last, r.at)
		}
	}
	r.time = r.at
}

// traceback follows Python's tracebacks, of one rank each, to their last line.
func (r *Reader) traceback(text string) bool {
	word := strings.TrimSpace(text)
	if _, rest, ok := strings.Cut(word, "Traceback (most recent call last)"); ok && len(rest) < 300 {
		if len(r.traces) < 1<<16 && !strings.HasPrefix(r.spoken.Text, "Exception ignored in") {
			r.traces[r.rank] = &trace{}
		}
		return true
	}
	if n := len(r.log.Events) - 1; n >= 0 && strings.HasPrefix(word, "During handling of the above exception") &&
		r.log.Events[n].Kind == Exception && r.log.Events[n].Rank == r.rank {
		r.log.Events = r.log.Events[:n] // it was caught
		return true
	}
	t := r.traces[r.rank]
	if t == nil && (strings.HasPrefix(word, "SyntaxError: ") || strings.HasPrefix(word, "IndentationError: ")) {
		t = &trace{} // of the program itself, which never ran: there is none
	}
	if t == nil {
		return false
	}
	switch {
	case strings.HasPrefix(strings.TrimPrefix(word, "> "), "File \""): // loguru marks the one that caught it
		t.frame = strings.Clone(word)
		if file, _, _ := strings.Cut(strings.TrimPrefix(word, `File "`), `"`); pyframe.Of(file) == pyframe.Own {
			t.own = t.frame
		}
		return true
	case strings.TrimLeft(text, " \t^│╰") != text: // Rich draws a frame
		return true
	case strings.HasPrefix(text, "["): // another writer's line in between
		return false
	}
	delete(r.traces, r.rank)
	e := Event{Kind: Exception, Rank: r.rank, Text: word, Desc: cmp.Or(t.own, t.frame)}
	switch {
	case r.match("cuda", &e, word) != nil:
		e.Kind = CUDAError
	case strings.Contains(word, "clients joined"), strings.Contains(word, "Detected mismatch between collectives"):
		r.torch(word)
	}
	r.addEvent(e)
	return true
}
