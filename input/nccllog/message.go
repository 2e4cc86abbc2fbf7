package nccllog

import (
	"strings"
	"sync"
)

// What a record says is a *Ring, *RingLink, *Connection, *Call, *Choice, *Graph,
// *System, *Channels, Trees or *Setting, or of a type that only this package
// needs. Texts in it are parts of the line: who keeps one copies it.
type (
	// Trees are the places of a rank in the trees of its channels.
	Trees []TreeNode
	// Setting is "NCCL_IB_HCA set by environment to mlx5".
	Setting struct{ Name, Value string }

	note       struct{} // tells something as it stands
	known      struct{} // tells nothing we use
	setupLine  struct{} // nothing but that its rank is setting up
	network    string   // that is used
	bootstrap  string   // interface and address of the out-of-band network
	deviceList struct { // of a network; the port of a socket is -1
		net  string
		nics []NIC
	}
	returned struct{ place, code string } // "init.cc:82 -> 3": a function that passes an error on
)

// shape is what a message looks like. It begins with prefix and holds within; parse
// returns nil when it turns out to be something else or cut.
type shape struct {
	prefix, within string
	seen           string // releases
	parse          func(r *Record) any
}

func parseNote(*Record) any  { return note{} }
func parseKnown(*Record) any { return known{} }
func parseSetup(*Record) any { return setupLine{} }

// shapes are tried in order; the first that matches and reads the message wins.
var shapes = []shape{
	// Traffic set-up and graphs: the bulk of a log.
	{"Channel ", "", "all", parseChannel},
	{"", ": opCount ", "all", parseCall}, // no other shape holds this
	{"CollNet ", " via ", "2.9+", parseCollNet},
	{"Coll ", " via ", "2.8", parseCollNet},
	{"Trees [", "->", "all", parseTrees},
	{"Ring ", " via ", "2.4-2.5", parseConnection},
	{"Ring ", " -> ", "2.8+", parseRingLink},
	{"Tree ", " -> ", "2.8+", parseGraphTree},
	{"Pattern ", "nChannels", "2.5+", parsePattern},
	{"=== System", "", "2.5+", parseSystem},
	{"=====", "", "2.5+", parseSystemEnd},
	{"+ ", " - ", "2.5+", parseSystemLine},
	{"", "/", "2.5+", parseGraphLine},
	{"", " coll channels", "2.5+", parseChannels},
	{"", " Bytes -> ", "2.4+", parseChoice},

	// Tuning tables.
	{"Algorithm ", "|", "2.17+", parseTuningAlgos},
	{"Protocol ", "|", "2.17+", parseTuningProtos},
	{"Latency/AlgBw ", "|", "2.5-2.16", parseTuningOld},
	{"", "|", "2.5+", parseTuningRow},
	{"Enabled NCCL Func/Proto/Algo Matrix", "", "2.24+", parseSetup},

	// Communicators.
	{"", "comm 0x", "all", parseComm},
	{"Init timings", " rank ", "2.22+", parseInitTimes},
	{"Setting affinity for GPU ", "", "all", parseAffinity},
	{"ncclTopoGetCpuAffinity:", "", "2.28+", parseAffinity},
	{"MNNVL busId ", "fabric UUID", "2.20+", parseFabric},

	// Settings and networks.
	{"", " set by environment to ", "all", parseSetting},
	{"", " set to ", "all", parseSetting},
	{"", " environment variable to ", "aws-ofi-nccl", parseSetting},
	{"Using network ", "", "all", parseNetwork},
	{"Bootstrap", "Using ", "all", parseBootstrap},
	{"NET/", "", "all", parseNet},
	{"ncclTopoPopulateNics", "pciPath=", "2.23+", parseNICPath},
	{"GPU Direct RDMA ", "", "2.8-2.28", parseNote},

	// Errors on their way up, and lines that tell something as they are.
	{"", " -> ", "all", parseReturn},
	{"Could not ", "", "all", parseNote},
	{"Failed to ", "", "all", parseNote},
	{"HINT", "", "2.30", parseNote},
	{"Topology detection", "", "all", parseNote},
	{"Loading ", " topology", "all", parseNote},
	{"Loading topology", "", "all", parseNote},
	{"Using ", " threads", "2.4", parseNote},
	{"CUDA Dev ", " distance", "2.4", parseNote},
	{"Duplicating rings", "", "2.4", parseNote},
	{"NVLS multicast support", "", "2.17+", parseNote},
	{"Plugin Path", "", "sharp plugin", parseNote},
	{"P2P plugin", "", "2.14+", parseNote},
	{"P2P is disabled", "", "2.22+", parseNote},
	{"P2P Chunksize", "", "2.16+", parseNote},
	{"PXN Disabled", "", "2.12+", parseNote},
	{"DMA-BUF is available", "", "2.14+", parseNote},
	{"Dmabuf feature", "", "RCCL", parseNote},
	{"TUNER/", "", "2.19+", parseNote},
	{"PROFILER/", "", "2.23+", parseNote},
	{"ENV/Plugin", "", "2.28+", parseNote},
	{"External network plugin", "", "2.28+", parseNote},
	{"Successfully loaded external", "", "2.28+", parseNote},
	{"Initialized NET plugin", "", "2.27+", parseNote},
	{"Assigned ", "", "2.27+", parseNote},
	{"Detected mixed local Net", "", "2.30", parseNote},
	{"Symmetric memory is not", "", "2.28+", parseNote},
	{"socket", "", "all", parseNote},
	{"Call to ", "", "all", parseNote},
	{"ROCr version", "", "RCCL", parseNote},
	{"Kernel version", "", "RCCL", parseNote},
	{"cudaDriverVersion", "", "2.13+", parseNote},
	{"Check P2P Type", "", "2.20+", parseNote},
	{"CC O", "", "2.22+", parseNote},
	{"RCCL ", "", "RCCL", parseNote},
	{"NCCL ", "", "all", parseNote},
	{"Launch mode", "", "all", parseKnown},
	{"TOPO/NET", "", "2.22+", parseNote},
	{"", "", "", parseIgnored},
}

// boring are the beginnings of messages that tell nothing we use: memory, proxy
// and thread chatter, and how far the set-up has come.
var boring = []string{
	"Connected all ", "Connected to proxy", "Connected NVLS", "Connected binomial", "Connected Collnet",
	"Connected CollNet",
	"threadThresholds", "New proxy ", "proxyProgressAsync", "ncclPollProxyResponse", "resp.opId", "Received and initiated",
	"Allocated shareable", "MMAP allocated", "Mem Realloc", "MemManager", "Created ", "register comm",
	"RAS ", "UDS:", "[Proxy ", "[node_id", "initialized internal", "Retrieving state", "Initialized state",
	"NVLS ", "Enabled GDRCopy", "Using non-device net plugin", "Bootstrap timings", "Comm config",
	"dlvsym failed", "ncclP2pSchedule", "Local Net device", "MNNVL ",
}

// parseIgnored recognises what needs no reading.
func parseIgnored(r *Record) any {
	for _, s := range boring {
		if strings.HasPrefix(r.Text, s) {
			return known{}
		}
	}
	word, rest, _ := strings.Cut(r.Text, " ")
	if isSource(word) && (strings.Contains(rest, " pointer ") || strings.Contains(rest, "malloc")) {
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
