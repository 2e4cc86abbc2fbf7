package joblog

import (
	"strconv"
	"strings"

	"busbar.dev/internal/lazyre"
)

var (
	timeoutLine = lazyre.New(
		`Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(\d+), OpType=(\w+)(?:, NumelIn=(\d+))?(?:, NumelOut=\d+)?.*?\)`)
	rankLine   = lazyre.New(`\[Rank (\d+)\] Watchdog caught`)
	statusLine = lazyre.New(`\[PG ID (\d+) PG GUID ([^\s(]+)(?:\(([^)]*)\))? Rank (\d+)\]`)
	atWorkLine = lazyre.New(
		`failure detected by watchdog at work sequence id: (\d+).*last enqueued work: (\d+), last completed work: (\d+)`)
	oldWorkLine = lazyre.New(
		`(?:detected by watchdog at work|Timeout at NCCL work): (\d+), last enqueued NCCL work: (-?\d+), last completed NCCL work: (-?\d+)`)
	enqueuedLine = lazyre.New(`[Ll]ast enqueued NCCL work: (-?\d+), last completed NCCL work: (-?\d+)`)
	asyncLine    = lazyre.New(
		`Collective WorkNCCL\(SeqNum=(\d+), OpType=(\w+).*raised the following async exception: (.*)`)
	fingerLine = lazyre.New(
		`Rank (\d+) is running collective: CollectiveFingerPrint\((.*?TensorShape=\[[^\]]*\](?:, TensorDtypes=\w+)?|[^)]*)`)
	seqField    = lazyre.New(`SequenceNumber=(\d+)`)
	opField     = lazyre.New(`OpType=(\w+)`)
	shapeField  = lazyre.New(`TensorShape=\[([^\]]*)\](?:, TensorDtypes=(\w+))?`)
	joinedLine  = lazyre.New(`(\d+)/(\d+) clients joined`)
	desyncLine  = lazyre.New(`\[([\d, ]+)\] finished collective #(\d+), but didn't join collective #(\d+)`)
	neverLine   = lazyre.New(`ranks \[([\d, ]+)\] are the lagging ranks that caused this timeout`)
	connectLine = lazyre.New(
		`client socket has timed out after \d+ ?ms while trying to connect|failed to connect/validate to host`)
)

// torch reads PyTorch's own lines.
func (r *reader) torch(text string) {
	rank := r.rank
	var e Event
	e.Rank, e.Text = rank, text
	if m := statusLine.FindStringSubmatch(text); m != nil {
		e.Group, e.Desc = m[2], m[3]
		if n, err := strconv.Atoi(m[4]); err == nil && e.Rank < 0 && (m[3] == "default_pg" || m[1] == "0") {
			e.Rank = n
		}
	}
	switch {
	case strings.Contains(text, "Watchdog caught collective operation timeout"):
		if strings.Contains(text, "terminated with exception") || strings.Contains(text, "what():") {
			return // said before, again at the end
		}
		if m := timeoutLine.FindStringSubmatch(text); m != nil {
			e.Kind, e.Op, e.GroupRank = Timeout, m[2], -1
			if n := rankLine.FindStringSubmatch(text); n != nil {
				e.GroupRank, _ = strconv.Atoi(n[1])
			}
			e.Seq, _ = strconv.ParseInt(m[1], 10, 64)
			e.Numel, _ = strconv.ParseInt(m[3], 10, 64)
			r.addEvent(e)
		}
	case strings.Contains(text, "failure detected by watchdog"):
		r.status(e, atWorkLine.FindStringSubmatch(text))
	case strings.Contains(text, "Received a dump signal"):
		if m := enqueuedLine.FindStringSubmatch(text); m != nil {
			e.Kind = DumpSignal
			e.Enqueued, _ = strconv.ParseInt(m[1], 10, 64)
			e.Done, _ = strconv.ParseInt(m[2], 10, 64)
			r.addEvent(e)
		}
	case strings.Contains(text, "last enqueued NCCL work"): // up to PyTorch 2.5
		r.status(e, oldWorkLine.FindStringSubmatch(text))
	case strings.Contains(text, "raised the following async exception"):
		if m := asyncLine.FindStringSubmatch(text); m != nil {
			e.Kind, e.Op = RemoteError, m[2]
			e.Seq, _ = strconv.ParseInt(m[1], 10, 64)
			r.addEvent(e)
		}
	case strings.Contains(text, "taking the entire process down"):
		e.Kind = Down
		r.addEvent(e)
	case strings.Contains(text, "Detected mismatch between collectives"):
		r.mismatch(text)
	case joinedLine.MatchString(text):
		m := joinedLine.FindStringSubmatch(text)
		e.Kind = Joined
		e.Enqueued, _ = strconv.ParseInt(m[1], 10, 64)
		e.NRanks, _ = strconv.Atoi(m[2])
		r.addEvent(e)
	case desyncLine.MatchString(text):
		m := desyncLine.FindStringSubmatch(text)
		e.Kind, e.Ranks = Desync, ints(m[1])
		e.Seq, _ = strconv.ParseInt(m[3], 10, 64)
		r.addEvent(e)
	case neverLine.MatchString(text):
		e.Kind, e.Ranks = Desync, ints(neverLine.FindStringSubmatch(text)[1])
		r.addEvent(e)
	case connectLine.MatchString(text):
		e.Kind = StoreGone
		r.addOnce("store", e)
	default:
		r.torchMore(e)
	}
}

