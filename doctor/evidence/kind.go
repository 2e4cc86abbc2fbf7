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

// Line is a line that matches a pattern which a cause of the user asks for: the pattern.
const Line Kind = "line"

// What NCCL, RCCL and their plugins print.
const (
	Bootstrap     Kind = "bootstrap"
	SocketUsing   Kind = "socket-using"
	IBUsing       Kind = "ib-using"
	Network       Kind = "network"
	NoIB          Kind = "no-ib"
	NoPlugin      Kind = "no-plugin"
	NoNetwork     Kind = "no-network"
	Provider      Kind = "ofi-provider"
	OFIFailure    Kind = "ofi-failure"
	GDROff        Kind = "gdr-off"
	GDROn         Kind = "gdr-on"
	OverNet       Kind = "over-net"
	OverShm       Kind = "over-shm"
	OverP2P       Kind = "over-p2p"
	Completion    Kind = "completion"
	FailedDevice  Kind = "failed-device"
	LostPeer      Kind = "lost-peer"
	GPUName       Kind = "gpu-name"
	Verdict       Kind = "wc"
	AsyncEvent    Kind = "async-event"
	VerbsFailure  Kind = "verbs-failure"
	DeviceFailure Kind = "device-failure"
	ConnectError  Kind = "connect-error"
	ConnectRetry  Kind = "connect-retry"
	PeerGone      Kind = "peer-gone"
	Stranger      Kind = "stranger"
	NoInterface   Kind = "no-interface"
	DuplicateGPU  Kind = "duplicate-gpu"
	VersionMix    Kind = "version-mix"
	RootMismatch  Kind = "root-mismatch"
	SizeMismatch  Kind = "size-mismatch"
	NetMismatch   Kind = "net-mismatch"
	ShmFailure    Kind = "shm-failure"
	P2PFault      Kind = "p2p-fault"
	NVLSFailure   Kind = "nvls-failure"
	NVLSAbsent    Kind = "nvls-absent"
	CollNetOff    Kind = "collnet-off"
	KnownWarning  Kind = "known-warning"
	IMEX          Kind = "imex"
	CUDAFailure   Kind = "cuda-failure"
	NoTransport   Kind = "no-transport"
	NoPath        Kind = "no-path"
	Graph         Kind = "graph"
	BadAlgorithm  Kind = "bad-algorithm"
	OpenFiles     Kind = "open-files"
	NoRealPath    Kind = "no-real-path"
	TopologyLimit Kind = "topology-limit"
	LoneRing      Kind = "lone-ring"
	CollChannels  Kind = "coll-channels"
	IommuWarning  Kind = "iommu-warning"
	CPUEmpty      Kind = "cpu-empty"
	NetDevCounts  Kind = "net-dev-counts"
	Returned      Kind = "returned"
	TopoFile      Kind = "topo-file"
	NCCLVersion   Kind = "nccl-version"
	TableWrong    Kind = "table-wrong"
	Average       Kind = "average"
)

// What tools about the machine, the NICs and the fabric print.
const (
	ACSOn         Kind = "acs-on"
	LinkDegraded  Kind = "link-degraded"
	IommuSetting  Kind = "iommu-setting"
	IommuMode     Kind = "iommu-mode"
	IommuFault    Kind = "iommu-fault"
	Counter       Kind = "counter"
	GID           Kind = "gid"
	MTU           Kind = "mtu"
	ActiveMTU     Kind = "active-mtu"
	Peermem       Kind = "peermem"
	PeermemAbsent Kind = "peermem-absent"
	Memlock       Kind = "memlock"
	ShmSize       Kind = "shm-size"
	FabricManager Kind = "fabric-manager"
	Xid           Kind = "xid"
	LinkDown      Kind = "link-down"
	PortState     Kind = "port-state"
	Binding       Kind = "binding"
	Firewall      Kind = "firewall"
	CPUSet        Kind = "cpu-set"
	Pages         Kind = "pages"
	NumaBalancing Kind = "numa-balancing"
	GPULost       Kind = "gpu-lost"
	ShmAbsent     Kind = "shm-absent"
)

// What the program and its framework print.
const (
	Watchdog     Kind = "watchdog"
	TorchError   Kind = "torch-error"
	LastError    Kind = "last-error"
	Rendezvous   Kind = "rendezvous"
	AddressInUse Kind = "address-in-use"
	Missing      Kind = "missing"
	Disagree     Kind = "disagree"
	OutOfMemory  Kind = "out-of-memory"
	HostMemory   Kind = "host-memory"
	BusError     Kind = "bus-error"
	Crash        Kind = "crash"
	Killed       Kind = "killed"
	KernelAssert Kind = "kernel-assert"
	Queued       Kind = "queued"
	Gloo         Kind = "gloo"
)
