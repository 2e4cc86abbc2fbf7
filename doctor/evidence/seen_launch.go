package evidence

import (
	"net/netip"
	"strings"
)

// What launchers, stores and name services print when ranks do not come together.
const (
	NameUnknown   Kind = "name-unknown"
	LaunchRefused Kind = "launch-refused"
	GlooLoopback  Kind = "gloo-loopback"
	TimeLimit     Kind = "time-limit"
	UnusedParams  Kind = "unused-params"
	TopoFault     Kind = "topo-fault"
	NoAddress     Kind = "no-address"
	OwnNet        Kind = "own-net"
	PeerNet       Kind = "peer-net"
	GIDPair       Kind = "gid-pair"
	RDMANetDev    Kind = "rdma-netdev"
	PortActive    Kind = "port-active"
	LibraryMix    Kind = "library-mix"
	NCCLPackage   Kind = "nccl-package"
	FabricHealth  Kind = "fabric-health"
	Refused       Kind = "memory-refused"
	OtherNet      Kind = "other-net"
	GlobalRank    Kind = "global-rank"
	NoNCCL        Kind = "no-nccl"
	SlurmError    Kind = "slurm-error"
)

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
