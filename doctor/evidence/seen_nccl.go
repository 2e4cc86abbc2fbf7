package evidence

import (
	"strings"

	"busbar.dev/internal/lines"
)

// seenNCCL is what NCCL, RCCL and plugins for their network print, from 2.4 to
// 2.30. The texts are those of the releases' sources.
func seenNCCL() []seen {
	return []seen{
		{
			kind: Bootstrap, words: "bootstrap", pattern: `Bootstrap ?: Using (?:\[\d+\])?([\w.@-]+):([0-9a-fA-F.:%\w]*)<`,
			take: address,
		},
		{
			kind: Bootstrap, words: "net : using interface", pattern: `NET : Using interface ([\w.@-]+):([0-9a-fA-F.:%\w]*)<`,
			take: address,
		},
		{
			kind: NoPlugin, words: "libibverbs",
			pattern: `(?i)(?:failed to open|could not (?:open|find)|cannot open) (libibverbs\.so)`,
		},
		{
			kind: SocketUsing, words: "NET/Socket : Using|NET/Socket: Using", pattern: `NET/Socket ?: Using (\[\d+\].*)`,
			take: interfaces,
		},
		{kind: IBUsing, words: "NET/IB : Using|NET/IB: Using", pattern: `NET/IB ?: Using (\[.*)`, take: adapters},
		{kind: Network, words: "using network", pattern: `Using network (AWS Libfabric|[\w./-]+)`},
		{kind: NoIB, words: "no device found", pattern: `NET/IB ?: No device found`},
		{
			kind: NoPlugin, words: "no plugin found|could not find: libnccl-net|could not find libnccl-net",
			pattern: `(?i)(?:plugin found|could not find:?) *\(?([\w.-]+\.so)?`,
		},
		{
			kind: NoNetwork, words: "not found|not available|failed to initialize any net",
			pattern: `(?i)(?:network ([\w ./-]{2,40}?) not found|(?:NCCL_NET|network|NET plugin) ?[=:]? ?"?([\w/-]{2,40}?)"? (?:was )?not available|failed to initialize any NET plugin)`, take: anyGroup,
		},
		{kind: Provider, words: "selected provider is", pattern: `(?i)selected provider is ([\w;-]+)`},
		{
			kind: OFIFailure, words: "NET/OFI|fi_getinfo|libfabric|fi_info",
			also:    "failed|empty list|no eligible|couldn't|unable to|not found|no data available|error",
			pattern: `(?i)((?:NET/OFI|fi_getinfo|fi_info|libfabric)\b.{0,160}?(?:failed|empty list|no eligible|couldn't|unable to|not found|no data available|error))`, take: shapeOf,
		},
		{kind: GDROff, words: "rdma disabled", pattern: `GPU ?Direct RDMA [Dd]isabled for (?:HCA \d+ '?([\w+.-]+)|GPU)`},
		{
			kind: GDROn, words: "rdma enabled",
			pattern: `GPU ?Direct RDMA (?:\([\w-]+\) )?[Ee]nabled for (?:HCA \d+ '?([\w+.-]+)|GPU)`,
		},
		{kind: GDROff, words: "gdr 0", pattern: `use ring PXN \d GDR 0`},
		{kind: GDROn, words: "gdr 1", pattern: `use ring PXN \d GDR 1`},
		{kind: OverNet, words: "via NET/|-> NET/", take: overNet},
		{kind: OverShm, words: "via SHM/|via direct shared memory", take: none},
		{kind: OverP2P, words: "via P2P/", take: overP2P},
		{
			kind: Completion, words: "vendor err|got completion|vendor_err",
			pattern: `(?i)\b(?:error|status)[ =]+(?:\w+\()?(\d+)\b(?:.{0,120}?vendor[ _]err(?:or)?[ =:]*((?:0x)?[0-9a-f]+))?`,
			take:    completion,
		},
		{kind: Verdict, words: "ibv_wc_", pattern: `IBV_WC_(\w+)`, take: upper},
		{
			kind: Verdict, words: "local length error|remote invalid request|remote access error|local access violation|local " +
				"protection error|local protection on |retry counter exceeded|retry count exceeded|rnr retry|remote operation " +
				"error",
			take: verdict,
		},
		{
			kind: AsyncEvent, words: "async event|async fatal event|async error event",
			pattern: `(?i)got (?:non-fatal )?async (?:fatal |error )*event ?:? ?(.{3,60})`, take: lowered,
		},
		{kind: VerbsFailure, words: "ibv_|mlx5dv_|reg_mr|create_cq|create_qp|modify_qp|cannot allocate memory", take: verbs},
		{kind: DeviceFailure, words: "unable to open device", pattern: `(?i)unable to open device (\w+)`},
		{kind: DeviceFailure, words: "ibv_open_device failed"},
		{
			kind: ConnectRetry, words: "retrying",
			pattern: `(?i)connect.{0,120}?(refused|timed out|no route to host|unreachable|reset|abort).{0,40}retrying`,
			take:    lowered,
		},
		{
			kind: ConnectRetry, words: "client socket has failed",
			pattern: `(?i)client socket has failed to connect.{0,160}?(refused)`, take: lowered,
		},
		{kind: ConnectError, words: "connection refused|timed out|connection abort|connect aborted|failed to " +
			"connect|exceeded retries|exceeded error retry|unreachable|no route to host", take: connectError},
		{
			kind: PeerGone, words: "closed by remote peer|connection reset by peer|broken pipe|remote process exited",
			take: none,
		},
		{kind: Stranger, words: "wrong magic|magic mismatch"},
		{kind: NoInterface, words: "no socket interface found|no usable listening interface|no interface found|couldn't " +
			"find any interface|unable to find interface", take: noInterface},
		{
			kind: DuplicateGPU, words: "duplicate gpu detected|ranks detected using the same gpu|ranks are using the same gpu",
			pattern: `(?i)(rank \d+ and rank \d+)?`,
		},
		{
			kind: VersionMix, words: "mismatched nccl version|version mismatch",
			pattern: `(?i)(mismatched nccl version detected.{0,80}|nccl.{0,30}version mismatch.{0,60})`,
		},
		{
			kind: RootMismatch, words: "bootstrap root|already checked in",
			pattern: `(?i)(mismatch in rank (?:count|info)|has already checked in|mismatch in info)`,
		},
		{kind: RootMismatch, words: "message truncated", pattern: `(?i)bootstrap\.cc:\d+ NCCL WARN (message truncated)`},
		{
			kind: SizeMismatch, words: "message truncated|collective mismatch|incorrect receive info",
			pattern: `(?i)(?:^|(bootstrap\.cc).{0,40}|.)(message truncated|collective mismatch|incorrect receive info)`,
			take:    sizes,
		},
		{kind: NetMismatch, words: "incompatible devices|only one link type", take: none},
		{kind: NetDevCounts, words: "mixed local net device", take: none},
		{kind: ShmFailure, words: "posix_fallocate|shared memory segment|nccl-shm-|failed to extend|/dev/shm|insufficient " +
			"shared memory|out of shared memory", take: shmFailure},
		{kind: P2PFault, words: "p2p is disabled between nvlink|could not enable p2p|peer access is not supported|peer " +
			"query failed|peer access is already|peer access denied"},
		{kind: NVLSFailure, words: "nvls.cc|nvlink sharp|nvls|multicast", also: "fail|warn|error|invalid", take: nvls},
		{kind: NVLSAbsent, words: "multicast support is not available"},
		{
			kind: IMEX, words: "imex|mnnvl", also: "not|fail|unavailable|missing|error",
			pattern: `(?i)(MNNVL.{0,80}not working|IMEX.{0,60}(?:not|fail|unavailable|missing|error))`, take: shapeOf,
		},
		{
			kind: CUDAFailure, words: "cuda failure|cuda error|cudaerror|test cuda failure",
			pattern: `(?i)cuda (?:failure|error)(?: [\w/.:]+)?:? *(?:\d+ *)?['"]?([a-z][a-z ,._-]{6,80})`, take: lowered,
		},
		{kind: NoTransport, words: "no transport found"},
		{kind: NoPath, words: "could not find a path|falling back to simple order"},
		{
			kind: Graph, words: "pattern ",
			pattern: `Pattern \d+, crossNic \d+, nChannels (\d+), (?:bw|speed) ([\d.]+)/[\d.]+, type (\w+/\w+)`,
		},
		{
			kind: Graph, words: "<graph id=",
			pattern: `<graph id="[01]"[^>]* nchannels="(\d+)" speedintra="([\d.]+)"[^>]* typeintra="(\w+)"`,
		}, // of NCCL_GRAPH_DUMP_FILE
		{kind: BadAlgorithm, words: "unrecognized element token|all entries except the first|no algorithm/protocol " +
			"available|no algorithm available"},
		{kind: OpenFiles, words: "too many open files"},
		{kind: NoRealPath, words: "could not find real path"},
		{
			kind: TopologyLimit, words: "xml",
			pattern: `(?i)(too many XML (?:nodes|elements)|xml.{0,60}(?:limit|too many nodes|max(?:imum)? (?:number )?of nodes|node limit))`, take: none,
		},
		{kind: LoneRing, words: "/01 : |/02 : |/04 : |/08 : |/12 : |/16 : |/20 : |/24 : |/32 : |/64 : ", take: loneRing},
		{kind: CollChannels, words: " coll channels", pattern: `(\d+) coll channels`},
		{kind: IommuWarning, words: "missing \"iommu=pt\"|iommu=pt", pattern: `(?i)(missing "?iommu=pt)`, take: none},
		{kind: CPUEmpty, words: "is empty, ignoring", take: none},
		{kind: Returned, words: ".cc:|.cu:|.cpp:", pattern: `NCCL INFO [\w/]+\.(?:cc|h|cu|cpp):\d+ -> (\d+)`},
		{kind: TopoFile, words: "loading topology file", pattern: `Loading topology file (\S+)`},
		{
			kind: NCCLVersion, words: "nccl version|rccl version|nccl==|nccl_version|nccl-library",
			pattern: `(?i)n?[nr]ccl(?:[ _]version[ :=]+|==)v?(\d+\.\d+(?:\.\d+)?)`,
		},
		{kind: TableWrong, words: "out of bounds values", pattern: `Out of bounds values : (\d+) FAILED`},
		{kind: Average, words: "avg bus bandwidth", pattern: `(?i)avg bus bandwidth[ :]+(\d+(?:\.\d+)?)`},
	}
}

