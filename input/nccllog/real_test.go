package nccllog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/corpus"
)

// real reads the logs of one job of our own runs.
func real(t *testing.T, job string) *Log {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpus.Dir(t), "corpus", "nccl-real", job, "*.log"))
	if err != nil || len(files) == 0 {
		t.Skipf("no logs of %s: %v", job, err)
	}
	r := NewReader()
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Add(filepath.Base(f), bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	return r.Log()
}

var jobs = map[string]int{"n2": 2, "n3": 3, "n4": 4, "n4Ring": 4, "n4s25000": 4, "n6": 6}

// In each job: one communicator whose ranks were all seen, rings that go through
// every rank, trees in which parents and children agree.
func TestRealJobs(t *testing.T) {
	for job, n := range jobs {
		l := real(t, job)
		if len(l.Comms) != 1 || l.NotUnderstood != 0 || l.Versions[0].Text != "2.28.9+cuda13.0" {
			t.Fatalf("%s: %d communicators, not understood %v", job, len(l.Comms), l.Unknown)
		}
		m := &l.Comms[0]
		if m.NRanks != n || m.NNodes != n || len(m.Ranks) != n {
			t.Errorf("%s: %+v", job, m)
		}
		for i, k := range m.Ranks {
			if k.Rank != i || k.Started.Line == 0 || k.Completed.Line == 0 || !k.Ended || k.PCI != "0000:00:06.0" {
				t.Errorf("%s: rank %d: %+v", job, i, k)
			}
		}
		if len(m.Rings) != 2 || len(m.Trees) != 2 {
			t.Fatalf("%s: %d rings, %d trees", job, len(m.Rings), len(m.Trees))
		}
		for _, r := range m.Rings {
			seen := slices.Sorted(slices.Values(r.Ranks))
			if r.Cut || len(slices.Compact(seen)) != n || seen[n-1] != n-1 {
				t.Errorf("%s: ring %v", job, r.Ranks)
			}
		}
		for _, tree := range m.Trees {
			checkTree(t, job, tree, n)
		}
	}
}

// checkTree follows every parent to one root and asks it for the child.
func checkTree(t *testing.T, job string, tree Tree, n int) {
	roots := 0
	for i, node := range tree.Nodes {
		if node.Rank != i || len(tree.Nodes) != n {
			t.Fatalf("%s: tree %+v", job, tree)
		}
		if node.Parent < 0 {
			roots++
		} else if !slices.Contains(tree.Nodes[node.Parent].Children, node.Rank) {
			t.Errorf("%s: channel %d: rank %d has parent %d, which does not know it", job, tree.Channel, node.Rank, node.Parent)
		}
		for _, c := range node.Children {
			if tree.Nodes[c].Parent != node.Rank {
				t.Errorf("%s: channel %d: rank %d has child %d of another parent", job, tree.Channel, node.Rank, c)
			}
		}
	}
	if roots != 1 {
		t.Errorf("%s: channel %d has %d roots", job, tree.Channel, roots)
	}
}

// Figures of n4 read off the files by eye.
func TestRealFigures(t *testing.T) {
	m := &real(t, "n4").Comms[0]
	if fmt.Sprint(m.Rings[1].Ranks) != "[0 1 2 3]" {
		t.Errorf("ring %v", m.Rings[1])
	}
	up, down := []int{}, [][]int{}
	for _, n := range m.Trees[0].Nodes {
		up, down = append(up, n.Parent), append(down, n.Children)
	}
	if fmt.Sprint(up, down) != "[-1 2 0 2] [[2] [] [1 3] []]" {
		t.Errorf("tree 0: %v %v", up, down)
	}
	if k := m.Ranks[0]; k.LocalRanks != 1 {
		t.Errorf("rank 0: %+v", k)
	}
}

// Every tree of our runs, printed from what was read in NCCL's own format, is the text of the log.
func TestRealExactly(t *testing.T) {
	for job := range jobs {
		files, _ := filepath.Glob(filepath.Join(corpus.Dir(t), "corpus", "nccl-real", job, "*.log"))
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			l, err := ReadLog(f, bytes.NewReader(data))
			if err != nil || len(l.Comms) != 1 {
				t.Fatal(f, err)
			}
			k := l.Comms[0].Ranks[0]
			trees := "Trees"
			for _, n := range k.Trees {
				kids := append(slices.Clone(n.Children), -1, -1, -1)
				trees += fmt.Sprintf(" [%d] %d/%d/%d->%d->%d", n.Channel, kids[0], kids[1], kids[2], n.Rank, n.Parent)
			}
			if !strings.Contains(string(data), trees+"\n") {
				t.Errorf("%s: the log has no line %q", f, trees)
			}
		}
	}
}

// NICs of libfabric are counted where its plugin says how many it found, and have no names.
func TestProviders(t *testing.T) {
	for provider, kind := range map[string]cluster.NetKind{"efa": cluster.EFA, "cxi, fabric is cxi": cluster.Slingshot} {
		text := initLine("n1", 100, 0, 1, 0, 0x10, "a1")
		for range 2 {
			text += "n1:100:101 [0] NCCL INFO NET/OFI Selected provider is " + provider + " (found 3 nics)\n"
		}
		nics := read(t, text+"n1:100:101 [0] NCCL INFO NET/OFI Selected Provider is tcp (found 9 nics)\n").Fragment().TypeOf(
			0)
		if of := nics.Of(cluster.NIC); len(of) != 3 || nics.Devices[of[2]].NIC.Kind != kind ||
			nics.Devices[of[2]].Index != 2 || nics.Devices[of[2]].Label != "" {
			t.Errorf("%s: %+v", provider, nics.Devices)
		}
	}
}
