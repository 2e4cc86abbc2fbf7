package input

import "busbar.dev/internal/lazyre"

// otherwise names texts that busbar knows but that hold no topology.
func otherwise(data []byte) string {
	data = data[:min(len(data), 1<<20)]
	switch {
	case sinfo.Match(data):
		return "sinfo, which says which nodes are in use (busbar place takes it), not what is in them or how they are " +
			"joined; scontrol show node and scontrol show topology do"
	case mscclAlgo.Match(data):
		return "an MSCCL algorithm, which says how a collective runs, not on what"
	case tunerRule.Match(data), tunerTraining.Match(data):
		return "a file for NCCL's tuner plugin, which says what to choose, not on what hardware"
	}
	return ""
}

// sinfo is the heading of Slurm's sinfo, of its long form and with -N.
var sinfo = lazyre.New(`(?m)^(PARTITION +AVAIL|NODELIST +NODES) `)

// mscclAlgo is the first element of an MSCCL algorithm file, which busbar does not read.
var mscclAlgo = lazyre.New(`<algo [^>]*\bngpus=`)

// tunerRule is a line of the CSV file of NCCL's example tuner plugin: collective, least and most bytes,
// algorithm, protocol, channels, nodes, ranks and, in newer ones, pipelined operations and registered buffers; -1 is
// any. Source: NCCL, plugins/tuner/example/README.md, release 2.28.
var tunerRule = lazyre.New(
	`(?m)^\s*(broadcast|reduce|allgather|reducescatter|allreduce)(\s*,\s*\d+){2}(\s*,\s*\w+){2}` +
		`(\s*,\s*(-1|\d+)){3,5}\s*$`)

// tunerTraining is the header of the measurements that the plugin's companion script takes.
var tunerTraining = lazyre.New(`(?m)^\s*#?\s*collective\s*,.*\bsize_bytes\b.*\balgorithm\b.*\bprotocol\b`)
