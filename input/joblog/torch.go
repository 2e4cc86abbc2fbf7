package joblog

import (
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/internal/lazyre"
)

// shape is a line that says something: it holds a word, and the named groups of its expression, where it needs one, are
// fields of the event.
type shape struct {
	kind Kind
	once bool // a rank repeats it
	word string
	line *lazyre.Regexp
}

// torchShapes are PyTorch's own lines.
var torchShapes = []shape{
	{Timeout, false, "Watchdog caught collective operation timeout", lazyre.New(
		`(?:\[Rank (?P<grouprank>\d+)\] )?Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(?P<seq>\d+), OpType=(?P<op>\w+).*?\)`,
	)},
	{Status, false, "failure detected by watchdog", lazyre.New(
		`failure detected by watchdog at work sequence id: (?P<seq>\d+).*last enqueued work: (?P<enqueued>\d+), last completed work: (?P<done>\d+)`,
	)},
	{DumpSignal, false, "Received a dump signal", lazyre.New(
		`[Ll]ast enqueued NCCL work: (?P<enqueued>-?\d+), last completed NCCL work: (?P<done>-?\d+)`)},
	{Status, false, "last enqueued NCCL work", lazyre.New( // up to PyTorch 2.5
		`(?:detected by watchdog at work|Timeout at NCCL work): (?P<seq>\d+), last enqueued NCCL work: (?P<enqueued>-?\d+), last completed NCCL work: (?P<done>-?\d+)`,
	)},
	{RemoteError, false, "raised the following async exception", lazyre.New(
		`Collective WorkNCCL\(SeqNum=(?P<seq>\d+), OpType=(?P<op>\w+)`)},
	{Down, false, "taking the entire process down", nil},
	{Joined, false, "clients joined", lazyre.New(`(?P<enqueued>\d+)/(?P<nranks>\d+) clients joined`)},
	{Desync, false, "finished collective #", lazyre.New(
		`\[(?P<ranks>[\d, ]+)\] finished collective #\d+, but didn't join collective #(?P<seq>\d+)`)},
	{Desync, false, "are the lagging ranks", lazyre.New(
		`ranks \[(?P<ranks>[\d, ]+)\] are the lagging ranks that caused this timeout`)},
	{StoreGone, true, "while trying to connect", lazyre.New(`client socket has timed out after \d+ ?ms`)},
	{StoreGone, true, "failed to connect/validate to host", nil},
	{RemoteError, true, "Did the remote server shutdown or crash", nil},
	{RemoteError, true, "TCPStore server has shut down too early", nil},
	{RemoteError, true, "remote process exited or there was a network error", nil},
	{RemoteError, true, "ncclRemoteError", lazyre.New(`^ncclRemoteError`)},
	{Shutdown, true, "WorkerServer destructor called", nil},
	{Shutdown, true, "destroy_process_group() was not called before program exit", nil},
	{CUDAError, true, "Assertion `", lazyre.New(`block: \[`)},
	{GPULost, true, "GPU is lost", nil},
	{GPULost, true, "GPU has fallen off the bus", nil},
	{GPULost, true, "Unable to determine the device handle for", nil},
}

// take adds the event of the first shape that a line has.
func (r *reader) take(list []shape, e Event) bool {
	for i := range list {
		s := &list[i]
		if !strings.Contains(e.Text, s.word) || s.line != nil && !r.fill(&e, s.line) {
			continue
		}
		if e.Kind = s.kind; s.once {
			r.addOnce(e, r.rank)
		} else {
			r.addEvent(e)
		}
		return true
	}
	return false
}

// fill gives an event the named groups of an expression; false where it does not match.
func (r *reader) fill(e *Event, line *lazyre.Regexp) bool {
	m := line.FindStringSubmatch(e.Text)
	if m == nil {
		return false
	}
	for i, name := range line.SubexpNames() {
		n, err := strconv.ParseInt(m[i], 10, 64)
		switch name {
		case "seq":
			e.Seq = n
		case "op":
			e.Op = m[i]
		case "enqueued":
			e.Enqueued = n
		case "done":
			e.Done = n
		case "nranks":
			e.NRanks = int(n)
		case "rank":
			e.Rank = int(n)
		case "grouprank":
			if err == nil {
				e.GroupRank = int(n)
			}
		case "pid":
			e.PID = int(n)
		case "code":
			e.Code = int(n)
		case "signal":
			e.Code = -int(n)
		case "host":
			e.Host = m[i]
		case "bus":
			e.Bus = m[i]
		case "ranks":
			e.Ranks = taskList(m[i], min(1<<16, maxListed-r.listed)) // a short line can name very many
		}
	}
	return true
}

var statusLine = lazyre.New(`\[PG ID (\d+) PG GUID ([^\s(]+)(?:\(([^)]*)\))? Rank (\d+)\]`)

// torch reads PyTorch's own lines.
func (r *reader) torch(text string) {
	e := Event{Rank: r.rank, Text: text, GroupRank: -1}
	if m := statusLine.FindStringSubmatch(text); m != nil {
		e.Group, e.Desc = m[2], m[3]
		if n, err := strconv.Atoi(m[4]); err == nil && e.Rank < 0 && (m[3] == "default_pg" || m[1] == "0") {
			e.Rank = n
		}
	}
	switch again := strings.Contains(text, "what():"); {
	case strings.Contains(text, torchShapes[0].word) && (again || strings.Contains(text, "terminated with exception")):
		// said before, again at the end
	case strings.Contains(text, "Detected mismatch between collectives"):
		r.mismatch(text)
	case !r.take(torchShapes, e) && isCUDA(text) && !again:
		e.Kind = CUDAError
		r.addOnce(e, r.rank)
	}
}

// addOnce keeps the first of events that somebody repeats.
func (r *reader) addOnce(e Event, who ...any) {
	if key := fmt.Sprintln(append(who, e.Kind)...); !r.seen[key] && len(r.seen) <= 1<<16 {
		r.seen[key] = true
		r.addEvent(e)
	}
}

var (
	fingerLine = lazyre.New(
		`Rank (\d+) is running collective: CollectiveFingerPrint\((.*?TensorShape=\[[^\]]*\](?:, TensorDtypes=\w+)?|[^)]*)`)
	fingerFields = lazyre.New(`^(?:.*?SequenceNumber=(?P<seq>\d+))?(?:.*?OpType=(?P<op>\w+))?`)
	shapeField   = lazyre.New(`TensorShape=\[([^\]]*)\](?:, TensorDtypes=(\w+))?`)
)

// mismatch reads what two ranks say that they run: one event a rank.
func (r *reader) mismatch(text string) {
	for _, m := range fingerLine.FindAllStringSubmatch(text, 4) {
		e := Event{Kind: Mismatch, Text: m[2]}
		r.fill(&e, fingerFields)
		e.Rank, _ = strconv.Atoi(m[1])
		if s := shapeField.FindStringSubmatch(m[2]); s != nil {
			e.Desc = s[1] + " " + s[2]
		}
		e.Text = text
		r.addEvent(e)
	}
}
