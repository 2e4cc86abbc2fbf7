// Package joblog reads what a job's own output says about its end: PyTorch's watchdog and tracebacks, NCCL's warnings
// and the creation of communicators, launchers' exit codes, Xid and out-of-memory lines of the kernel. It finds the
// lines that tell, wherever they stand, and says which rank or process each is about; what they mean together is for
// others.
package joblog

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"
	"time"

	"busbar.dev/input/internal/pyframe"
	"busbar.dev/internal/lazyre"
)

// Kind is what a line says.
type Kind uint8

// The kinds of events.
const (
	Timeout      Kind = iota // the watchdog gave up on a collective
	Status                   // last enqueued and completed of a group, at a failure
	DumpSignal               // last enqueued and completed of the default group, when a dump was asked for
	RemoteError              // a collective failed because a peer is gone
	PeerClosed               // NCCL: the connection to a host was closed
	Network                  // NCCL: the network failed
	InitStart                // NCCL: a rank begins to create a communicator
	InitComplete             //
	CommAbort                // NCCL: a rank takes a communicator down in order
	Exception                // the last line of a Python traceback
	CUDAError                // a GPU's error
	Mismatch                 // TORCH_DISTRIBUTED_DEBUG=DETAIL compares collectives
	Desync                   // TORCH_NCCL_DESYNC_DEBUG names ranks
	Joined                   // n of m clients joined the rendezvous
	StoreGone                // the rendezvous server does not answer
	Xid                      // the driver's error
	OOMKill                  // the kernel ended a process for memory
	Exit                     // a launcher tells how a rank ended
	Process                  // NCCL: this line was written by a process of that host
	Down                     // PyTorch takes the process down
	GPULost                  // a GPU does not answer
	Shutdown                 // an orderly end of a process begins
	InitTimed                // NCCL: how long a rank waited for the other members of a communicator
	Address                  // NCCL: the address that a host uses is Peer
)

// Event is one line that says something.
type Event struct {
	Kind     Kind
	Rank     int // global, where the line says so; else -1
	PID      int
	Host     string
	Time     int64 // ns since the beginning of the year, by the clock of whoever wrote the line; 0 is unknown
	Line     int
	Text     string
	Group    string // a process group's name
	Desc     string
	Op       string
	Seq      int64
	Enqueued int64
	Done     int64
	Peer     string
	Comm     uint64
	CommRank int
	// GroupRank is the rank within a process group that the watchdog's own line names, -1 where it names none; only a
	// Timeout has it.
	GroupRank int
	NRanks    int
	Ranks     []int
	Code      int // an exit code, a signal as its negative, an Xid
	Bus       string
	Wait      float64 // s
}

// Log is what one file holds.
type Log struct {
	Name   string
	Events []Event
	First  int64 // the time of the first line that has one, 0 for none
	Last   int64
	Lines  int
	// Several tells that lines are marked with different ranks.
	Several bool
	// Said is the last line that the program itself wrote before the first watchdog gave up, by the rank that its lines
	// are marked with; -1 where they have no mark.
	Said map[int]Said
}

// Said is a line of the program itself.
type Said struct {
	Line int
	Text string
}

const (
	maxEvents = 1 << 16
	maxLine   = 1 << 14
	maxListed = 1 << 20
	maxSaid   = 1 << 14 // ranks
	maxText   = 400
)

// Match reports a text with lines that this package knows.
func Match(data []byte) bool {
	for _, word := range [][]byte{
		[]byte("NCCL INFO"), []byte("NCCL WARN"), []byte("ProcessGroupNCCL"), []byte("Traceback (most recent call last)"),
		[]byte("NVRM: Xid"), []byte("TCPStore"),
		[]byte("[c10d]"), []byte("Killed process"), []byte("exitcode"), []byte("srun: error"), []byte("[rank"),
		[]byte("GPU is lost"),
	} {
		if bytes.Contains(data, word) {
			return true
		}
	}
	return false
}

// Read finds the events of a text.
func Read(name string, data []byte) *Log {
	r := &reader{log: &Log{Name: name, Said: map[int]Said{}}, mark: -1, traces: map[int]*trace{}, seen: map[string]bool{}}
	for line := range bytes.Lines(data) {
		r.log.Lines++
		if len(line) > maxLine {
			line = line[:maxLine]
		}
		if len(r.log.Events) >= maxEvents {
			break
		}
		r.line(strings.TrimRight(string(line), " \r\n"))
	}
	return r.log
}

// reader walks through one file.
type reader struct {
	log    *Log
	traces map[int]*trace // open tracebacks, by rank
	seen   map[string]bool
	rank   int
	time   int64
	fatal  bool // the launcher's table of a failed rank is open
	listed int  // ranks in lists of events
	mark   int  // the first rank that a line is marked with; -1
	over   bool // a watchdog gave up: what is written from here on follows from it
	failed Event
}

// trace is a traceback whose last line has not come yet.
type trace struct {
	line  int
	frame string
	own   string // the innermost frame of the program itself
}

