package nccllog

import (
	"slices"
	"strings"
	"sync"

	"busbar.dev/internal/lazyre"
)

// What a record says is a *Ring, *RingLink, *Connection, Call, *CommLine, *InitTimes, Trees or
// *Setting, or of a type that only this package needs. Texts in it are parts of the line: who
// keeps one copies it.
type (
	// Trees are the places of a rank in the trees of its channels.
	Trees []TreeNode
	// Setting is "NCCL_IB_HCA set by environment to mlx5".
	Setting struct{ Name, Value string }
	// Call is a line "AllReduce: opCount 0 … count 16 datatype 7 …".
	Call struct{}

	known     struct{} // tells nothing we use
	isAMD     struct{} // the library is RCCL
	setupLine struct{} // nothing but that its rank is setting up
	planLine  struct{} // and that it plans: graphs, a tuning table
	channels  int      // for collectives
)

// shape is what a message looks like. It begins with prefix and holds within; parse
// returns nil when it turns out to be something else or cut.
type shape struct {
	prefix, within string
	parse          func(r *Record) any
}

// always is for messages that their shape tells.
func always(message any) func(*Record) any {
	return func(*Record) any { return message }
}

// matching is for messages of which nothing is used, but which may be something else or cut.
func matching(message any, pattern string) func(*Record) any {
	re := lazyre.New(pattern)
	return func(r *Record) any {
		if re.MatchString(r.Text) {
			return message
		}
		return nil
	}
}

// node is one of NCCL's nodes, such as GPU/0-60 or NET/1; releases before 2.21 print capitals. Names of networks begin
// like one ("NET/efa"), so that nothing but numbers may follow there.
const node = `(?:NET/[[:xdigit:]-]+|(?:GPU|NIC|CPU|PCI|NVS|GIN)/[[:xdigit:]]\S*)`

// collectives are the operations that NCCL's lines name.
var collectives = []string{
	"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce", "AlltoAll", "AllToAll", "SendRecv", "Send", "Recv",
	"Gather", "Scatter",
}

// collective matches one of them.
var collective = `(?:` + strings.Join(collectives, "|") + `)`

// shapes are tried in order; the first that matches and reads the message wins. Behind each are the releases.
var shapes = []shape{
	// Traffic set-up and graphs: the bulk of a log.
	{"Channel ", "", parseChannel},      // all
	{"", ": opCount ", parseCall},       // all; no other shape holds this
	{"CollNet ", " via ", parseCollNet}, // 2.9+
	{"Coll ", " via ", parseCollNet},    // 2.8
	{"Trees [", "->", parseTrees},       // all
	{"Ring ", " via ", parseConnection}, // 2.4-2.5
	{"Ring ", " -> ", parseRingLink},    // 2.8+
	// "Tree 0 : -1 -> 0 -> 2/-1/-1", 2.8+: parent, rank, children. The line "Trees" says the same.
	{"Tree ", " -> ", matching(known{}, `^Tree \d+ : -?\d* -> \d+ -> -?\d+(?:/-?\d+)*$`)},
	// "Pattern 4, crossNic 0, nChannels 1, bw 1.200000/1.200000, type LOC/PHB, sameChannels 1", 2.5+
	{"Pattern ", "nChannels", matching(planLine{}, `nChannels \d`)},
	{"=== System", "", always(setupLine{})}, // 2.5+
	{"=====", "", always(known{})},          // 2.5+
	{"+ ", " - ", always(known{})},          // 2.5+
	// Of the GRAPH subsystem, 2.5+: a channel of a pattern, a row of paths, and a device of the system's tree.
	{"", "/", matching(known{}, `^(?:\d+ : +`+node+`(?: .*)?|`+node+` :(?:`+node+` [^/\s]*/[^/\s]*/[^/\s]*\s*)*|`+node+
		` \(.*)$`)},
	{"", " coll channels", parseChannels}, // 2.5+
	// "AllReduce: 8 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..0}" (2.24+), "… -> Algo 0 proto 0 time 9.3" (2.23)
	// and the same without the collective. Symmetric kernels name a kernel instead.
	{"", " Bytes -> ", matching(known{}, `^(?:`+collective+`(?: [^:]*)?: )?\d+ Bytes -> (?:.* )?(?:Kernel \S|`+
		`Algo (?i:tree|ring|collnet|nvls|pat|[0-6]\b))`)},

	// Tuning tables.
	{"Algorithm ", "|", always(planLine{})},     // 2.17+
	{"Protocol ", "|", always(known{})},         // 2.17+
	{"Latency/AlgBw ", "|", always(planLine{})}, // 2.5-2.16
	// "Max NThreads | 512 | …" and "AllReduce | 26.8/ 0.1 | …", 2.5+
	{"", "|", matching(known{}, `^(?:Max NThreads|`+collective+`) *\|(?: *[\d.]+(?:/ *[\d.]+)? *(?:\||$))+$`)},
	{"Enabled NCCL Func/Proto/Algo Matrix", "", always(setupLine{})}, // 2.24+

	// Communicators.
	{"", "comm 0x", parseComm},                                                                      // all
	{"Init timings", " rank ", parseInitTimes},                                                      // 2.22+
	{"Setting affinity for GPU ", "", matching(setupLine{}, ` to \s*\S+$`)},                         // all
	{"ncclTopoGetCpuAffinity:", "", matching(setupLine{}, `\(GPU affinity = \s*[^\s;]*\s*(?:;|$)`)}, // 2.28+

	// Settings and networks.
	{"", " to ", parseSetting},                                // all, and aws-ofi-nccl
	{"Bootstrap", "Using ", matching(known{}, `Using +\S*:`)}, // all
	{"NET/", "", parseNet},                                    // all
	{"ncclTopoPopulateNics", "pciPath=", parseNICPath},        // 2.23+
	{"RCCL version", "", always(isAMD{})},
	{"ROCr version", "", always(isAMD{})},
	{"Using ", " threads", always(known{})},     // 2.4
	{"CUDA Dev ", " distance", always(known{})}, // 2.4
	{"Loading ", " topology", always(known{})},  // all
	{"", "", parseUnused},
}