// noInterface leaves out a search for an interface beside another host's: there are
// some, and none of them lies in its network.
func noInterface(g []string) ([]string, bool) {
	return nil, !strings.Contains(strings.ToLower(g[0]), "in the same subnet")
}

// sizes leaves out messages of the set-up, which have no size of a collective.
func sizes(g []string) ([]string, bool) { return []string{strings.ToLower(g[1])}, g[0] == "" }

// none makes observations of a kind alike.
func none([]string) ([]string, bool) { return nil, true }

// anyGroup keeps the first group that is not empty.
func anyGroup(g []string) ([]string, bool) {
	for _, s := range g {
		if s != "" {
			return []string{strings.ToLower(s)}, true
		}
	}
	return nil, true
}

func lowered(g []string) ([]string, bool) {
	out := make([]string, len(g))
	for i, s := range g {
		out[i] = strings.TrimRight(strings.ToLower(strings.TrimSpace(s)), " .'\"")
	}
	return out, true
}

func upper(g []string) ([]string, bool) { return []string{strings.ToUpper(g[0])}, true }

// shapeOf makes messages alike that differ in their numbers.
func shapeOf(g []string) ([]string, bool) { return []string{lines.Shape(g[0])}, true }

// loneRing reports "Channel 00/32 :    0", a ring of one rank.
func loneRing(g []string) ([]string, bool) {
	i := strings.LastIndex(g[0], " : ")
	return nil, strings.Contains(g[0][:i], "Channel ") && strings.TrimSpace(g[0][i+3:]) == "0"
}