func (r *reader) addEvent(e Event) {
	e.Line = cmp.Or(e.Line, r.log.Lines)
	e.Time = cmp.Or(e.Time, r.time)
	e.Text = e.Text[:min(len(e.Text), maxText)]
	r.over = r.over || e.Kind == Timeout
	r.listed += len(e.Ranks)
	r.log.Events = append(r.log.Events, e)
}

// line takes prefixes off, then asks every kind of writer.
func (r *reader) line(text string) {
	r.rank, r.time = -1, 0
	text = r.prefix(text)
	if text == "" {
		return
	}
	if r.traceback(text) {
		return
	}
	switch {
	case strings.Contains(text, "NCCL INFO") || strings.Contains(text, "NCCL WARN"):
		r.nccl(text)
	case strings.Contains(text, "NVRM:") || strings.Contains(text, "Killed process") ||
		strings.Contains(text, "oom_kill") || strings.Contains(text, "oom-kill"):
		r.take(kernelShapes, Event{Rank: -1, Text: text, Host: HostOf(r.log.Name, text)})
	default:
		before := len(r.log.Events)
		r.torch(text)
		r.launcher(text)
		if len(r.log.Events) == before {
			r.said(text)
		}
	}
}

// said keeps a line of the program itself: no line of PyTorch's logger or launcher, and no part of a stack.
func (r *reader) said(text string) {
	word := strings.TrimSpace(text)
	if r.over || len(word) < 4 || word[0] == '#' || strings.HasPrefix(word, "frame #") ||
		strings.HasPrefix(text, "*****") || strings.IndexByte("[IWEF", word[0]) >= 0 && loggerLine.MatchString(word) {
		return
	}
	if _, ok := r.log.Said[r.rank]; ok || len(r.log.Said) < maxSaid {
		r.log.Said[r.rank] = Said{r.log.Lines, word[:min(len(word), maxText)]}
	}
}

// loggerLine begins a line of PyTorch's logger in Python: W1112 10:11:47.714000 30050 torch/…
var loggerLine = lazyre.New(`^\[?[IWEF]\d{4} \d\d:\d\d:\d\d`)

// label is what launchers put before a line: the rank, or torchrun's local rank; mpirun's; srun --label's.
var label = lazyre.New(`^(?:\[(rank|default)(\d{1,9})\]: ?|\[1,(\d{1,9})\]<std.{0,30}?>: ?|\s{0,3}(\d{1,5}) *: )`)

// prefix takes off what launchers and loggers put before a line, and keeps the rank and the time that it tells.
func (r *reader) prefix(text string) string {
	for range 4 {
		m := label.FindStringSubmatch(text)
		if m == nil {
			r.clock(text)
			break
		}
		text = text[len(m[0]):]
		switch n, _ := strconv.Atoi(m[2] + m[3] + m[4]); {
		case m[4] != "":
			r.rank = n
		case m[1] != "default":
			r.marked(n)
		case r.rank < 0:
			r.rank = n // a local rank, unless the other mark follows
		}
	}
	return text
}

// marked notes the rank that a line is marked with.
func (r *reader) marked(rank int) {
	if r.rank = rank; r.mark < 0 {
		r.mark = rank
	}
	r.log.Several = r.log.Several || r.mark != rank
}

// stamp is the time of PyTorch's lines, [E1116 02:35:23.156796868 …, and of NCCL's, [2026-11-16 02:36:09].
var stamp = lazyre.New(`^\[(?:[IWEF](\d\d)(\d\d) |\d{4}-(\d\d)-(\d\d)[ T])(\d\d:\d\d:\d\d(?:\.\d{1,9})?)`)

// clock reads the time of a line. Without a year, an order within it is all that can be had: that is one of 366 days.
func (r *reader) clock(text string) {
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
func (r *reader) traceback(text string) bool {
	if strings.HasPrefix(strings.TrimSpace(text), "Traceback (most recent call last)") {
		if len(r.traces) < 1<<16 {
			r.traces[r.rank] = &trace{line: r.log.Lines}
		}
		return true
	}
	t := r.traces[r.rank]
	if t == nil {
		return false
	}
	word := strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(word, "File \""):
		t.frame = word
		if file, _, _ := strings.Cut(strings.TrimPrefix(word, `File "`), `"`); pyframe.Of(file) == pyframe.Own {
			t.own = word
		}
		return true
	case strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\t") || strings.HasPrefix(word, "^") || word == "":
		return true
	case strings.HasPrefix(text, "["): // another writer's line in between
		return false
	}
	delete(r.traces, r.rank)
	e := Event{Kind: Exception, Rank: r.rank, Text: word, Desc: t.own}
	e.Desc = cmp.Or(e.Desc, t.frame)
	switch {
	case strings.Contains(word, "Detected mismatch between collectives"):
		r.mismatch(word)
	case isCUDA(word):
		e.Kind = CUDAError
	case strings.Contains(word, "clients joined"):
		r.torch(word)
	}
	r.addEvent(e)
	return true
}

// isCUDA reports an error that a GPU raised, not one of the memory that a program asked for.
func isCUDA(text string) bool {
	return (strings.Contains(text, "CUDA error:") || strings.Contains(text, "AcceleratorError") ||
		strings.Contains(text, "CUDA_ERROR_")) && !strings.Contains(text, "out of memory")
}
