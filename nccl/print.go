package nccl

import (
	"fmt"
	"strings"
)

// String prints the table as NCCL's TUNING subsystem does, without the prefix of
// a log line (NCCL 2.28 src/graph/tuning.cc).
func (t *Table) String() string {
	var b strings.Builder
	n := t.comm.Version.algos()
	const block = 3
	for first := 0; first < n; first += block {
		algos := make([]Algo, 0, block)
		for a := first; a < min(first+block, n); a++ {
			algos = append(algos, Algo(a))
		}
		b.WriteString("  Algorithm   |")
		for _, a := range algos {
			fmt.Fprintf(&b, " %14s   %14s   %14s |", "", algoNames[a].nccl, "")
		}
		b.WriteString("\n  Protocol    |")
		for range block { // three even where fewer follow
			for _, p := range protoNames {
				fmt.Fprintf(&b, " %14s |", p.nccl)
			}
		}
		b.WriteString("\n Max NThreads |")
		for _, a := range algos {
			for p := range nProtos {
				fmt.Fprintf(&b, " %14d |", t.Threads[a][p])
			}
		}
		b.WriteByte('\n')
		for op := range Op(nOps) {
			fmt.Fprintf(&b, "%13s |", opNames[op].nccl)
			for _, a := range algos {
				for p := range nProtos {
					e := t.Est[op][a][p]
					fmt.Fprintf(&b, "%8.1f/%6.1f |", e.Latency, e.BW)
				}
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}
