package nccllog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
)

// initLine is the end of a set-up, as a process of a host prints it.
func initLine(host string, pid, rank, nranks, dev, bus int, id string) string {
	return fmt.Sprintf("%s:%d:%d [%d] NCCL INFO ncclCommInitRank comm 0x%x rank %d nranks %d cudaDev %d nvmlDev %d "+
		"busId %x "+
		"commId 0x%s - Init COMPLETE\n", host, pid, pid+1, dev, pid*16, rank, nranks, dev, dev, bus<<12, id)
}

// A cell of a table that ran into the name of a host is no part of it.
func TestGluedCell(t *testing.T) {
	l := read(t, "    1048576        262144     float     sum      -1"+initLine("mi200000000", 7, 0, 1, 0, 5, "a1"))
	if !slices.Equal(l.Hosts, []string{"mi200000000"}) {
		t.Errorf("hosts %q", l.Hosts)
	}
}

// A name that stands within a torn line once, and ends in a host's, is that host's.
func TestTornHost(t *testing.T) {
	l := read(t, strings.Repeat("c0b5f1:4:5 [1] NCCL INFO a\n", 12)+
		"c0b5f1:4:5 [1] NCCL INFO comm 0x5 rank 1 nrc0b5f1:3:8 [0] "+
		"NCCL INFO b\n")
	if !slices.Equal(l.Hosts, []string{"c0b5f1"}) {
		t.Errorf("hosts %q", l.Hosts)
	}
}

// gpusOf are the addresses of a host's GPUs.
func gpusOf(f *cluster.Fragment) (list []string) {
	t := f.TypeOf(0)
	for _, i := range t.Of(cluster.GPU) {
		list = append(list, string(t.Devices[i].PCI))
	}
	return list
}

// Two runs on machines that were called alike are not one machine with the GPUs of both.
func TestRunsApart(t *testing.T) {
	run := func(bus int, id string) (text string) {
		for r := range 4 {
			text += initLine("worker-0", 100*bus+r, r, 4, r, bus+r, id)
		}
		return text
	}
	f := read(t, run(0x10, "a1")+run(0x80, "b2")).Fragment()
	if got := gpusOf(f); len(got) != 4 || !strings.HasPrefix(got[0], "0000:80") || len(f.Warnings) != 4 {
		t.Errorf("GPUs %v, warnings %v", got, f.Warnings)
	}
	// Processes that see one GPU each call all of them number 0, and a run may take other GPUs than the one before.
	var apart, halves string
	for r := range 4 {
		apart += initLine("n1", 100+r, r, 4, 0, 0x10+r, "a1")
		halves += initLine("n1", 100+r, r, 4, r, 0x10+r, "a1")
	}
	for r := range 4 {
		halves += initLine("n1", 200+r, r, 4, 4+r, 0x20+r, "b2")
	}
	for text, want := range map[string]int{apart: 4, halves: 8} {
		if f := read(t, text).Fragment(); len(gpusOf(f)) != want || len(f.Warnings) > 0 {
			t.Errorf("GPUs %v, warnings %v", gpusOf(f), f.Warnings)
		}
	}
}

// Lines of several processes that ran together are said to have.
func TestInterleaved(t *testing.T) {
	text := initLine("n1", 100, 0, 4, 0, 0x10, "a1")
	for r := 1; r < 4; r++ {
		text += fmt.Sprintf("n1:%d:%d [%d] NCCL INFO Using network IB\nn1:%d ncclComm rank 0x5\n", 100+r, 200+r, r, 100+r)
	}
	f := read(t, text).Fragment()
	if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].Text, "4 processes wrote into this log, and 1 of the 4 "+
		"ranks of its largest communicator can be read") {
		t.Errorf("%v", f.Warnings)
	}
	f = read(t, initLine("n1", 100, 0, 4, 0, 0x10, "a1")).Fragment()
	if len(f.Warnings) != 1 ||
		!strings.HasPrefix(f.Warnings[0].Text, "1 of the 4 ranks of the largest communicator wrote") {
		t.Errorf("a log of one rank: %v", f.Warnings)
	}
}

// Interfaces that the kernel makes up are no NICs.
func TestVirtualInterfaces(t *testing.T) {
	l := read(t, "n1:1:2 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0> [1]tunl0:10.244.1.1<0> "+
		"[2]br-1f2e:172.18.0.1<0> "+
		"[3]cali12ab:fe80::1<0> [4]vethab:fe80::2<0> [5]kube-ipvs0:10.96.0.1<0>\n")
	f := l.Fragment()
	if n := f.TypeOf(0).Of(cluster.NIC); len(n) != 1 {
		t.Errorf("%d NICs", len(n))
	}
}