// torchMore reads the lines that need no numbers.
func (r *reader) torchMore(e Event) {
	text := e.Text
	switch {
	case strings.Contains(text, "Did the remote server shutdown or crash"),
		strings.Contains(text, "TCPStore server has shut down too early"):
		e.Kind = RemoteError
		r.addOnce("remote", e)
	case strings.Contains(text, "remote process exited or there was a network error"),
		strings.HasPrefix(text, "ncclRemoteError"):
		e.Kind = RemoteError
		r.addOnce("remote", e)
	case strings.Contains(text, "WorkerServer destructor called"),
		strings.Contains(text, "destroy_process_group() was not called before program exit"):
		e.Kind = Shutdown
		r.addOnce("shutdown", e)
	case strings.Contains(text, "Assertion `") && strings.Contains(text, "block: ["),
		isCUDA(text) && !strings.Contains(text, "what():"):
		e.Kind = CUDAError
		r.addOnce("cuda", e)
	case strings.Contains(text, "GPU is lost"), strings.Contains(text, "GPU has fallen off the bus"),
		strings.Contains(text, "Unable to determine the device handle for"):
		e.Kind = GPULost
		r.addOnce("lost", e)
	}
}

// addOnce keeps the first of lines that a rank repeats.
func (r *reader) addOnce(what string, e Event) {
	key := what + strconv.Itoa(r.rank)
	if r.seen[key] || len(r.seen) > 1<<16 {
		return
	}
	r.seen[key] = true
	r.addEvent(e)
}

// mismatch reads what two ranks say that they run: one event a rank.
func (r *reader) mismatch(text string) {
	for _, m := range fingerLine.FindAllStringSubmatch(text, 4) {
		e := Event{Kind: Mismatch, Text: text}
		e.Rank, _ = strconv.Atoi(m[1])
		if s := seqField.FindStringSubmatch(m[2]); s != nil {
			e.Seq, _ = strconv.ParseInt(s[1], 10, 64)
		}
		if s := opField.FindStringSubmatch(m[2]); s != nil {
			e.Op = s[1]
		}
		if s := shapeField.FindStringSubmatch(m[2]); s != nil {
			e.Desc = s[1] + " " + s[2]
		}
		r.addEvent(e)
	}
}

// ints reads a list of ranks.
func ints(s string) []int {
	var list []int
	for part := range strings.SplitSeq(s, ",") {
		if n, err := strconv.Atoi(strings.TrimSpace(part)); err == nil && n >= 0 && n < 1<<20 && len(list) < 1<<16 {
			list = append(list, n)
		}
	}
	return list
}

// status files how far a rank's watchdog has come: what failed, what was enqueued last and what was done last.
func (r *reader) status(e Event, m []string) {
	if m == nil {
		return
	}
	e.Kind = Status
	e.Seq, _ = strconv.ParseInt(m[1], 10, 64)
	e.Enqueued, _ = strconv.ParseInt(m[2], 10, 64)
	e.Done, _ = strconv.ParseInt(m[3], 10, 64)
	r.addEvent(e)
}
