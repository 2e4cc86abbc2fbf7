package evidence

import (
	_ "embed"

	"busbar.dev/internal/csvtable"
)

// Kind names what was seen; kinds.csv says what the arguments are.
type Kind string

//go:embed kinds.csv
var kindTable string

// KindText is a kind as causes ask for it.
type KindText struct {
	Name string `csv:"kind"`
	Says string `csv:"says"`
}

// Kinds are all kinds with what their arguments are.
func Kinds() []KindText { return csvtable.Must[KindText]("kinds.csv", kindTable) }

// Kinds that are asked for in Go, beside those that conditions of causes ask for.
const (
	Line          Kind = "line" // a line that matches a pattern which a cause of the user asks for: the pattern
	Bootstrap     Kind = "bootstrap"
	SocketUsing   Kind = "socket-using"
	IBUsing       Kind = "ib-using"
	Network       Kind = "network"
	GDROff        Kind = "gdr-off"
	GDROn         Kind = "gdr-on"
	OverNet       Kind = "over-net"
	Completion    Kind = "completion"
	FailedDevice  Kind = "failed-device"
	LostPeer      Kind = "lost-peer"
	GPUName       Kind = "gpu-name"
	Verdict       Kind = "wc"
	VerbsFailure  Kind = "verbs-failure"
	DeviceFailure Kind = "device-failure"
	ConnectError  Kind = "connect-error"
	ConnectRetry  Kind = "connect-retry"
	PeerGone      Kind = "peer-gone"
	Returned      Kind = "returned"
	Average       Kind = "average"
	Counter       Kind = "counter"
	MTU           Kind = "mtu"
	Watchdog      Kind = "watchdog"
	TorchError    Kind = "torch-error"
	LastError     Kind = "last-error"
	Missing       Kind = "missing"
	OutOfMemory   Kind = "out-of-memory"
	LocalDial     Kind = "local-dial"
	EngineRun     Kind = "engine-run"
	TestRank      Kind = "test-rank"
	TestHeader    Kind = "test-header"
	Launched      Kind = "launched"
)
