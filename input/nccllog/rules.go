package nccllog

import "strings"

// rule is one line shape. A message matches when it begins with prefix and
// holds within; do returns false when it turns out to be something else or cut.
type rule struct {
	prefix, within string
	seen           string // releases
	do             func(c *collector, r *Record) bool
}

// known marks shapes that need no reading.
func known(*collector, *Record) bool { return true }

// noted keeps the message as it is.
func noted(c *collector, r *Record) bool {
	c.note(r)
	return true
}

// rules are tried in order; the first that matches and reads the message wins.
func rules() []rule {
	return []rule{
		// Traffic set-up and graphs: the bulk of a log.
		{"Channel ", "", "all", (*collector).channel},
		{"", ": opCount ", "all", (*collector).call}, // no other shape holds this
		{"CollNet ", " via ", "2.9+", (*collector).collnet},
		{"Coll ", " via ", "2.8", (*collector).collnet},
		{"Trees [", "->", "all", (*collector).trees},
		{"Ring ", " via ", "2.4-2.5", (*collector).connection},
		{"Ring ", " -> ", "2.8+", (*collector).ringLink},
		{"Tree ", " -> ", "2.8+", (*collector).graphTree},
		{"Pattern ", "nChannels", "2.5+", (*collector).pattern},
		{"=== System", "", "2.5+", (*collector).system},
		{"=====", "", "2.5+", (*collector).systemEnd},
		{"+ ", " - ", "2.5+", (*collector).systemLine},
		{"", "/", "2.5+", (*collector).graphLine},
		{"", " coll channels", "2.5+", (*collector).channels},
		{"", " Bytes -> ", "2.4+", (*collector).choice},

		// Tuning tables.
		{"Algorithm ", "|", "2.17+", (*collector).tuningAlgos},
		{"Protocol ", "|", "2.17+", (*collector).tuningProtos},
		{"Latency/AlgBw ", "|", "2.5-2.16", (*collector).tuningOld},
		{"", "|", "2.5+", (*collector).tuningRow},
		{"Enabled NCCL Func/Proto/Algo Matrix", "", "2.24+", (*collector).enabled},

		// Communicators.
		{"", "comm 0x", "all", (*collector).comm},
		{"Init timings", " rank ", "2.22+", (*collector).initTimings},
		{"Setting affinity for GPU ", "", "all", (*collector).affinity},
		{"ncclTopoGetCpuAffinity:", "", "2.28+", (*collector).affinity},
		{"MNNVL busId ", "fabric UUID", "2.20+", (*collector).mnnvl},

		// Settings and networks.
		{"", " set by environment to ", "all", (*collector).setting},
		{"", " set to ", "all", (*collector).setting},
		{"", " environment variable to ", "aws-ofi-nccl", (*collector).setting},
		{"Using network ", "", "all", (*collector).network},
		{"Bootstrap", "Using ", "all", (*collector).bootstrap},
		{"NET/", "", "all", (*collector).net},
		{"ncclTopoPopulateNics", "pciPath=", "2.23+", (*collector).populateNICs},
		{"GPU Direct RDMA ", "", "2.8-2.28", noted},

		// Errors on their way up, and lines that tell something as they are.
		{"", " -> ", "all", (*collector).result},
		{"Could not ", "", "all", noted},
		{"Failed to ", "", "all", noted},
		{"HINT", "", "2.30", noted},
		{"Topology detection", "", "all", noted},
		{"Loading ", " topology", "all", noted},
		{"Loading topology", "", "all", noted},
		{"Using ", " threads", "2.4", noted},
		{"CUDA Dev ", " distance", "2.4", noted},
		{"Duplicating rings", "", "2.4", noted},
		{"NVLS multicast support", "", "2.17+", noted},
		{"Plugin Path", "", "sharp plugin", noted},
		{"P2P plugin", "", "2.14+", noted},
		{"P2P is disabled", "", "2.22+", noted},
		{"P2P Chunksize", "", "2.16+", noted},
		{"PXN Disabled", "", "2.12+", noted},
		{"DMA-BUF is available", "", "2.14+", noted},
		{"Dmabuf feature", "", "RCCL", noted},
		{"TUNER/", "", "2.19+", noted},
		{"PROFILER/", "", "2.23+", noted},
		{"ENV/Plugin", "", "2.28+", noted},
		{"External network plugin", "", "2.28+", noted},
		{"Successfully loaded external", "", "2.28+", noted},
		{"Initialized NET plugin", "", "2.27+", noted},
		{"Assigned ", "", "2.27+", noted},
		{"Detected mixed local Net", "", "2.30", noted},
		{"Symmetric memory is not", "", "2.28+", noted},
		{"socket", "", "all", noted},
		{"Call to ", "", "all", noted},
		{"ROCr version", "", "RCCL", noted},
		{"Kernel version", "", "RCCL", noted},
		{"cudaDriverVersion", "", "2.13+", noted},
		{"Check P2P Type", "", "2.20+", noted},
		{"CC O", "", "2.22+", noted},
		{"RCCL ", "", "RCCL", noted},
		{"NCCL ", "", "all", noted},
		{"Launch mode", "", "all", known},
		{"TOPO/NET", "", "2.22+", noted},
		{"", "", "", knownPrefix},
	}
}

// boring are the beginnings of messages that tell nothing we use: memory, proxy
// and thread chatter, and how far the set-up has come.
var boring = []string{
	"Connected all ", "Connected to proxy", "Connected NVLS", "Connected binomial", "Connected Collnet", "Connected CollNet",
	"threadThresholds", "New proxy ", "proxyProgressAsync", "ncclPollProxyResponse", "resp.opId", "Received and initiated",
	"Allocated shareable", "MMAP allocated", "Mem Realloc", "MemManager", "Created ", "register comm",
	"RAS ", "UDS:", "[Proxy ", "[node_id", "initialized internal", "Retrieving state", "Initialized state",
	"NVLS ", "Enabled GDRCopy", "Using non-device net plugin", "Bootstrap timings", "Comm config",
	"dlvsym failed", "ncclP2pSchedule", "Local Net device", "MNNVL ",
}

// knownPrefix recognises what needs no reading.
func knownPrefix(_ *collector, r *Record) bool {
	for _, s := range boring {
		if strings.HasPrefix(r.Text, s) {
			return true
		}
	}
	word, rest, _ := strings.Cut(r.Text, " ")
	return isSource(word) && (strings.Contains(rest, " pointer ") || strings.Contains(rest, "malloc"))
}

// apply finds the rule for a message.
func (c *collector) apply(r *Record) bool {
	if r.Text == "" {
		return false
	}
	for i := range c.rules {
		u := &c.rules[i]
		if strings.HasPrefix(r.Text, u.prefix) && strings.Contains(r.Text, u.within) && u.do(c, r) {
			return true
		}
	}
	return false
}