// address keeps the interface and what kind of address it has.
func address(g []string) ([]string, bool) { return []string{g[0], addressClass(g[1])}, true }

// addressClass tells addresses apart as far as it matters: link-local ones reach
// no other network, loopback no other host.
func addressClass(a string) string {
	low := strings.ToLower(a)
	switch {
	case strings.HasPrefix(low, "fe80:"):
		return "link-local"
	case strings.HasPrefix(low, "169.254."):
		return "link-local"
	case strings.HasPrefix(low, "127.") || low == "::1":
		return "loopback"
	case strings.Count(low, ":") >= 2:
		return "ipv6"
	case strings.HasPrefix(low, "172.17."):
		return "docker"
	case strings.Count(low, ".") == 3:
		return "ipv4"
	}
	return ""
}

// interfaces reads "[0]eth0:10.0.0.1<0> [1]veth1:fe80::1<0>".
func interfaces(g []string) ([]string, bool) {
	var names, classes []string
	for _, word := range strings.Fields(g[0]) {
		_, word, ok := strings.Cut(word, "]")
		name, addr, colon := strings.Cut(word, ":")
		if !ok || !colon || len(names) >= 32 {
			continue
		}
		addr, _, _ = strings.Cut(addr, "<")
		names, classes = append(names, name), append(classes, addressClass(addr))
	}
	return []string{strings.Join(names, ","), strings.Join(classes, ",")}, len(names) > 0
}

