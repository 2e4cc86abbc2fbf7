package joblog

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/input/nccllog"
	"busbar.dev/internal/lazyre"
)

var (
	usingLine = lazyre.New(`(?:Using |OOB |\[\d+\])[^\s:<]+:(\d+\.\d+\.\d+\.\d+)<\d+>`)
	peerLine  = lazyre.New(`(?:remote peer|peer) ([^\s<]+)<(\d+)>`)
	tableRank = lazyre.New(`^\s*rank\s*: (?P<rank>\d+) \(local_rank: \d+\)`)
	tableCode = lazyre.New(`^\s*exitcode\s*: (?P<code>-?\d+) \(pid: (?P<pid>\d+)\)`)
	tableHost = lazyre.New(`^\s*host\s*: (?P<host>\S+)`)
	srunLine  = lazyre.New(`srun: error: (?P<host>\S+): tasks? (?P<ranks>[\d,\-]+): (.*)`)
)

// kernelShapes are lines of the kernel's log.
var kernelShapes = []shape{
	{Xid, false, "NVRM: Xid", lazyre.New(
		`NVRM: Xid \((?:PCI:)?(?P<bus>[0-9a-fA-F:.]+)\): (?P<code>\d+)(?:, pid='?(?P<pid>\d+|<unknown>)'?)?`)},
	{OOMKill, false, "Killed process", lazyre.New(`Killed process (?P<pid>\d+) \([^)]*\)`)},
}

// exitShapes are how torchrun and mpirun say that a rank ended.
var exitShapes = []shape{
	{Exit, false, "exitcode: ", lazyre.New(`exitcode: (?P<code>-?\d+) \(pid: (?P<pid>\d+)\)`)},
	{Exit, false, "noticed that process rank", lazyre.New(
		`(?:mpirun|prterun) noticed that process rank (?P<rank>\d+) with PID (?P<pid>\d+) on node (?P<host>\S+) exited on signal (?P<signal>\d+)`,
	)},
}

// srunWord is what srun says of an end, and srunCodes its codes.
var (
	srunWord  = lazyre.New(`Killed|Aborted|Segmentation|Terminated`)
	srunCodes = map[string]int{"Killed": -9, "Aborted": -6, "Segmentation": -11, "Terminated": -15}
)

// networkWords are those of NCCL's warnings about a network that fails, as opposed to a peer that is gone.
var networkWords = []string{
	"Got completion from peer", "completion with error", "with status=", "ibv_poll_cq", "NET/IB : Got async event",
	"NET/IB: Got async event", "No route to host",
	"Network is unreachable", "Connection timed out", "port is down", "link down", "ibv_modify_qp failed",
}

// nccl reads a line of NCCL's log.
func (r *reader) nccl(text string) {
	line := nccllog.ParseLine(text, nccllog.Pos{})
	for i := range line.Records {
		if rec := &line.Records[i]; rec.Host != "" {
			r.record(rec, Event{Rank: r.rank, Host: rec.Host, PID: rec.PID, Text: text})
		}
	}
}

// record reads one record of such a line.
func (r *reader) record(rec *nccllog.Record, e Event) {
	process := e
	process.Kind = Process
	r.addOnce(process, rec.Host, rec.PID)
	said := rec.Text
	switch m := rec.Message.(type) {
	case *nccllog.CommLine:
		id, err := strconv.ParseUint(strings.TrimPrefix(m.ID, "0x"), 16, 64)
		if e.Kind = InitStart; m.What == nccllog.InitComplete {
			e.Kind = InitComplete
		}
		if e.Comm, e.CommRank, e.NRanks = id, m.Rank, m.NRanks; err == nil && strings.HasPrefix(m.What, "Init ") {
			r.addEvent(e)
		}
		return
	case *nccllog.InitTimes:
		r.timed(e, m)
		return
	}
	switch {
	case strings.Contains(said, " - Abort START"), strings.Contains(said, " - Destroy START"):
		e.Kind = CommAbort
		r.addEvent(e)
	case strings.HasPrefix(said, "Bootstrap") || strings.HasPrefix(said, "NET/") && strings.Contains(said, " Using "):
		r.address(e, said)
	case rec.Level == "WARN":
		r.ncclWarn(e, said)
	}
}

// timed reads how long the making of the process's last communicator took; the bootstrap is the wait for the other
// members.
func (r *reader) timed(e Event, m *nccllog.InitTimes) {
	if m.Bootstrap < 0 || m.Bootstrap > 1e9 {
		return
	}
	e.Kind, e.CommRank, e.NRanks, e.Wait = InitTimed, m.Rank, m.NRanks, m.Bootstrap
	for i := len(r.log.Events) - 1; i >= 0; i-- {
		if c := &r.log.Events[i]; c.Kind == InitComplete && c.PID == e.PID && c.Host == e.Host {
			e.Comm = c.Comm
			break
		}
	}
	r.addEvent(e)
}

// address keeps the addresses that a host says it uses.
func (r *reader) address(e Event, said string) {
	for _, m := range usingLine.FindAllStringSubmatch(said, 8) {
		e.Kind, e.Peer = Address, m[1]
		r.addOnce(e, e.Host, e.Peer)
	}
}

// ncclWarn reads a warning.
func (r *reader) ncclWarn(e Event, said string) {
	if p := peerLine.FindStringSubmatch(said); p != nil {
		e.Peer = p[1]
	}
	switch {
	case strings.Contains(said, "Connection closed by remote peer"), strings.Contains(said, "Connection reset by peer"),
		strings.Contains(said, "remote process exited"):
		e.Kind = PeerClosed
		r.addEvent(e)
	case strings.Contains(said, "Cuda failure"), strings.Contains(said, "CUDA failure"):
		e.Kind = CUDAError
		r.addEvent(e)
	default:
		if slices.ContainsFunc(networkWords, func(w string) bool { return strings.Contains(said, w) }) {
			e.Kind = Network
			r.addEvent(e)
		}
	}
}

// launcher reads how torchrun, srun and mpirun say that a rank ended.
func (r *reader) launcher(text string) {
	e := Event{Kind: Exit, Rank: -1, Text: text, Code: 1}
	r.failed.Text = text
	switch {
	case r.fill(&r.failed, tableRank):
		r.fatal = true
	case r.fill(&r.failed, tableHost):
	case r.fatal && r.fill(&r.failed, tableCode):
		r.failed.Kind = Exit
		r.addEvent(r.failed)
		r.fatal, r.failed = false, Event{}
	case r.fill(&e, srunLine):
		e.Code = cmp.Or(srunCodes[srunWord.FindString(text)], e.Code)
		if len(e.Ranks) == 1 {
			e.Rank = e.Ranks[0]
		}
		r.addEvent(e)
	default:
		r.take(exitShapes, e)
	}
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
