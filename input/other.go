package input

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/internal/lazyre"
)

// otherwise names texts that busbar knows but that hold no topology.
func otherwise(data []byte) string {
	data = data[:min(len(data), 1<<20)]
	switch {
	case sinfo.Match(data):
		return "sinfo, which says which nodes are in use (busbar place takes it), not what is in them or how they are " +
			"joined; scontrol show node and scontrol show topology do"
	case mscclAlgo.Match(data):
		return "an MSCCL algorithm, which says how a collective runs, not on what"
	case anyLine(data, isTunerRule), anyLine(data, isTunerTraining):
		return "a file for NCCL's tuner plugin, which says what to choose, not on what hardware"
	}
	return ""
}

// sinfo is the heading of Slurm's sinfo, of its long form and with -N.
var sinfo = lazyre.New(`(?m)^(PARTITION +AVAIL|NODELIST +NODES) `)

// mscclAlgo is the first element of an MSCCL algorithm file, which busbar does not read.
var mscclAlgo = lazyre.New(`<algo [^>]*\bngpus=`)

func anyLine(data []byte, ok func(line string) bool) bool {
	for line := range bytes.Lines(data) {
		if ok(string(bytes.TrimSpace(line))) {
			return true
		}
	}
	return false
}

// isTunerRule reports a line of the CSV file of NCCL's example tuner plugin: collective, least and most bytes,
// algorithm, protocol, channels, nodes, ranks and, in newer ones, pipelined operations and registered buffers; -1 is
// any. Source: NCCL, plugins/tuner/example/README.md, release 2.28.
func isTunerRule(line string) bool {
	if i := strings.IndexByte(line, ','); i < 1 || i >= 40 || strings.Count(line, ",") > 9 {
		return false
	}
	f := strings.Split(line, ",")
	for i := range f {
		if f[i] = strings.TrimSpace(f[i]); f[i] == "" {
			return false
		}
	}
	if len(f) < 8 || !slices.Contains([]string{"broadcast", "reduce", "allgather", "reducescatter", "allreduce"}, f[0]) {
		return false
	}
	least, err1 := strconv.ParseUint(f[1], 10, 64)
	most, err2 := strconv.ParseUint(f[2], 10, 64)
	if err1 != nil || err2 != nil || most < least {
		return false
	}
	for i, s := range f[5:] {
		if n, err := strconv.ParseInt(s, 10, 32); err != nil || n < -1 || i == 4 && n > 1 {
			return false
		}
	}
	return true
}

// isTunerTraining reports the header of the measurements that the plugin's companion script takes.
func isTunerTraining(line string) bool {
	line = strings.TrimSpace(strings.TrimPrefix(line, "#"))
	if !strings.HasPrefix(line, "collective") || strings.Count(line, ",") > 64 {
		return false
	}
	names := strings.Split(line, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	for _, want := range []string{"collective", "size_bytes", "algorithm", "protocol"} {
		if !slices.Contains(names, want) {
			return false
		}
	}
	return true
}