// unused are the beginnings of messages that tell nothing we use: what was loaded or is missing, memory, proxy and
// thread chatter, and how far the set-up has come.
var unused = []string{
	"Using network ", "GPU Direct RDMA ", "Could not ", "Failed to ", "HINT", "Topology detection", "Loading topology",
	"Duplicating rings", "NVLS multicast support", "Plugin Path", "P2P plugin", "P2P is disabled", "P2P Chunksize",
	"PXN Disabled", "DMA-BUF is available", "Dmabuf feature", "TUNER/", "PROFILER/", "ENV/Plugin",
	"External network plugin", "Successfully loaded external", "Initialized NET plugin", "Assigned ",
	"Detected mixed local Net", "Symmetric memory is not", "socket", "Call to ", "Kernel version", "cudaDriverVersion",
	"Check P2P Type", "CC O", "RCCL ", "NCCL ", "Launch mode", "TOPO/NET",
	"Connected all ", "Connected to proxy", "Connected NVLS", "Connected binomial", "Connected Collnet",
	"Connected CollNet",
	"threadThresholds", "New proxy ", "proxyProgressAsync", "ncclPollProxyResponse", "resp.opId", "Received and initiated",
	"Allocated shareable", "MMAP allocated", "Mem Realloc", "MemManager", "Created ", "register comm",
	"RAS ", "UDS:", "[Proxy ", "[node_id", "initialized internal", "Retrieving state", "Initialized state",
	"NVLS ", "Enabled GDRCopy", "Using non-device net plugin", "Bootstrap timings", "Comm config",
	"dlvsym failed", "ncclP2pSchedule", "Local Net device", "MNNVL ",
}

// parseUnused recognises what needs no reading: also an error on its way up ("init.cc:82 -> 3") and memory, both behind
// a place in NCCL's source.
func parseUnused(r *Record) any {
	for _, s := range unused {
		if strings.HasPrefix(r.Text, s) {
			return known{}
		}
	}
	word, rest, _ := strings.Cut(r.Text, " ")
	code, passed := strings.CutPrefix(rest, "-> ")
	code, _, _ = strings.Cut(code, " ")
	if isSource(word) &&
		(passed && number(code) >= 0 || strings.Contains(rest, " pointer ") || strings.Contains(rest, "malloc")) {
		return known{}
	}
	return nil
}

// shapesOf are the shapes that a message may have by its first byte.
var shapesOf = sync.OnceValue(func() *[256][]*shape {
	of := new([256][]*shape)
	for i := range shapes {
		u := &shapes[i]
		for b := range of {
			if u.prefix == "" || int(u.prefix[0]) == b {
				of[b] = append(of[b], u)
			}
		}
	}
	return of
})

// parse reads what a record says; nil: not understood.
func parse(r *Record) any {
	if r.Text == "" {
		return nil
	}
	for _, u := range shapesOf()[r.Text[0]] {
		if strings.HasPrefix(r.Text, u.prefix) && strings.Contains(r.Text, u.within) {
			if m := u.parse(r); m != nil {
				return m
			}
		}
	}
	return nil
}

// parseCall reads "AllReduce: opCount 0 sendbuff … count 16 datatype 7 op 0 root 0 comm 0x… [nranks=32] stream
// 0x…". Half of a long log is calls: what stands before the count is skipped, not split.
func parseCall(r *Record) any {
	name, rest, _ := strings.Cut(r.Text, ": opCount ")
	_, count, _ := strings.Cut(rest, " count ")
	count, _, _ = strings.Cut(count, " ")
	if !slices.Contains(collectives, name) || !isDigits(count) {
		return nil
	}
	return Call{}
}

// parseChannels reads "24 coll channels, 24 collnet channels, 0 nvls channels, 32 p2p
// channels, 32 p2p channels per peer".
func parseChannels(r *Record) any {
	num, rest, _ := strings.Cut(r.Text, " coll channels")
	if n := number(num); n >= 0 && strings.Contains(rest, " p2p channels") {
		return channels(n)
	}
	return nil
}

var setting = lazyre.New(`(?:^| )([^a-z ]*_[^a-z ]*) (?:set by environment|set|environment variable) to ([^ ]*)`)

// parseSetting reads "NCCL_IB_HCA set by environment to mlx5".
func parseSetting(r *Record) any {
	m := setting.FindStringSubmatch(r.Text)
	if m == nil || len(m[1]) > 80 {
		return nil
	}
	return &Setting{m[1], m[2]}
}
