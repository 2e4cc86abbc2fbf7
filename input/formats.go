package input

import (
	"bytes"
	"io"

	"busbar.dev/cluster"
	"busbar.dev/input/clusterfile"
	"busbar.dev/input/ethtool"
	"busbar.dev/input/flightrec"
	"busbar.dev/input/hwloc"
	"busbar.dev/input/ibnet"
	"busbar.dev/input/ibstat"
	"busbar.dev/input/inspector"
	"busbar.dev/input/joblog"
	"busbar.dev/input/k8s"
	"busbar.dev/input/kineto"
	"busbar.dev/input/lspci"
	"busbar.dev/input/nccllog"
	"busbar.dev/input/nccltests"
	"busbar.dev/input/ncclxml"
	"busbar.dev/input/netq"
	"busbar.dev/input/nodehealth"
	"busbar.dev/input/nvsmi"
	"busbar.dev/input/p2pbw"
	"busbar.dev/input/perftest"
	"busbar.dev/input/profile"
	"busbar.dev/input/ras"
	"busbar.dev/input/rocmsmi"
	"busbar.dev/input/slurm"
	"busbar.dev/input/stacks"
	"busbar.dev/result"
)

// Class is what a text is for. Who asks for texts names the classes that it takes, and is handed nothing else.
type Class uint16

// The classes, and what Kind.Read gives of their texts.
const (
	Part  Class = 1 << iota // of a cluster: *cluster.Fragment, or several
	Table                   // that a benchmark printed: result.Sweeps, *nccltests.Output, []perftest.Table
	Log                     // of a job: *joblog.Log
	Trace                   // of a profiler: *trace.Trace
	// that a live job wrote about itself: *ras.Report, *profile.Ring, []inspector.Record, Recorder
	Dump
	State  // of processes at a moment: []stacks.Stack
	Rates  // of collectives: *profile.Ring, []inspector.Record
	Health // of a node, judged by others: []finding.Finding
	Entire // no class: the text is of this kind from end to end, and no other is looked for in it
)

// Kind is one kind of text.
type Kind struct {
	Name string
	Class
	Match func(data []byte) bool // reports a text of the kind, or one that begins like it
	read  reader
}

type reader func(b *cluster.Budget, name string, data []byte) (any, error)

// Recorder is a dump of PyTorch's flight recorder: what it says is known when those of all ranks are read.
type Recorder []byte

// Ring is the kind of rings of busbar's profiler plugin, which change while they are read.
const Ring = "ring of busbar's profiler"

// kinds are tried in this order: what is one thing from end to end first, then what may stand anywhere in a log.
var kinds = []Kind{
	part("NCCL topology XML", Entire, ncclxml.Match, ncclxml.Read),
	part("NCCL graph XML", Entire, ncclxml.MatchGraph, ncclxml.ReadGraph),
	part("lstopo XML", Entire, hwloc.Match, hwloc.Read),
	part("nvidia-smi -q -x", Entire, nvsmi.MatchXML, nvsmi.ReadXML),
	{"cluster file", Part | Entire, clusterfile.Match, within(clusterfile.ReadWithin)},
	part("Kubernetes nodes", Entire, k8s.Match, k8s.Read),
	part("kubectl describe node", 0, k8s.MatchDescribe, k8s.ReadDescribe),
	part("NetQ topology", Entire, netq.Match, netq.Read),
	{"Slurm topology.yaml", Part | Entire, slurm.MatchYAML, within(slurm.ReadYAMLWithin)},
	tool("ibnetdiscover", &ibnet.Discover),
	tool("ibnetdiscover -p", &ibnet.Ports),
	tool("iblinkinfo", &ibnet.LinkInfo),
	{"Slurm topology.conf, scontrol show topology", Part | Entire, slurm.MatchConf, within(slurm.ReadConfWithin)},
	{"scontrol show node", Part | Entire, slurm.MatchNodes, within(slurm.ReadNodesWithin)},
	part("nvidia-smi -q", 0, nvsmi.MatchPlain, nvsmi.ReadPlain),
	{"nvidia-smi topo -m or -p2p", Part, nvsmi.MatchMatrix, stream(nvsmi.ReadMatrices)},
	part("nvidia-smi -L", 0, nvsmi.MatchList, nvsmi.ReadList),
	part("nvidia-smi --query-gpu", 0, nvsmi.MatchQuery, nvsmi.ReadQuery),
	part("nvidia-smi", 0, nvsmi.MatchSMI, nvsmi.ReadSMI),
	part("rocm-smi --showtopo", 0, rocmsmi.Match, rocmsmi.Read),
	tool("p2pBandwidthLatencyTest", p2pbw.P2P),
	tool("nvbandwidth", p2pbw.NVBandwidth),
	tool("ibstat", ibstat.Stat),
	tool("ibstatus", ibstat.Status),
	tool("ibv_devinfo", ibstat.Devinfo),
	tool("rdma link", ibstat.RDMA),
	part("ethtool", 0, ethtool.Match, ethtool.Read),
	part("lspci", 0, lspci.Match, lspci.Read),
	tool("ibqueryerrors", &ibnet.Errors),
	tool("perfquery", &ibnet.Perf),
	part("nccl-tests", 0, nccltests.Match, nccltests.Read),
	part("NCCL log", 0, nccllog.Match, nccllog.Read),

	{"NCCL RAS", Dump, ras.Match, whole(ras.Read)},
	{"PyTorch flight recorder", Dump | Entire, flightrec.Match, bare(func(data []byte) Recorder { return data })},
	{Ring, Dump | Rates | Entire, profile.Match, whole(ring)},
	{"NCCL Inspector", Dump | Rates | Entire, inspector.Match, bare(inspector.Read)},
	{"stacks", State, stacks.Match, named(stacks.Read)},
	{"job's log", Log, joblog.Match, named(joblog.Read)},
	{"results of busbar bench", Table | Entire, result.Match, stream(result.Read)},
	{"table of nccl-tests", Table, nccltests.Match, stream(nccltests.ReadOutput)},
	{"perftest", Table, perftest.Match, bare(perftest.Read)},
	{"trace of PyTorch", Trace | Entire, kineto.Match, stream(kineto.Read)},
	{"states of gpud", Health | Entire, nodehealth.MatchGpud, stream(nodehealth.ReadGpud)},
	{"dcgmi diag", Health, nodehealth.MatchDCGM, stream(nodehealth.ReadDCGM)},
}

