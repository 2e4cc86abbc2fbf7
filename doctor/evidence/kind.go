package evidence

// Kind names what was seen. The comment says what the arguments are.
type Kind string

// What NCCL, RCCL and their plugins print.
const (
	Bootstrap     Kind = "bootstrap"      // interface, class of its address
	SocketUsing   Kind = "socket-using"   // interfaces, classes of their addresses
	IBUsing       Kind = "ib-using"       // devices, link layers
	Network       Kind = "network"        // IB, Socket, AWS Libfabric
	NoIB          Kind = "no-ib"          // InfiniBand found no device
	NoPlugin      Kind = "no-plugin"      // library that was looked for
	NoNetwork     Kind = "no-network"     // network that was asked for
	Provider      Kind = "ofi-provider"   // libfabric's provider
	OFIFailure    Kind = "ofi-failure"    // of the plugin for libfabric
	GDROff        Kind = "gdr-off"        // device
	GDROn         Kind = "gdr-on"         // device
	OverNet       Kind = "over-net"       // network, "gdr" or ""
	OverShm       Kind = "over-shm"       // GPUs joined through host memory
	OverP2P       Kind = "over-p2p"       // IPC, CUMEM, direct pointer
	Completion    Kind = "completion"     // status of a work request, vendor's code
	Verdict       Kind = "wc"             // name of a work completion's error
	AsyncEvent    Kind = "async-event"    // event of a port or device
	VerbsFailure  Kind = "verbs-failure"  // call, reason
	DeviceFailure Kind = "device-failure" // device that could not be opened
	ConnectError  Kind = "connect-error"  // reason, for good
	ConnectRetry  Kind = "connect-retry"  // reason, tried again
	PeerGone      Kind = "peer-gone"      // the other end closed
	Stranger      Kind = "stranger"       // wrong magic
	NoInterface   Kind = "no-interface"   // for the bootstrap
	DuplicateGPU  Kind = "duplicate-gpu"  // the two ranks
	VersionMix    Kind = "version-mix"    //
	RootMismatch  Kind = "root-mismatch"  // ranks that do not fit one job
	SizeMismatch  Kind = "size-mismatch"  // collectives that do not fit
	NetMismatch   Kind = "net-mismatch"   // NICs that do not fit
	ShmFailure    Kind = "shm-failure"    //
	P2PFault      Kind = "p2p-fault"      //
	NVLSFailure   Kind = "nvls-failure"   // error of CUDA
	NVLSAbsent    Kind = "nvls-absent"    //
	CollNetOff    Kind = "collnet-off"    // what SHARP or CollNet could not do
	KnownWarning  Kind = "known-warning"  // what it says; see warnings.csv
	IMEX          Kind = "imex"           //
	CUDAFailure   Kind = "cuda-failure"   // text of the error
	NoTransport   Kind = "no-transport"   //
	NoPath        Kind = "no-path"        // the search found no ring
	Graph         Kind = "graph"          // channels, bandwidth inside, types
	BadAlgorithm  Kind = "bad-algorithm"  // NCCL_ALGO or NCCL_PROTO
	OpenFiles     Kind = "open-files"     // too many
	NoRealPath    Kind = "no-real-path"   // a bus id that is not there
	TopologyLimit Kind = "topology-limit" //
	LoneRing      Kind = "lone-ring"      // a ring of rank 0 alone
	CollChannels  Kind = "coll-channels"  // number
	IommuWarning  Kind = "iommu-warning"  // RCCL misses iommu=pt
	CPUEmpty      Kind = "cpu-empty"      // no core in common with the GPU
	NetDevCounts  Kind = "net-dev-counts" // differ between ranks
	Returned      Kind = "returned"       // an error on its way up: code
	TopoFile      Kind = "topo-file"      // that was loaded
	NCCLVersion   Kind = "nccl-version"   // as printed
	TableWrong    Kind = "table-wrong"    // nccl-tests: wrong values
	Average       Kind = "average"        // printed by nccl-tests
)

// What tools about the machine, the NICs and the fabric print.
const (
	ACSOn         Kind = "acs-on"         // bits that are set
	LinkDegraded  Kind = "link-degraded"  // speed, width
	IommuSetting  Kind = "iommu-setting"  // name, value
	IommuMode     Kind = "iommu-mode"     // translated, passthrough
	IommuFault    Kind = "iommu-fault"    //
	Counter       Kind = "counter"        // name, value above zero
	GID           Kind = "gid"            // device, index, link-local|ipv4|global, v1|v2
	MTU           Kind = "mtu"            // interface, bytes
	ActiveMTU     Kind = "active-mtu"     // bytes
	Peermem       Kind = "peermem"        // module, use count
	PeermemAbsent Kind = "peermem-absent" //
	Memlock       Kind = "memlock"        // limit in KiB, or unlimited
	ShmSize       Kind = "shm-size"       // of /dev/shm in MiB
	FabricManager Kind = "fabric-manager" // state
	Xid           Kind = "xid"            // number
	LinkDown      Kind = "link-down"      // interface
	PortState     Kind = "port-state"     // Down, Polling, Disabled
	Binding       Kind = "binding"        // how a launcher binds
	Firewall      Kind = "firewall"       // what filters
	CPUSet        Kind = "cpu-set"        // cores a process may use
	Pages         Kind = "pages"          // memory that cannot be pinned
	NumaBalancing Kind = "numa-balancing" // the kernel moves pages between nodes
	GPULost       Kind = "gpu-lost"       // an error that CUDA reports for hardware
	ShmAbsent     Kind = "shm-absent"     // a segment that a peer made is not seen
)

// What the program and its framework print.
const (
	Watchdog     Kind = "watchdog"       // sequence number, operation
	TorchError   Kind = "torch-error"    // ncclSystemError and the like
	LastError    Kind = "last-error"     // what NCCL told the framework last
	Rendezvous   Kind = "rendezvous"     //
	AddressInUse Kind = "address-in-use" //
	Missing      Kind = "missing"        // ranks that did not come
	Disagree     Kind = "disagree"       // ranks in different collectives
	OutOfMemory  Kind = "out-of-memory"  //
	HostMemory   Kind = "host-memory"    // the kernel killed a process
	BusError     Kind = "bus-error"      //
	Crash        Kind = "crash"          // segv, abort
	Killed       Kind = "killed"         // by signal 9
	KernelAssert Kind = "kernel-assert"  // of the program's own kernels
	Queued       Kind = "queued"         // collectives that wait on a rank
	Gloo         Kind = "gloo"           //
)

// What people write about it: only in sentences.
const (
	Symptom Kind = "symptom" // hang, slow, crash, timeout, unstable, wrong, drop, scale, scattered
	Setting Kind = "setting" // vm, container, roce, ib, efa, docker, …
	Helps   Kind = "helps"   // a setting that makes it work
	Hurts   Kind = "hurts"   // a setting that makes it fail
	Release Kind = "release" // change: nccl, kernel, driver, os
	Device  Kind = "device"  // GPU model as told
	Blames  Kind = "blames"  // what is told to differ: one NIC, one node, pairs, both
	Layout  Kind = "layout"  // a topology in which NICs are near some GPUs only
	Pair    Kind = "pair"    // two nodes and what they reach
	Topic   Kind = "topic"   // what is spoken of: gid, mtu, acs, bond, …
)
