package nccl

import (
	"fmt"
	"slices"
	"strings"
)

// String prints the table as NCCL's TUNING subsystem does, without the prefix of
// a log line (NCCL 2.28 src/graph/tuning.cc).
func (t *Table) String() string {
	var b strings.Builder
	n := t.comm.rules.Algos
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

// name is how NCCL prints a node since 2.21: GPU/0-18000.
func (n *topoNode) name() string {
	return fmt.Sprintf("%s/%x-%x", kindNames[n.kind], n.host, n.id)
}

// String prints the topology and its paths as NCCL's GRAPH subsystem does
// (NCCL 2.28 src/graph/topo.cc, ncclTopoPrint), in the form of 2.28.
func (s *system) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "=== System : maxBw %2.1f totalBw %2.1f ===\n", s.maxBw, s.totalBw)
	for _, c := range s.nodes[kindCPU] {
		s.printNode(&b, c, nil, "", 0)
	}
	b.WriteString("==========================================\n")
	for _, k := range []nodeKind{kindGPU, kindNET} {
		for _, n := range s.nodes[k] {
			fmt.Fprintf(&b, "%s :", n.name())
			for t := range nKinds {
				if !slices.ContainsFunc(n.paths[t], func(p topoPath) bool { return p.kind != PathDIS }) {
					continue // NCCL has no paths of a kind that none leads to
				}
				for i := range n.paths[t] {
					p := &n.paths[t][i]
					fmt.Fprintf(&b, "%s (%d/%.1f/%s) ", s.nodes[t][i].name(), len(p.hops), p.bw, p.kind)
				}
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func (s *system) printNode(b *strings.Builder, n, from *topoNode, lead string, depth int) {
	text := n.name()
	switch n.kind {
	case kindGPU:
		text += fmt.Sprintf(" (%d)", n.gpu.rank)
	case kindCPU:
		text += fmt.Sprintf(" (%d/%d/%d)", n.cpu.arch, n.cpu.vendor, n.cpu.model)
	case kindPCI:
		text += fmt.Sprintf(" (%x)", n.pci)
	}
	b.WriteString(lead + text + "\n")
	pad := strings.Repeat(" ", len(lead))
	for _, l := range n.links {
		head := fmt.Sprintf("%s+ %s[%2.1f] - ", pad, linkNames[l.kind], l.bw)
		switch {
		case l.kind == linkPCI && l.to == from:
		case l.kind == linkPCI && depth < 32:
			s.printNode(b, l.to, n, head, depth+1)
		case l.to.kind == kindNET:
			x := l.to.net
			fmt.Fprintf(b, "%s%s (%d/%x/%d/%f)\n", head, l.to.name(), bit(x.coll), x.asic, x.port, x.bw)
		default:
			b.WriteString(head + l.to.name() + "\n")
		}
	}
}