// Marks are words of which one is in the line that begins a block of a Part, a Table, a Health or a State within a log.
const Marks = "<system |<graphs |<topology|<nvidia_smi_log|apiversion|name:      |compounded_nodes|vendid=|\"s-|\"h-|" +
	" - ca | - sw |)==>|switchname=|blockname=|nodename=|nodelist |\"lldp\"|nvsmi log|gpu 00000000:|gpu0\t|gpu0  |" +
	"nvidia-smi|persistence-m|(uuid: |index, |uuid, |, uuid|memory.total|between two gpus|link type table:|" +
	"peer-to-peer|p2p=|nvbandwidth|(row)|ca '|rnic|infiniband device '|hca_id:|physical_state|settings for |features " +
	"for |parameters for |nic statistics:|> mtu |driver: | controller|processing accelerators|errors for |" +
	"ports checked|counters: |nthread |busbw|average bandwidth of |0gb -|ransfer speed (gb/s)| bw test| latency test|" +
	"#bytes|diagnostic|most recent call first|python v|thread 0x"

// Find lists the kinds of a text that are of one of the classes, in the order of trying. The beginning of a text is
// enough where a kind is one thing from end to end.
func Find(data []byte, c Class) (found []Kind) {
	for _, k := range kinds {
		if k.Class&c != 0 && k.Match(data) {
			if found = append(found, k); k.Class&Entire != 0 {
				break
			}
		}
	}
	return found
}

// Read gives what the class of the kind says.
func (k *Kind) Read(b *cluster.Budget, name string, data []byte) (any, error) {
	return k.read(b, name, data)
}

// As reads a text as the first kind of the classes that it is of; nil where it is of none.
func (c Class) As(name string, data []byte) (any, error) {
	for _, k := range Find(data, c) {
		return k.read(nil, name, data)
	}
	return nil, nil
}

// The forms that readers have.

func part(name string, c Class, match func(data []byte) bool, read func(name string, r io.Reader) (*cluster.Fragment,
	error),
) Kind {
	return Kind{name, Part | c, match, stream(read)}
}

// tool is a part that may stand anywhere, of a reader that is a value.
func tool(name string, of interface {
	Match(data []byte) bool
	Read(name string, r io.Reader) (*cluster.Fragment, error)
},
) Kind {
	return part(name, 0, of.Match, of.Read)
}

func within(read func(b *cluster.Budget, name string, r io.Reader) (*cluster.Fragment, error)) reader {
	return func(b *cluster.Budget, name string, data []byte) (any, error) {
		return read(b, name, stopping{bytes.NewReader(data), b})
	}
}

func stream[T any](read func(name string, r io.Reader) (T, error)) reader {
	return func(b *cluster.Budget, name string, data []byte) (any, error) {
		return read(name, stopping{bytes.NewReader(data), b})
	}
}

func whole[T any](read func(name string, data []byte) (T, error)) reader {
	return func(_ *cluster.Budget, name string, data []byte) (any, error) { return read(name, data) }
}

func named[T any](read func(name string, data []byte) T) reader {
	return func(_ *cluster.Budget, name string, data []byte) (any, error) { return read(name, data), nil }
}

func bare[T any](read func(data []byte) T) reader {
	return func(_ *cluster.Budget, _ string, data []byte) (any, error) { return read(data), nil }
}

func ring(name string, data []byte) (*profile.Ring, error) { return profile.Read(name, data, 0) }
