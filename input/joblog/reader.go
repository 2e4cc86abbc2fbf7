package joblog

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"busbar.dev/input/internal/pyframe"
	"busbar.dev/input/nccllog"
	"busbar.dev/internal/lazyre"
)

// Reader finds the events of one file, of whose lines it is given each.
type Reader struct {
	log    Log
	traces map[int]*trace // open tracebacks, by rank
	seen   map[about]bool
	kinds  map[Kind]int // events of each
	num    int          // of the line
	rank   int
	time   int64
	listed int    // ranks in lists of events
	mark   int    // the first rank that a line is marked with; -1
	over   bool   // a watchdog gave up: what is written from here on follows from it
	failed Event  // of the launcher's table that is open
	rows   []int  // of lines.csv, whose words are in the text at hand
	wrap   string // that a line had last
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
func (r *Reader) Log() *Log { return &r.log }

// Take takes in a line: prefixes are taken off, then every kind of writer is asked.
func (r *Reader) Take(l *nccllog.Line) {
	r.num = l.Num
	if len(l.Records) > 0 {
		r.records(l)
		return
	}
	text := r.prefix(l.Text[:min(len(l.Text), maxLine)])
	if text == "" || r.traceback(text) {
		return
	}
	r.log.Stack = r.log.Stack || strings.HasSuffix(text, "(most recent call first):")
	if !r.find(text) || !r.written(text) {
		r.said(text)
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

// said keeps a line of the program itself: no line of PyTorch's logger or launcher, and no part of a stack.
func (r *Reader) said(text string) {
	word := strings.TrimSpace(text)
	if r.over || len(word) < 4 || word[0] == '#' || strings.HasPrefix(word, "frame #") ||
		strings.HasPrefix(text, "*****") || strings.IndexByte("[IWEF", word[0]) >= 0 && loggerLine.MatchString(word) {
		return
	}
	if _, ok := r.log.Said[r.rank]; ok || len(r.log.Said) < maxSaid {
		r.log.Said[r.rank] = Said{r.num, strings.Clone(word[:min(len(word), maxText)])}
	}
}

// loggerLine begins a line of PyTorch's logger in Python: W1112 10:11:47.714000 30050 torch/…
var loggerLine = lazyre.New(`^\[?[IWEF]\d{4} \d\d:\d\d:\d\d`)

// label is what launchers put before a line: the rank, or torchrun's local rank; mpirun's; srun --label's.
var label = lazyre.New(`^(?:\[(rank|default)(\d{1,9})\]: ?|\[1,(\d{1,9})\]<std.{0,30}?>: ?|\s{0,3}(\d{1,5}) *: )`)

// wrapping is what kubectl --prefix, docker compose, Ray, the runtimes of containers and syslog put before a line.
var wrapping = lazyre.New(`^(?:\[pod/[^\]\s]+\] |\([^()]*\bpid=\d[^()]*\) |[a-z0-9][\w.-]*[-_]\d+ +\| |` +
	`(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S{8,32}) (?:[\w.-]+ [\w./-]+\[\d+\]: |std(?:out|err) [FP] )|` +
	`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*(?:Z|[+-]\d\d:\d\d) )`)

// unwrapped is a line without one of them. Most lines have none, and are told by few of their bytes; most others have
// that of the line before.
func (r *Reader) unwrapped(text string) string {
	if r.wrap != "" && strings.HasPrefix(text, r.wrap) {
		return text[len(r.wrap):]
	}
	head := text[:min(len(text), 256)]
	holds := func(word string) bool { return strings.Contains(head, word) }
	if len(text) < 12 || text[0] != '(' && text[10] != 'T' && (text[3] != ' ' || !holds("]: ") && !holds(" std")) &&
		!strings.HasPrefix(text, "[pod/") && (text[0] < '0' || !holds(" | ")) {
		return text
	}
	wrap := wrapping.FindString(head)
	if text[0] == '(' || text[0] == '[' { // the others are of one line, and more may follow the same time
		r.wrap = wrap
	}
	return text[len(wrap):]
}

// prefix takes off what launchers and loggers put before a line, and keeps the rank and the time that it tells.
func (r *Reader) prefix(text string) string {
	r.rank, r.time = -1, 0
	text = strings.TrimRight(text, " ")
	for range 4 {
		if rest := r.unwrapped(text); rest != text {
			text = rest
			continue
		}
		if text == "" || text[0] != '[' && (text[0] > '9' || !strings.Contains(text[:min(len(text), 16)], ":")) {
			break
		}
		var m []string
		if text[0] != '[' || strings.IndexByte("rd1", text[min(1, len(text)-1)]) >= 0 {
			m = label.FindStringSubmatch(text)
		}
		if m == nil {
			r.clock(text)
			break
		}
		text = text[len(m[0]):]
		switch n, _ := strconv.Atoi(m[2] + m[3] + m[4]); {
		case m[4] != "":
			r.rank = n
		case m[1] != "default":
			if r.rank = n; r.mark < 0 {
				r.mark = n
			}
			r.log.Several = r.log.Several || r.mark != n
		case r.rank < 0:
			r.rank = n // a local rank, unless the other mark follows
		}
	}
	return text
}

// stamp is the time of PyTorch's lines, [E1116 02:35:23.156796868 …, and of NCCL's, [2026-11-16 02:36:09].
var stamp = lazyre.New(`^\[(?:[IWEF](\d\d)(\d\d) |\d{4}-(\d\d)-(\d\d)[ T])(\d\d:\d\d:\d\d(?:\.\d{1,9})?)`)

// clock reads the time of a line. Without a year, an order within it is all that can be had: that is one of 366 days.
func (r *Reader) clock(text string) {
	m := stamp.FindStringSubmatch(text)
	if m == nil {
		return
	}
	t, err := time.Parse("01 02 15:04:05", m[1]+m[3]+" "+m[2]+m[4]+" "+m[5])
	if err != nil {
		return
	}
	r.time = int64(t.Sub(time.Date(0, 1, 0, 0, 0, 0, 0, time.UTC)))
	r.log.First = cmp.Or(r.log.First, r.time)
	r.log.Last = max(r.log.Last, r.time)
}

// traceback follows Python's tracebacks, of one rank each, to their last line.
func (r *Reader) traceback(text string) bool {
	word := strings.TrimSpace(text)
	if strings.HasPrefix(word, "Traceback (most recent call last)") {
		if len(r.traces) < 1<<16 {
			r.traces[r.rank] = &trace{}
		}
		return true
	}
	t := r.traces[r.rank]
	if t == nil {
		return false
	}
	switch {
	case strings.HasPrefix(word, "File \""):
		t.frame = strings.Clone(word)
		if file, _, _ := strings.Cut(strings.TrimPrefix(word, `File "`), `"`); pyframe.Of(file) == pyframe.Own {
			t.own = t.frame
		}
		return true
	case strings.TrimLeft(text, " \t^") != text:
		return true
	case strings.HasPrefix(text, "["): // another writer's line in between
		return false
	}
	delete(r.traces, r.rank)
	e := Event{Kind: Exception, Rank: r.rank, Text: word, Desc: cmp.Or(t.own, t.frame)}
	switch r.find(word); {
	case r.match("cuda", &e, word) != nil:
		e.Kind = CUDAError
	case strings.Contains(word, "clients joined"), strings.Contains(word, "Detected mismatch between collectives"):
		r.torch(word)
	}
	r.addEvent(e)
	return true
}
