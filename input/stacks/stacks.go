// Package stacks reads what the threads of a Python process are doing: the dumps of faulthandler (a signal, or the
// worker server's dump_traceback) and of py-spy. A stack says what a late rank does instead of its collective.
package stacks

import (
	"bytes"
	_ "embed" // for the activities
	"slices"
	"strconv"
	"strings"
	"sync"

	"busbar.dev/input/internal/num"
	"busbar.dev/input/internal/pyframe"
	"busbar.dev/internal/csvtable"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
)

// Frame is one call.
type Frame struct {
	Func, File string
	Line       int
}

// String is how people name a frame: save_checkpoint (train.py:72).
func (f Frame) String() string {
	file := f.File[strings.LastIndexByte(f.File, '/')+1:]
	if f.Line == 0 {
		return f.Func + " (" + file + ")"
	}
	return f.Func + " (" + file + ":" + strconv.Itoa(f.Line) + ")"
}

// Stack is one thread, the innermost call first.
type Stack struct {
	Name    string // of the file
	Line    int    // where it begins, from 1
	Thread  uint64 // as the tool numbers it
	Title   string // the thread's name
	PID     int    // 0 where the tool does not say
	Rank    int    // from a prefix of the lines; -1
	Current bool
	Frames  []Frame
}

const (
	maxStacks = 1 << 14
	maxFrames = 512
)

var (
	faultThread = lazyre.New(`^(Current thread|Thread) 0x([0-9a-fA-F]{1,16})(?: \[(.*?)\])? \(most recent call first\):`)
	faultFrame  = lazyre.New(`^File "([^"]*)", line (\d+|\?\?\?) in (.+)$`)
	spyProcess  = lazyre.New(`^Process (\d+): `)
	spyThread   = lazyre.New(`^Thread (0x[0-9a-fA-F]+|\d+) \((?:active|idle)[^)]*\)(?:: "(.*)")?`)
	spyFrame    = lazyre.New(`^(.+?) \(([^()]+?)(?::(\d+))?\)$`)
	rankPrefix  = lazyre.New(`^\[(?:rank|default)(\d+)\]: ?`)
)

// Match reports a text with stacks in it.
func Match(data []byte) bool {
	data = data[:min(len(data), 1<<22)]
	return lines.Has(data, "(most recent call first):\n", "hread 0x") || lines.Has(data, "Thread ") &&
		lines.HasAny(data, "\nPython v", "): \"MainThread\"\n    ")
}

// Read finds the stacks of a text; what lies between them is passed over.
func Read(name string, data []byte) []Stack {
	var list []Stack
	var open *Stack
	pid, n := 0, 0
	for line := range bytes.Lines(data) {
		n++
		if len(line) > 2048 {
			line = line[:2048]
		}
		text, rank := strings.TrimRight(string(line), " \r\n"), -1
		if m := rankPrefix.FindStringSubmatch(text); m != nil {
			rank = num.Int(m[1])
			text = text[len(m[0]):]
		}
		word := strings.TrimSpace(text)
		if m := spyProcess.FindStringSubmatch(word); m != nil {
			pid = num.Int(m[1])
			continue
		}
		if s, ok := begin(word); ok {
			if len(list) >= maxStacks {
				return list
			}
			s.Name, s.Line, s.Rank, s.PID = name, n, rank, pid
			list = append(list, s)
			open = &list[len(list)-1]
			continue
		}
		if open == nil || word == "" {
			continue
		}
		f, ok := frame(word, text)
		switch {
		case ok && len(open.Frames) < maxFrames:
			open.Frames = append(open.Frames, f)
		case !ok && word != "<no Python frame>":
			open = nil
		}
	}
	return list
}

// begin reads the head of a thread's stack.
func begin(word string) (Stack, bool) {
	if m := faultThread.FindStringSubmatch(word); m != nil {
		id, _ := strconv.ParseUint(m[2], 16, 64)
		return Stack{Thread: id, Title: m[3], Current: m[1] == "Current thread"}, true
	}
	if m := spyThread.FindStringSubmatch(word); m != nil {
		id, _ := strconv.ParseUint(m[1], 0, 64)
		return Stack{Thread: id, Title: m[2]}, true
	}
	return Stack{}, false
}

// frame reads a call of either tool.
func frame(word, text string) (Frame, bool) {
	if m := faultFrame.FindStringSubmatch(word); m != nil {
		return Frame{Func: m[3], File: m[1], Line: num.Int(m[2])}, true
	}
	if !strings.HasPrefix(text, "    ") {
		return Frame{}, false
	}
	if m := spyFrame.FindStringSubmatch(word); m != nil {
		return Frame{Func: m[1], File: m[2], Line: num.Int(m[3])}, true
	}
	return Frame{}, false
}

// Main is the stack of the program's own thread: the one that began with the module, else the current one.
func Main(list []Stack) *Stack {
	var best *Stack
	score := -1
	for i := range list {
		s := &list[i]
		if len(s.Frames) == 0 {
			continue
		}
		points := 0
		last := s.Frames[len(s.Frames)-1]
		if last.Func == "<module>" || last.Func == "_run_code" || last.Func == "_run_module_as_main" {
			points += 2
		}
		if s.Title == "MainThread" {
			points += 4
		}
		if s.Current {
			points++
		}
		if points > score {
			best, score = s, points
		}
	}
	return best
}

// Activity is what a program does.
type Activity string

// What a rank can be doing that keeps it from a collective.
const (
	Other      Activity = ""
	Collective Activity = "collective"
	Loading    Activity = "data-loading"
	Checkpoint Activity = "checkpoint"
	Compiling  Activity = "compiling"
	Evaluation Activity = "evaluation"
	Rendezvous Activity = "rendezvous"
)

//go:embed activities.csv
var activityTable string

// sign is what shows an activity.
type sign struct {
	Row      int      `csv:"row"`
	Activity Activity `csv:"activity,optional"`
	File     string   `csv:"file,optional"`
	Func     string   `csv:"func,optional"`
	name     *lazyre.Regexp
}

var signs = sync.OnceValue(func() []sign {
	list := csvtable.Must[sign]("activities.csv", activityTable)
	for i := range list {
		list[i].name = lazyre.New(list[i].Func)
	}
	return list
})

// Doing says what a stack is busy with, and the frame that shows it: the innermost frame that tells decides, but a
// collective within a checkpoint or an evaluation is still a collective.
func (s *Stack) Doing() (Activity, Frame) {
	for _, f := range s.Frames {
		file := strings.ReplaceAll(f.File, "\\", "/")
		i := slices.IndexFunc(signs(),
			func(x sign) bool { return strings.Contains(file, x.File) && x.name.MatchString(f.Func) })
		if i >= 0 && signs()[i].Activity != Other {
			return signs()[i].Activity, f
		}
	}
	return Other, s.own()
}

// own is the frame that tells most about where a program is.
func (s *Stack) own() (f Frame) {
	if i := pyframe.Telling(len(s.Frames), func(i int) string { return s.Frames[i].File }); i >= 0 {
		f = s.Frames[i]
	}
	return f
}

// Where says where a program is: its own line, and the call of a library in it that shows what it does.
func (s *Stack) Where() string {
	_, shows := s.Doing()
	own := s.own()
	if own == shows || pyframe.Of(shows.File) > pyframe.Library || pyframe.Of(own.File) < pyframe.Package {
		return shows.String()
	}
	return own.String() + ", in " + shows.String()
}
