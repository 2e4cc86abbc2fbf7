package slurm

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/internal/test/readertest"
)

// Synthetic seeds, one of each form.
var seeds = []string{
	"\fSwitChNAme= 0=", "- tree:\n   switches:\n      - switch: 0\n        nodes: 0",
	"SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n3,m[01-04] LinkSpeed=1\nSwitchName=t Switches=s[1-2]\n",
	"switchname = a nodes = \"n1\" \\\n  # c\nInclude x\nBlockName=b Nodes=n1\nBlockSizes=1,2\n",
	"SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n1 SwitchName=t Level=1 LinkSpeed=1 Nodes=n1 Switches=s1\n",
	"BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2\nAggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-4] BlockSize=4\n",
	"- topology: t\n  cluster_default: true\n  tree:\n    switches:\n      - switch: a\n        children: b\n      - " +
		"switch: b\n        nodes: n[1-2]\n- topology: u\n  block:\n    block_sizes: [1]\n    blocks: [{block: x, nodes: " +
		"n1}]\n",
	"NodeName=n1 Arch=x86_64 CoresPerSocket=8 \n   Gres=gpu:h100:8(S:0-1)\n   OS=Linux 6 #1 \n   Sockets=2\n\n" +
		"NodeName=DEFAULT CPUs=2\nNodeName=n[2-3] Gres=gpu:2,x:1\n",
	"NODELIST GRES SOCKETS\nn1 gpu:h100:8 2\n",
	"- block:\n    blocks: [{block: 0, nodes: 00}] ",
}

// writeBack writes what was read in every form and reads that.
func writeBack(t *testing.T, f *cluster.Fragment) {
	if len(f.Hosts) == 0 || len(f.Hosts) > 1000 {
		return
	}
	c := cluster.Join(f)
	var b bytes.Buffer
	if WriteConf(&b, c) != nil {
		return
	}
	if _, err := ReadConf("back", bytes.NewReader(b.Bytes())); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	b.Reset()
	if WriteYAML(&b, c) == nil {
		if _, err := ReadYAML("back", bytes.NewReader(b.Bytes())); err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
	}
}

func fuzz(f *testing.F, match func([]byte) bool, read func(string, io.Reader) (*cluster.Fragment, error)) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		matched := match(data)
		frag, err := read("x", bytes.NewReader(data))
		if err != nil {
			return
		}
		if !matched && len(frag.Hosts)+len(frag.Network.Switches) > 0 && len(frag.Warnings) == 0 {
			t.Fatalf("read without a warning what was not recognised: %q", data)
		}
		for _, h := range frag.Hosts {
			if h.Name == "" {
				t.Fatal("a host without a name")
			}
		}
		readertest.Check(t, frag)
		writeBack(t, frag)
	})
}

func FuzzReadConf(f *testing.F) { fuzz(f, MatchConf, ReadConf) }

func FuzzReadYAML(f *testing.F) { fuzz(f, MatchYAML, ReadYAML) }

func FuzzReadNodes(f *testing.F) { fuzz(f, MatchNodes, ReadNodes) }

// Megabytes of noise are turned away in seconds, and large real files read
// fast.
func TestLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	// to read is linear in it
	noise := []byte(strings.Repeat("x=y 1: [2,3]<stdout>: a\\\n\x00\x1b[1m= SwitchName\n", 4<<20/48))
	start := time.Now()
	for _, m := range []func([]byte) bool{MatchConf, MatchYAML, MatchNodes} {
		if m(noise) {
			t.Error("noise was recognised")
		}
	}
	for _, r := range []func(string, io.Reader) (*cluster.Fragment, error){ReadConf, ReadYAML, ReadNodes} {
		if _, err := r("x", bytes.NewReader(noise)); err == nil {
			t.Error("noise was read")
		}
	}
	if d := time.Since(start); d > eventually.Limit {
		t.Errorf("noise took %v", d)
	}
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "SwitchName=leaf%d Nodes=node[%d-%d]\n", i, i*20, i*20+19)
	}
	b.WriteString("SwitchName=top Switches=leaf[0-4999]\n")
	start = time.Now()
	f, err := ReadConf("x", strings.NewReader(b.String()))
	if err != nil || len(f.Hosts) != 100_000 {
		t.Fatalf("%v", err)
	}
	t.Logf("100,000 nodes read in %v", time.Since(start))
	start = time.Now()
	if err := WriteConf(io.Discard, &f.Cluster); err != nil {
		t.Fatal(err)
	}
	t.Logf("and written in %v", time.Since(start))
}

func FuzzFreeNodes(f *testing.F) {
	for _, s := range append(seeds, "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\ngpu* up 1:00 2 idle~ n[1-2]\n",
		"NodeName=n1 CPUs=1\n  State=IDLE+DRAIN Gres=gpu:1\n") {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		names, ok, err := FreeNodes(cluster.NewBudget(cluster.Limits{}, nil), text)
		if len(names) > 0 && !ok && err == nil {
			t.Errorf("%d nodes of a text that is not Slurm's", len(names))
		}
	})
}
