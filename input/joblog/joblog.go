// Package joblog reads what a job's own output says about its end: PyTorch's watchdog and tracebacks, NCCL's warnings
// and the creation of communicators, launchers' exit codes, Xid and out-of-memory lines of the kernel. It finds the
// lines that tell, wherever they stand, and says which rank or process each is about; what they mean together is for
// others. Shapes of lines are rows of lines.csv; NCCL's records are those of input/nccllog.
package joblog

import (
	"bytes"
	"io"
	"strings"

	"busbar.dev/input/nccllog"
	"busbar.dev/internal/lines"
)

// Kind is what a line says.
type Kind string

// The kinds of events.
const (
	Timeout      Kind = "timeout"       // the watchdog gave up on a collective
	Status       Kind = "status"        // last enqueued and completed of a group, at a failure
	DumpSignal   Kind = "dump-signal"   // last enqueued and completed of the default group, when a dump was asked for
	RemoteError  Kind = "remote-error"  // a collective failed because a peer is gone
	PeerClosed   Kind = "peer-closed"   // NCCL: the connection to a host was closed
	Network      Kind = "network"       // NCCL: the network failed
	PortFault    Kind = "port-fault"    // NCCL: a port of this host did
	InitStart    Kind = "init-start"    // NCCL: a rank begins to create a communicator
	InitComplete Kind = "init-complete" //
	CommAbort    Kind = "comm-abort"    // NCCL: a rank takes a communicator down in order
	Exception    Kind = "exception"     // the last line of a Python traceback
	CUDAError    Kind = "cuda-error"    // a GPU's error
	Mismatch     Kind = "mismatch"      // TORCH_DISTRIBUTED_DEBUG=DETAIL compares collectives
	Desync       Kind = "desync"        // TORCH_NCCL_DESYNC_DEBUG names ranks
	Joined       Kind = "joined"        // n of m clients joined the rendezvous
	StoreGone    Kind = "store-gone"    // the rendezvous server does not answer
	Xid          Kind = "xid"           // the driver's error
	OOMKill      Kind = "oom-kill"      // the kernel ended a process for memory
	Exit         Kind = "exit"          // a launcher tells how a rank ended
	Process      Kind = "process"       // NCCL: this line was written by a process of that host
	Down         Kind = "down"          // PyTorch takes the process down
	GPULost      Kind = "gpu-lost"      // a GPU does not answer
	Shutdown     Kind = "shutdown"      // an orderly end of a process begins
	InitTimed    Kind = "init-timed"    // NCCL: how long a rank waited for the other members of a communicator
	Address      Kind = "address"       // NCCL: the address that a host uses is Peer
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
	Seq      int
	Enqueued int
	Done     int
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
	// Several tells that lines are marked with different ranks.
	Several bool
	// Stack tells that a process wrote where it was when it ended.
	Stack bool
	// Said is the last line that the program itself wrote before the first watchdog gave up, by the rank that its lines
	// are marked with; -1 where they have no mark.
	Said map[int]Said

	trained int // the last line that may be of a step of a training
}

// GoesOn reports that the program writes on after a line: what it raised there, without a mark of its rank, it caught.
// Loggers and launchers have some lines to say after its end.
func (l *Log) GoesOn(line int) bool {
	if l.trained > line {
		return true
	}
	for _, s := range l.Said {
		if s.Line > line+100 {
			return true
		}
	}
	return false
}

// Said is a line of the program itself.
type Said struct {
	Line int
	Text string
}

const (
	maxEvents = 1 << 16 // of a kind: what ranks begin with leaves room for how they end
	maxAll    = 1 << 18
	maxLine   = 1 << 14
	maxListed = 1 << 20
	maxSaid   = 1 << 14 // ranks
	maxText   = 400
)

// marks are words of lines that this package knows.
const marks = "NCCL INFO|NCCL WARN|ProcessGroupNCCL|Traceback (most recent call last)|NVRM: Xid|TCPStore|[c10d]|" +
	"Killed process|exitcode|srun: error|[rank|GPU is lost"

// Match reports a text with lines that this package knows.
func Match(data []byte) bool {
	return lines.HasAny(data, strings.Split(marks, "|")...)
}

// Read finds the events of a text.
func Read(name string, data []byte) *Log {
	l, _ := ReadStream(name, bytes.NewReader(data)) // of memory: there is no error
	return l
}

// ReadStream finds the events of a text that is read once and not kept.
func ReadStream(name string, in io.Reader) (*Log, error) {
	r := NewReader(name)
	err := nccllog.Scan(name, in, r.Take)
	return r.Log(), err
}
