package input

import "busbar.dev/internal/lazyre"

// Named is the error for a text that busbar knows but that holds no topology.
type Named struct{ Name, What string }

func (n Named) Error() string        { return n.Name + ": " + ErrUnknown.Error() + ": this is " + n.What }
func (n Named) Is(target error) bool { return target == ErrUnknown }

// otherwise names such a text, by its beginning, and says what does.
func otherwise(data []byte) string {
	data = data[:min(len(data), 1<<16)]
	for _, o := range otherTexts {
		if o.re.Match(data) {
			return o.what
		}
	}
	for _, k := range Find(data, ^Part) {
		if reads := map[bool]string{true: "hang", false: "doctor"}[k.Class&(Dump|State) != 0]; k.Class&Part == 0 {
			return "text of the kind " + k.Name + ", which busbar " + reads + " reads; it does not say how a cluster is built"
		}
	}
	return ""
}

var otherTexts = []struct {
	re   *lazyre.Regexp
	what string
}{
	{
		lazyre.New(`(?m)^Machine \([\d.]+ ?[KMGT]i?B(?: total)?\)|^ +Package L#\d+`),
		"lstopo's text, which leaves out rates and bridges; give lstopo --of xml",
	},
	{
		lazyre.New(`(?m)^\s*"?(?:nvidia\.com|(?:topology|node)\.kubernetes\.io)/[\w.-]+(?:" *:|=)`),
		"a list of labels of Kubernetes nodes without the nodes' names; kubectl get nodes -o json tells both",
	},
	// As dmesg, dmesg --decode, /dev/kmsg and pstore write.
	{
		lazyre.New(`(?m)^(?:<\d>)?\[ *\d+\.\d{6}\] \S|^\d+,\d+,\d+,\S*;|^kern +:\w+ *: `),
		"a log of the kernel, in which busbar doctor knows Xids and faults of NICs, PCIe and memory; the cluster is not in " +
			"it",
	},
	{
		lazyre.New(`(?m)^\[\w{3} \d+ \d{4} [\d:]+\] \[\w+\] \[tid \d+\] `),
		"a log of NVIDIA's fabric manager, in which busbar doctor knows errors; the cluster is not in it",
	},
	// The first element of an MSCCL algorithm file.
	{lazyre.New(`<algo [^>]*\bngpus=`), "an MSCCL algorithm, which says how a collective runs, not on what"},
	// A line of the CSV file of NCCL's example tuner plugin: collective, least and most bytes, algorithm, protocol,
	// channels, nodes, ranks and, in newer ones, pipelined operations and registered buffers; -1 is any (NCCL,
	// plugins/tuner/example/README.md, release 2.28). Else the header of what its companion script measures.
	{
		lazyre.New(`(?m)^\s*(broadcast|reduce|allgather|reducescatter|allreduce)(\s*,\s*\d+){2}(\s*,\s*\w+){2}` +
			`(\s*,\s*(-1|\d+)){3,5}\s*$|^\s*#?\s*collective\s*,.*\bsize_bytes\b.*\balgorithm\b.*\bprotocol\b`),
		"a file for NCCL's tuner plugin, which says what to choose, not on what hardware",
	},
	{
		lazyre.New(`(?m)\|\s*Topology Information\s*\|`),
		"dcgmi topo, which tells the worst path only; nvidia-smi topo -m tells that of every pair",
	},
	{
		lazyre.New(`(?m)^DEV\s+PORT\s+INDEX\s+GID\s`),
		"show_gids, which lists addresses of ports (NCCL_IB_GID_INDEX is one's number); ibstat or ibv_devinfo -v tell " +
			"their " +
			"rates and states",
	},
	{
		lazyre.New(`(?m)^\S+ port \d+ ==> \S+ \(`),
		"ibdev2netdev, which pairs RDMA devices with interfaces; rdma link and ibstat tell their states",
	},
	{
		lazyre.New(`(?m)^\s*Identifier\s+: 0x[[:xdigit:]]{2} \(`),
		"ethtool -m, which tells of a transceiver; ethtool INTERFACE tells the port's rate and state",
	},
}
