package evidence

import (
	"net/netip"
	"strings"
)

// What launchers, stores and name services print when ranks do not come together.
const (
	NameUnknown   Kind = "name-unknown"   // host name that does not resolve, "ipv6" where only that was asked
	LaunchRefused Kind = "launch-refused" // why a launcher could not start a process elsewhere
	GlooLoopback  Kind = "gloo-loopback"  // Gloo's own name leads to no interface
	TimeLimit     Kind = "time-limit"     // of a collective or a store, in seconds
	UnusedParams  Kind = "unused-params"  // parameters without a gradient
	TopoFault     Kind = "topo-fault"     // what NCCL could not read of a topology or graph file
	NoAddress     Kind = "no-address"     // an address of no family
	OwnNet        Kind = "own-net"        // interface, first half of its IPv4 address
	PeerNet       Kind = "peer-net"       // class of an address that was not reached, interface, first half of it
	GIDPair       Kind = "gid-pair"       // together, apart: the two ends of a failed connection
	RDMANetDev    Kind = "rdma-netdev"    // device, Up or Down
	PortActive    Kind = "port-active"    //
	LibraryMix    Kind = "library-mix"    // symbol that a library lacks
	NCCLPackage   Kind = "nccl-package"   // package, version
	FabricHealth  Kind = "fabric-health"  // what NVML's health mask says is wrong
	Refused       Kind = "memory-refused" // event of a work queue whose memory was refused
	OtherNet      Kind = "other-net"      // no interface lies in the network of the first rank
	GlobalRank    Kind = "global-rank"    // rank, ranks of the job, as a launcher counts them
	NoNCCL        Kind = "no-nccl"        // the framework was built with no NCCL, or sees no GPU
	Harmful       Kind = "harmful"        // setting without which it is told to work
	SlurmError    Kind = "slurm-error"    // what Slurm refused or ended: step, account, ended
)

