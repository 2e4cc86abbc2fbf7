package joblog

import (
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/input/nccllog"
	"busbar.dev/internal/lazyre"
)

var (
	usingLine  = lazyre.New(`(?:Using |OOB |\[\d+\])[^\s:<]+:(\d+\.\d+\.\d+\.\d+)<\d+>`)
	peerLine   = lazyre.New(`(?:remote peer|peer) ([^\s<]+)<(\d+)>`)
	xidLine    = lazyre.New(`NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)(?:, pid='?(\d+|<unknown>)'?)?`)
	killedLine = lazyre.New(`Killed process (\d+) \(([^)]*)\)`)
	exitLine   = lazyre.New(`exitcode: (-?\d+) \(pid: (\d+)\)`)
	tableRank  = lazyre.New(`^\s*rank\s*: (\d+) \(local_rank: \d+\)`)
	tableCode  = lazyre.New(`^\s*exitcode\s*: (-?\d+) \(pid: (\d+)\)`)
	tableHost  = lazyre.New(`^\s*host\s*: (\S+)`)
	srunLine   = lazyre.New(`srun: error: (\S+): tasks? ([\d,\-]+): (.*)`)
	mpirunLine = lazyre.New(
		`(?:mpirun|prterun) noticed that process rank (\d+) with PID (\d+) on node (\S+) exited on signal (\d+)`)
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
	if key := fmt.Sprintf("process %s:%d", rec.Host, rec.PID); !r.seen[key] && len(r.seen) < 1<<16 {
		r.seen[key] = true
		p := e
		p.Kind = Process
		r.addEvent(p)
	}
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
		if key := "address " + e.Host + m[1]; !r.seen[key] && len(r.seen) < 1<<16 {
			r.seen[key] = true
			e.Kind, e.Peer = Address, m[1]
			r.addEvent(e)
		}
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
		for _, w := range networkWords {
			if strings.Contains(said, w) {
				e.Kind = Network
				r.addEvent(e)
				return
			}
		}
	}
}

// kernel reads lines of the kernel's log.
func (r *reader) kernel(text string) {
	if m := xidLine.FindStringSubmatch(text); m != nil {
		e := Event{Kind: Xid, Rank: -1, Bus: m[1], Text: text}
		e.Code, _ = strconv.Atoi(m[2])
		e.PID, _ = strconv.Atoi(m[3])
		e.Host = HostOf(r.log.Name, text)
		r.addEvent(e)
		return
	}
	if m := killedLine.FindStringSubmatch(text); m != nil {
		e := Event{Kind: OOMKill, Rank: -1, Text: text, Host: HostOf(r.log.Name, text)}
		e.PID, _ = strconv.Atoi(m[1])
		r.addEvent(e)
	}
}

// launcher reads how torchrun, srun and mpirun say that a rank ended.
func (r *reader) launcher(text string) {
	if m := tableRank.FindStringSubmatch(text); m != nil {
		r.failed.Rank, _ = strconv.Atoi(m[1])
		r.fatal = true
		return
	}
	if m := tableHost.FindStringSubmatch(text); m != nil {
		r.failed.Host = m[1]
		return
	}
	if m := tableCode.FindStringSubmatch(text); m != nil && r.fatal {
		e := r.failed
		e.Kind, e.Text = Exit, text
		e.Code, _ = strconv.Atoi(m[1])
		e.PID, _ = strconv.Atoi(m[2])
		r.addEvent(e)
		r.fatal, r.failed = false, Event{}
		return
	}
	if m := exitLine.FindStringSubmatch(text); m != nil {
		e := Event{Kind: Exit, Rank: -1, Text: text}
		e.Code, _ = strconv.Atoi(m[1])
		e.PID, _ = strconv.Atoi(m[2])
		r.addEvent(e)
		return
	}
	if m := srunLine.FindStringSubmatch(text); m != nil {
		e := Event{
			Kind: Exit, Rank: -1, Host: m[1], Text: text, Ranks: taskList(m[2], min(1<<16, maxListed-r.listed)), Code: 1,
		}
		switch {
		case strings.Contains(m[3], "Killed"):
			e.Code = -9
		case strings.Contains(m[3], "Aborted"):
			e.Code = -6
		case strings.Contains(m[3], "Segmentation"):
			e.Code = -11
		case strings.Contains(m[3], "Terminated"):
			e.Code = -15
		}
		if len(e.Ranks) == 1 {
			e.Rank = e.Ranks[0]
		}
		r.addEvent(e)
		return
	}
	if m := mpirunLine.FindStringSubmatch(text); m != nil {
		e := Event{Kind: Exit, Text: text, Host: m[3]}
		e.Rank, _ = strconv.Atoi(m[1])
		e.PID, _ = strconv.Atoi(m[2])
		sig, _ := strconv.Atoi(m[4])
		e.Code = -sig
		r.addEvent(e)
	}
}

// taskList reads Slurm's numbers of tasks, so many at most: 3, 0-2, 0,4-7.
func taskList(s string, most int) []int {
	var list []int
	for part := range strings.SplitSeq(s, ",") {
		low, high, ok := strings.Cut(part, "-")
		a, err := strconv.Atoi(low)
		if err != nil {
			continue
		}
		b := a
		if ok {
			if b, err = strconv.Atoi(high); err != nil || b-a > 1<<16 {
				continue
			}
		}
		for ; a <= b && len(list) < most; a++ {
			list = append(list, a)
		}
	}
	return list
}
