package synth

import (
	"fmt"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/unit"
)

// Host is the name of a node.
func (m *Machine) Host(node int) string { return fmt.Sprintf("%s-n%02d", m.Name, node+1) }

// Bus is the PCI bus of a node's GPU, as package nccl numbers those of shapes; the NIC beside it has the next one.
func Bus(gpu int) int { return 6 + 4*gpu }

// pid is the process of a rank; every rank has one.
func pid(rank int) int { return 41000 + 7*rank }

// Rooted reports a collective with a root, whose number the tables have in a column.
func Rooted(k coll.Kind) bool { return k == coll.Broadcast || k == coll.Reduce }

// Table is a sweep as nccl-tests prints it: parameters, ranks, rows with the times out of place and, a hundredth
// longer, in place. Its first line says that it is synthetic; the tool's own lines begin with # too.
func (m *Machine) Table(g *Sweep) (string, error) {
	k, err := coll.ParseKind(g.Collective)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n# nccl-tests version 2.17.1 nccl-headers=%s nccl-library=%s\n# Collective test starting: %s\n",
		Source, code(m.Release), code(m.Release), k.Binary())
	fmt.Fprintf(&b, "# nThread 1 nGpus 1 minBytes %d maxBytes %d step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 "+
		"validation: 1 graph: 0\n#\n# Using devices\n", g.Sizes[0], g.Sizes[len(g.Sizes)-1])
	for r := range g.Ranks {
		fmt.Fprintf(&b, "#  Rank %2d Group  0 Pid %6d on %10s device %2d [0000:%02x:00] NVIDIA %s\n", r, pid(r),
			m.Host(r/g.PerNode), r%g.PerNode, Bus(r%g.PerNode), g.GPU)
	}
	fmt.Fprintf(&b, "#\n#%61s%35s\n", "out-of-place", "in-place")
	b.WriteString("#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   " +
		"algbw   busbw  #wrong \n")
	b.WriteString("#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  " +
		"(GB/s)  (GB/s)         \n")
	sum := 0.0
	for i, size := range g.Sizes {
		op := coll.Op{Kind: k, Bytes: unit.Bytes(size), Type: coll.Float}
		root, redop := -1, "sum"
		if Rooted(k) {
			root = 0
		}
		if k == coll.Broadcast || k == coll.AllGather || k == coll.AllToAll {
			redop = "none"
		}
		fmt.Fprintf(&b, "%12d  %12d  %8s  %6s  %6d", op.Size(g.Ranks), op.Count(g.Ranks), g.Dtype, redop, root)
		for _, us := range []float64{g.Micros[i], 1.01 * g.Micros[i]} {
			alg := float64(op.AlgBytes(g.Ranks)) / us / 1e3
			bus := alg * k.BusFactor(g.Ranks)
			fmt.Fprintf(&b, "  %7.2f  %6.2f  %6.2f  %6d", us, alg, bus, 0)
			sum += bus / 2
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : %.6g \n#\n# Collective test concluded: %s\n",
		sum/float64(len(g.Sizes)), k.Binary())
	return b.String(), nil
}

// code is a release as a number: 2.23.4 is 22304.
func code(release string) string {
	var a, b, c int
	fmt.Sscanf(release, "%d.%d.%d", &a, &b, &c)
	return fmt.Sprint(10000*a + 100*b + c)
}