// adapters reads "[0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>".
func adapters(g []string) ([]string, bool) {
	list, _, _ := strings.Cut(g[0], ";")
	var names []string
	var ib, roce bool
	for _, word := range strings.FieldsFunc(strings.ReplaceAll(list, "]", "] "),
		func(r rune) bool { return strings.ContainsRune(" ,{}=", r) }) {
		name, tail, ok := strings.Cut(word, ":")
		if !ok || strings.HasPrefix(word, "[") || len(names) >= 64 {
			continue
		}
		names = append(names, name)
		ib = ib || strings.Contains(tail, "/IB")
		roce = roce || strings.Contains(tail, "/RoCE")
	}
	layer := ""
	switch {
	case ib && roce:
		layer = "IB+RoCE"
	case ib:
		layer = "IB"
	case roce:
		layer = "RoCE"
	}
	return []string{strings.Join(names, ","), layer}, len(names) > 0
}

// overNet reads "… via NET/IB/0/GDRDMA".
func overNet(g []string) ([]string, bool) {
	_, via, ok := strings.Cut(g[0], " NET/")
	if !ok {
		return nil, false
	}
	return wayNet(via)
}

// wayNet reads "IB/0/GDRDMA".
func wayNet(via string) ([]string, bool) {
	name, rest, ok := strings.Cut(via, "/")
	if !ok || len(name) > 40 {
		return nil, false
	}
	gdr := ""
	if strings.Contains(rest, "/GDRDMA") {
		gdr = "gdr"
	}
	return []string{name, gdr}, true
}

// overP2P reads "… via P2P/CUMEM/read".
func overP2P(g []string) ([]string, bool) {
	_, via, _ := strings.Cut(g[0], "via P2P/")
	return wayP2P(via)
}

// wayP2P reads "CUMEM/read".
func wayP2P(via string) ([]string, bool) {
	if i := strings.IndexAny(via, "/ "); i >= 0 {
		via = via[:i]
	}
	return []string{via}, len(via) < 40
}
