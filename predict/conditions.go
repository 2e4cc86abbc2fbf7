package predict

import (
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// Conditions are how calls are made and timed. The zero value is one call, by a process for every GPU and the software
// of today.
type Conditions struct {
	// Serial is how many GPUs one thread calls one after the other (nccl-tests -g 8); up to 1,
	// every GPU has a thread or a process of its own.
	Serial int
	Alone  bool // every call is timed by itself, with events around it
	// Queue says that calls of the same collective follow each other, as nccl-tests makes them: those with a root overlap.
	Queue  bool
	Graph  bool // the calls are those of a CUDA graph
	Year   int  // of the software, 0 unknown: as of today
	Plugin bool // NCCL has the plugin that the network needs
	Chosen bool // somebody named the GPUs of a node that take part
	// Without are mechanisms of the model to leave out, which is of use only to see what they
	// are worth.
	Without sim.Mechanisms
}

var pluginEFA = lazyre.New(`(?i)aws-ofi-nccl[ :=/v-]{0,3}(\d{1,2})\.(\d{1,3})`)

var serialGPUs = lazyre.New(`(?:^|[\s(,])-g[ =]?(\d{1,4})\b`)

// ParseLaunch reads how a program was launched in the words of people and of command lines: "one process, -g 8", "one
// process per GPU (mpirun)", "-t 8", "torch", "CUDA graph (-G 1)", "aws-ofi-nccl 1.7". What it does not understand
// changes nothing; false where that is all of it.
func ParseLaunch(text string) (Conditions, bool) {
	var c Conditions
	s := strings.ToLower(text)
	known := false
	if m := serialGPUs.FindStringSubmatch(text); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n > 0 && n <= 1024 {
			c.Serial, known = n, true
		}
	}
	if m := pluginEFA.FindStringSubmatch(text); m != nil {
		known = true
		if minor, _ := strconv.Atoi(m[2]); m[1] == "0" || m[1] == "1" && minor < efaWrites {
			c.Year = efaNew - 1
		}
	}
	if strings.Contains(s, "per gpu") || strings.Contains(s, "per node") || strings.Contains(s, "-t ") || s == "" {
		known = true
	}
	if strings.Contains(s, "plugin") || strings.Contains(s, "ofi") {
		c.Plugin, known = true, true
	}
	if strings.Contains(s, "nccl-tests") || strings.Contains(s, "queue") {
		c.Queue, known = true, true
	}
	if strings.Contains(s, "torch") {
		c.Alone, known = true, true
	}
	if strings.Contains(s, "graph") || strings.Contains(text, "-G 1") {
		c.Graph, known = true, true
	}
	return c, known
}

// efaNew is the first year whose plugin of EFA (aws-ofi-nccl 1.9, so efaWrites, and later) writes by RDMA with little
// work of the host (aws-k8s-tester 503 and 585: 8 B on two p5 nodes 517 us in 2023, 69 us in 2025).
const (
	efaNew    = 2024
	efaWrites = 9
)

// oldEFA reports EFA of the first generation, which sends and receives and does not write by RDMA
// (p4d, p3dn: ports of 100 Gb/s, four a node at most), or a plugin of its time.
func (p *Predictor) oldEFA() bool { return p.firstEFA || p.Year > 0 && p.Year < efaNew }

// firstEFA tells a node with EFA of the first generation.
func firstEFA(t *cluster.NodeType) bool {
	nics := t.Of(cluster.NIC)
	ports := unit.Rate(0)
	for _, d := range nics {
		if x := t.Devices[d].NIC; x != nil {
			if x.Kind != cluster.EFA {
				return false
			}
			ports += x.Rate().Value
		}
	}
	return len(nics) > 0 && ports <= 400*unit.Gbps
}