// seenLaunch is what keeps ranks from meeting, and what lies about the network
// between them. The sources: PyTorch's socket.cpp, TCPStore.cpp, ProcessGroupGloo.cpp
// and reducer.cpp, Open MPI's and DeepSpeed's launchers, OpenSSH, NCCL's socket.cc,
// ibvwrap.cc and graph/xml.cc, ibdev2netdev.
func seenLaunch() []seen {
	return []seen{
		{kind: NameUnknown, words: "could not resolve hostname|name or service not known|temporary failure in name " +
			"resolution|host not found|no address associated with hostname|cannot be retrieved (gai", take: unresolved},
		{
			kind: LaunchRefused, words: "permission denied (publickey|host key verification failed|unable to reliably start " +
				"one or more daemons|exit status 255|exit code 255|ssh: connect to host",
			pattern: `(?i)(permission denied \(publickey|host key verification failed|unable to reliably start one or more daemons|\bssh\b.{0,160}exit (?:status|code) 255|ssh: connect to host \S+ port \d+: (?:[a-z]+ ?)+)`, take: lowered,
		},
		{kind: SlurmError, words: "srun: error|sbatch: error|salloc: error|srun: job step creation|srun: step " +
			"creation|slurmstepd: error", take: slurmError},
		{kind: GlooLoopback, words: "unable to resolve hostname to a", take: none},
		{
			kind: GlooLoopback, words: "remote=[127.|remote=[::1]",
			pattern: `(?i)(?:gloo|connectFullMesh|SO_ERROR).{0,200}remote=\[(?:127\.|::1\])`, take: none,
		},
		{
			kind: Rendezvous, words: "waitforinput", pattern: `waitForInput: socket .{0,200}timed out after \d+ ?ms`, take: none,
		},
		{
			kind: TimeLimit, words: "timeout(ms)=|timed out after|wait timeout after",
			pattern: `(?:Timeout\(ms\)=|(?:timed out|wait timeout) after )(\d+)(?:,|\)| ?ms\b)`, take: seconds,
		},
		{
			kind: UnusedParams, words: "expected to have finished reduction|did not receive grad|find_unused_parameters",
			pattern: `(?i)expected to have finished reduction in the prior iteration|parameters? (?:indices|at index|which) .{0,80}did not receive grad`, take: none,
		},
		{
			kind: TopoFault, words: "xml import|xml parse|attribute |could not open xml|unexpected xml",
			pattern: `(?i)NCCL WARN ((?:XML (?:Import|Parse)|Attribute [\w ]+ of node|could not open XML|unexpected xml).{0,60})`, take: shapeOf,
		},
		{kind: ConnectError, words: "proxy call to rank", pattern: `Proxy Call to rank \d+ failed \(Connect\)`, take: proxy},
		{
			kind: ConnectError, words: "operation now in progress",
			pattern: `socket\.(?:cc|h):\d+ -> 2 \(Operation now in progress\)`, take: expired,
		},
		{kind: OtherNet, words: "no interface found in the same subnet", take: none},
		{kind: IPCFailure, words: "transport/p2p.cc", pattern: `transport/p2p\.cc:\d+ NCCL WARN Cuda failure`, take: none},
		{kind: GlobalRank, words: "global_rank", pattern: `GLOBAL_RANK: (\d+), MEMBER: \d+/(\d+)`},
		{
			kind: NoNCCL, words: "have nccl built in|no gpus found|nccl is not available",
			pattern: `(?i)doesn't have NCCL built in|ProcessGroupNCCL is only supported with GPUs|NCCL is not available`,
			take:    none,
		},
		{
			kind: TorchError, words: "async nccl error|nccl operation",
			pattern: `(?:async NCCL error|NCCL operation \w+ failed): ?(remote process exited|unhandled system|unhandled cuda|internal|invalid usage)`, take: asyncError,
		},
		{kind: NoAddress, words: "is neither af_inet", take: none},
		{kind: OwnNet, words: "bootstrap", pattern: `Bootstrap ?: Using (?:\[\d+\])?([\w.@-]+):(\d+\.\d+)\.\d+\.\d+<`},
		{
			kind: PeerNet, words: "connect to|connecting to address|remote=[",
			pattern: `(?i)(?:connect(?:ing)? to (?:address )?|remote=)\[?((?:::ffff:)?[0-9a-f]*[.:][0-9a-f.:]+?)(?:%([\w.-]+))?(?:\]?:\d+\b|<\d+>).{0,24}?(?:failed|timed out|errno|refused|unreachable|abort|$)`, take: peer,
		},
		{
			kind: GIDPair, words: "remote gid|remotegid",
			pattern: `(?i)local ?GIDs? ?([0-9a-f:.]{3,}),? remote ?GIDs? ?([0-9a-f:.]{3,})`, take: gidPair,
		},
		{kind: RDMANetDev, words: " ==> ", pattern: `^\s*(\w+) port \d+ ==> \S+ \((Up|Down)\)`},
		{
			kind: PortActive, words: "active", pattern: `(?i)(?:^|\s)(?:port_)?state:?\s+(?:\d+: ?)?(?:PORT_)?ACTIVE\b`,
			take: none,
		},
		{kind: LibraryMix, words: "undefined symbol: nccl|undefined symbol: rccl", pattern: `undefined symbol: (\w+)`},
		{kind: NCCLPackage, words: "nvidia-nccl-cu", pattern: `(nvidia-nccl-cu\d+)(?:==|\s+)(\d+\.\d+[\d.]*)`},
		{kind: FabricHealth, words: "healthmask", pattern: `(?i)\bhealthMask 0x([0-9a-f]{1,8})\b`, take: fabricHealth},
		{kind: Refused, words: "local access violation|work queue error|invalid request local work queue", take: none},
	}
}

// unresolved is the name that nobody knows. A name on the internet that a download
// asks for is no host of the job; one that lacks an IPv6 address alone may have an
// IPv4 one.
func unresolved(g []string) ([]string, bool) {
	low := strings.ToLower(g[0])
	for _, w := range []string{"http", "urllib3", "pip ", "apt", "curl", "wget", "proxy"} {
		if strings.Contains(low, w) {
			return nil, false
		}
	}
	name := ""
	if _, rest, ok := strings.Cut(low, "could not resolve hostname "); ok {
		name, _, _ = strings.Cut(rest, ":")
	} else if _, rest, ok := strings.Cut(low, "network addresses of ("); ok {
		name, _, _ = strings.Cut(rest, ",")
	}
	if name = strings.TrimSpace(name); len(name) > 100 {
		name = ""
	}
	only := ""
	if strings.Contains(low, "ipv6 network addresses") {
		only = "ipv6"
	}
	return []string{name, only}, true
}

// asyncError names the error that XLA passes on in words.
func asyncError(g []string) ([]string, bool) {
	return []string{map[string]string{
		"remote process exited": "ncclRemoteError", "unhandled system": "ncclSystemError",
		"unhandled cuda": "ncclUnhandledCudaError", "internal": "ncclInternalError", "invalid usage": "ncclInvalidUsage",
	}[g[0]]}, true
}

// proxy and expired are connections that failed without a warning of their own: the
// proxy thread's, and those that were tried until the retries ended.
func proxy([]string) ([]string, bool)   { return []string{"proxy"}, true }
func expired([]string) ([]string, bool) { return []string{"timeout"}, true }

// seconds makes seconds of milliseconds.
func seconds(g []string) ([]string, bool) {
	s := g[0]
	if len(s) < 4 {
		return nil, false
	}
	return []string{s[:len(s)-3]}, true
}

// peer tells apart the addresses that could not be reached. Of an IPv4 address the
// first half is kept, and whether it is the first of its network: that is what the
// host's end of a container bridge has.
func peer(g []string) ([]string, bool) {
	a, err := netip.ParseAddr(strings.Trim(g[0], "[]"))
	if err != nil {
		return nil, false
	}
	a = a.Unmap()
	iface := ""
	if len(g) > 1 {
		iface = g[1]
	}
	class := addressClass(a.String())
	half := ""
	if a.Is4() {
		b := a.As4()
		half = a.String()
		half = half[:strings.IndexByte(half, '.')+1+strings.IndexByte(half[strings.IndexByte(half, '.')+1:], '.')]
		switch {
		case b[0] == 0 || b[0] >= 224:
			class = "impossible"
		case class == "ipv4" && b[0] == 172 && b[1] > 17 && b[1] < 32 && b[2] == 0 && b[3] == 1:
			class = "bridge"
		}
	}
	return []string{class, iface, half}, true
}

// gidPair tells whether the two ends of a connection lie in one network. Rails of
// RoCE mostly have a network each, of which the host's part is the last byte.
func gidPair(g []string) ([]string, bool) {
	a, err := netip.ParseAddr(strings.TrimRight(g[0], ".:,"))
	b, err2 := netip.ParseAddr(strings.TrimRight(g[1], ".:,"))
	if err != nil || err2 != nil {
		return nil, false
	}
	a, b = a.Unmap(), b.Unmap()
	bits := 64
	if a.Is4() && b.Is4() {
		bits = 24
	}
	if a.BitLen() != b.BitLen() {
		return []string{"apart"}, true
	}
	p, err := a.Prefix(bits)
	if err != nil || p.Contains(b) {
		return []string{"together"}, err == nil
	}
	return []string{"apart"}, true
}

// fabricHealth reads NVML's mask of an NVLink fabric. Its fields are two bits wide:
// 0 not supported, 1 the fault is there, 2 it is not, so that 0xaa is healthy.
// Source: NVML API reference, fabric definitions.
func fabricHealth(g []string) ([]string, bool) {
	mask := 0
	for _, r := range strings.ToLower(g[0]) {
		mask = mask<<4 | strings.IndexRune("0123456789abcdef", r)
	}
	for i, what := range []string{
		"degraded bandwidth", "a route being recovered", "an unhealthy route", "recovery of an access time-out",
	} {
		if mask>>(2*i)&3 == 1 {
			return []string{what}, true
		}
	}
	return nil, false
}

// slurmErrors are what Slurm's commands print when they refuse or end a job, by what that means.
var slurmErrors = [][2]string{
	{"unable to create step", "step"},
	{"more processors requested", "step"},
	{"step creation", "step"},
	{"requested node configuration", "step"},
	{"invalid generic resource", "step"},
	{"unable to allocate resources: requested", "step"},
	{"invalid account", "account"},
	{"invalid partition", "account"},
	{"invalid qos", "account"},
	{"violates accounting", "account"},
	{"due to time limit", "ended"},
	{"due to preemption", "ended"},
	{"due to node failure", "ended"},
}

func slurmError(g []string) ([]string, bool) {
	low := strings.ToLower(g[0])
	for _, x := range slurmErrors {
		if strings.Contains(low, x[0]) {
			return []string{x[1]}, true
		}
	}
	return nil, false
}
