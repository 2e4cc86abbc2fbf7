package slurm

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/internal/test/readertest"
)

func TestCorpusConf(t *testing.T) {
	tops := map[string]int{"slurm-testcase4.conf": 2, "slurm-testcase5.conf": 2, "slurm-testcase6.conf": 3}
	hosts := map[string]int{
		"slurm-testcase1.conf": 10000, "slurm-testcase2.conf": 10000, "slurm-testcase3.conf": 400,
		"slurm-testcase4.conf": 400, "slurm-testcase5.conf": 400, "slurm-testcase6.conf": 40, "slurm-unit-topology.conf": 32,
	}
	for _, e := range corpus.Index(t, "Slurm topology.conf") {
		base := e.File[strings.LastIndexByte(e.File, '/')+1:]
		data := corpus.Open(t, e.File)
		if !MatchConf(data) || MatchYAML(data) || MatchNodes(data) {
			t.Errorf("%s: recognised as conf %v, yaml %v, nodes %v", base, MatchConf(data),
				MatchYAML(data), MatchNodes(data))
		}
		f, err := ReadConf(e.File, bytes.NewReader(data))
		if err != nil {
			t.Error(err)
			continue
		}
		switches, blocks, withSwitches, withNodes := 0, 0, 0, 0
		for i := range f.Network.Switches {
			if f.Network.Switches[i].Domain {
				blocks++
			} else {
				switches++
			}
			if len(readertest.Under(&f.Cluster, i)) > 0 {
				withSwitches++
			}
			if len(readertest.On(&f.Cluster, i)) > 0 {
				withNodes++
			}
		}
		got := map[string]float64{
			"switch_lines": float64(switches), "block_lines": float64(blocks),
			"lines_with_Switches": float64(withSwitches), "lines_with_Nodes": float64(withNodes),
		}
		for k, v := range got {
			if e.Facts[k] != v {
				t.Errorf("%s: %s = %v; the index says %v", base, k, v, e.Facts[k])
			}
		}
		for _, s := range e.Facts["blocksizes"].([]any) {
			if got := strings.Trim(strings.ReplaceAll(fmt.Sprint(f.Network.BlockSizes), " ", ","), "[]"); got != s.(string) {
				t.Errorf("%s: block sizes %s; want %v", base, got, s)
			}
		}
		if len(f.Hosts) != hosts[base] {
			t.Errorf("%s: %d hosts; want %d", base, len(f.Hosts), hosts[base])
		}
		island := fmt.Sprintf("%d islands", tops[base])
		if has := strings.Contains(readertest.Warnings(f), "islands"); has != (tops[base] > 0) ||
			has && !strings.Contains(readertest.Warnings(f), island) {
			t.Errorf("%s: want %d islands; warnings: %s", base, tops[base], readertest.Warnings(f))
		}
		if len(f.Warnings) != min(tops[base], 1) {
			t.Errorf("%s: warnings: %s", base, readertest.Warnings(f))
		}
	}
}

// The unbalanced tree: root is above a middle level on one side only.
func TestCorpusTiers(t *testing.T) {
	f, err := ReadConf("x", bytes.NewReader(corpus.Open(t, "slurm-topology/slurm-testcase2.conf")))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]cluster.Tier{"root": 3, "im0": 2, "grp10": 1, "grp23": 1, "leaf100": 0, "leaf599": 0}
	for name, tier := range want {
		i := f.Network.SwitchByName(name)
		if i < 0 || f.Network.Switches[i].Tier != tier {
			t.Errorf("%s: switch %d; want tier %d", name, i, tier)
		}
	}
	if got := readertest.Under(&f.Cluster, f.Network.SwitchByName("root")); len(got) != 14 || got[13] != "im0" {
		t.Errorf("under root: %v", got)
	}
	if got := cluster.FormatHosts(readertest.On(&f.Cluster,
		f.Network.SwitchByName("leaf101"))); got != "peta[10020-10039]" {
		t.Errorf("on leaf101: %s", got)
	}
}

func TestCorpusShow(t *testing.T) {
	for _, e := range corpus.Index(t, "scontrol show topology") {
		data := corpus.Open(t, e.File)
		if !MatchConf(data) || MatchNodes(data) {
			t.Error(e.File, "not recognised")
		}
		f, err := ReadConf(e.File, bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		want := readertest.Flush(`
			leaf1 tier=0 hosts=node[01-04]
			leaf2 tier=0 hosts=node[05-08]
			spine tier=1 under=leaf[1-2]`)
		if got := readertest.Shape(&f.Cluster); got != want || len(f.Hosts) != 8 || len(f.Warnings) > 0 {
			t.Errorf("%s: %d hosts\n%s%s", e.File, len(f.Hosts), got, readertest.Warnings(f))
		}
	}
}

func TestConf(t *testing.T) {
	tests := []struct{ name, in, want, warn string }{
		{
			"case, spaces, quotes, comments", `
			# a comment
			switchname = s1 NODES = "n[1-2]" LinkSpeed=100 # more
			SWITCHNAME=s2 Nodes=n3
			SwitchName=top Switches=s[1-2]`,
			"s1 tier=0 hosts=n[1-2]\ns2 tier=0 hosts=n3\ntop tier=1 under=s[1-2]", "",
		},
		{"continuation", "SwitchName=s1 \\\n   Nodes=n1,\\\nn2\n", "s1 tier=0 hosts=n[1-2]", ""},
		{"two prefixes", "SwitchName=s1 Nodes=a[1-2],b[01-02],c\n", "s1 tier=0 hosts=a[1-2],b[01-02],c", ""},
		{"empty names", "SwitchName=s1 Nodes=a1,,a2,\n", "s1 tier=0 hosts=a[1-2]", ""},
		{
			"a node under two switches",
			"SwitchName=s1 Nodes=n[1-3]\nSwitchName=s2 Nodes=n[3-4]\nSwitchName=t Switches=s[1-2]\n",
			"s1 tier=0 hosts=n[1-3]\ns2 tier=0 hosts=n[3-4]\nt tier=1 under=s[1-2]", "x:2: n3: on s1 and s2; kept all links",
		},
		{
			"no top", "SwitchName=s1 Nodes=n1\nSwitchName=s2 Nodes=n2\n", "s1 tier=0 hosts=n1\ns2 tier=0 hosts=n2",
			"no top switch joins s[1-2]: 2 islands",
		},
		{
			"tops that share what is below them",
			"SwitchName=s1 Nodes=n1\nSwitchName=s2 Nodes=n2\nSwitchName=t1 Switches=s[1-2]\nSwitchName=t2 Switches=s2\n" +
				"SwitchName=o Nodes=n3\n",
			"s1 tier=0 hosts=n1\ns2 tier=0 hosts=n2\nt1 tier=1 under=s[1-2]\nt2 tier=1 under=s2\no tier=0 hosts=n3",
			"no top switch joins t1,o: 2 islands",
		},
		{
			"undefined switches", "SwitchName=t Switches=s[1-3]\nSwitchName=s1 Nodes=n1\n",
			"t tier=1 under=s[1-3]\ns1 tier=0 hosts=n1\ns2 tier=0\ns3 tier=0", "x:1: t: nothing says what is under s[2-3]",
		},
		{
			"twice", "SwitchName=s Nodes=n1\nSwitchName=s Nodes=n[1-2]\n", "s tier=0 hosts=n[1-2]",
			"x:2: s: defined again (first on line 1)",
		},
		{
			"nodes and switches", "SwitchName=s Nodes=n1\nSwitchName=t Nodes=n2 Switches=s\n",
			"s tier=0 hosts=n1\nt tier=0 hosts=n2 under=s",
			"x:2: t: both Nodes and Switches",
		},
		{
			"empty switch", "SwitchName=s1\nSwitchName=s2 Nodes=n1\nSwitchName=t Switches=s[1-2]\n",
			"s1 tier=0\ns2 tier=0 hosts=n1\nt tier=1 under=s[1-2]", "x:1: s1: switch with neither hosts nor switches",
		},
		{
			"two parents", "SwitchName=s Nodes=n1\nSwitchName=a Switches=s\nSwitchName=b Switches=s\n",
			"s tier=0 hosts=n1\na tier=1 under=s\nb tier=1 under=s", "x:1: s: switch under a and b; kept both links",
		},
		{
			"bad hostlist", "SwitchName=s1 Nodes=n[1-\nSwitchName=s2 Nodes=n5\nSwitchName=t Switches=s[1-2]\n",
			"s1 tier=0\ns2 tier=0 hosts=n5\nt tier=1 under=s[1-2]",
			"x:1: s1: Nodes: hostlist \"n[1-\", column 2: [ is never closed",
		},
		{
			"space behind a comma, where Slurm ends the list", "SwitchName=s1 Nodes=n1, n2\n", "s1 tier=0 hosts=n1",
			"x:1: s1: words that are no Key=Value were skipped",
		},
		{
			"include", "Include /etc/slurm/more.conf\nSwitchName=s1 Nodes=n1\n", "s1 tier=0 hosts=n1",
			"Include /etc/slurm/more.conf is not followed",
		},
		{
			"blocks", "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4,8\n",
			"b1 group tier=0 hosts=n[1-4]\nb2 group tier=0 hosts=n[5-8]", "",
		},
		{
			"sizes that Slurm refuses", "BlockName=b1 Nodes=n[1-4]\nBlockSizes=4,12\n",
			"b1 group tier=0 hosts=n[1-4]",
			"x:2: BlockSizes=4,12: 12; expected nodes of a block, and that number times powers of two",
		},
		{
			"a node in two blocks", "BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[2-3]\n",
			"b1 group tier=0 hosts=n[1-2]\nb2 group tier=0 hosts=n[2-3]", "x:2: n2: on b1 and b2",
		},
		{
			"several names in one", "SwitchName=s[1-2] Nodes=n1\nSwitchName=s3 Nodes=n1\n", "s3 tier=0 hosts=n1",
			"not the name of one switch",
		},
		{
			"launcher and terminal", "\x1b[1m[1,0]<stdout>:SwitchName=s1 Nodes=n1\x1b[0m\r\n0: SwitchName=s2 Nodes=n2\r\n" +
				"host7: SwitchName=t Switches=s[1-2]\r\n",
			"s1 tier=0 hosts=n1\ns2 tier=0 hosts=n2\nt tier=1 under=s[1-2]", "",
		},
		{
			"markdown", "Our file:\n\n    SwitchName=s1 Nodes=n[1-2]\n\nSwitchName=x is how it starts, see `SwitchName=`.\n",
			"s1 tier=0 hosts=n[1-2]", "",
		},
		{
			"same name as a block", "SwitchName=a Nodes=n1\nBlockName=a Nodes=n1\n",
			"a tier=0 hosts=n1\na (group) group tier=0 hosts=n1", "",
		},
	}
	for _, tt := range tests {
		if !MatchConf([]byte(tt.in)) {
			t.Errorf("%s: not recognised", tt.name)
		}
		f, err := ReadConf("x", strings.NewReader(tt.in))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := readertest.Shape(&f.Cluster); got != tt.want+"\n" {
			t.Errorf("%s:\n%swant\n%s", tt.name, got, tt.want)
		}
		if w := readertest.Warnings(f); !strings.Contains(w, tt.warn) || tt.warn == "" && w != "" {
			t.Errorf("%s: warnings %s; want %q", tt.name, w, tt.warn)
		}
	}
}

func TestConfRefuses(t *testing.T) {
	chain := "SwitchName=s0 Nodes=n1\n"
	for i := 1; i < 100; i++ {
		chain += fmt.Sprintf("SwitchName=s%d Switches=s%d\n", i, i-1)
	}
	tests := []struct{ name, in, want string }{
		{
			"loop", "SwitchName=a Switches=b\nSwitchName=b Switches=c\nSwitchName=c Switches=a\n",
			"x:3: switch a is below itself; remove it from the switches under c",
		},
		{"itself", "SwitchName=a Switches=a\n", "x:1: switch a is below itself"},
		{"nothing", "hello\n", "x: no SwitchName= or BlockName= line"},
		{"empty", "", "x: no SwitchName="},
		{"deep", chain, "x:65: switch s64 has 64 levels under it"},
		{"bomb", strings.Repeat("SwitchName=s Nodes=n[0-999999]\n", 10), "x:3: more than 2000000 names"},
	}
	for _, tt := range tests {
		if tt.name == "bomb" && testing.Short() {
			continue
		}
		if f, err := ReadConf("x", strings.NewReader(tt.in)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, error %v; want %s", tt.name, f != nil, err, tt.want)
		}
	}
}

// Slurm plans in blocks where blocks are declared and no tree is the default; sizes that are not given are its own.
func TestBlockSizes(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4,8\n", "[4 8]"},
		{"BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockName=b3 Nodes=n9\n", "[4 8 16]"},
		{"SwitchName=s1 Nodes=n[1-4]\nBlockSizes=4\n", "[]"},
		{"BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2\nBlockName=b2 BlockIndex=1 Nodes=n[3-4] BlockSize=2\n" +
			"AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-4] BlockSize=4\n", "[2 4]"},
		{"- topology: a\n  cluster_default: true\n  tree:\n    switches:\n      - switch: s\n        nodes: n[1-4]\n- " +
			"topology: b\n  block:\n    block_sizes: [2, 4]\n    blocks:\n      - block: b1\n        nodes: n[1-2]\n", "[]"},
		{"- topology: b\n  cluster_default: true\n  block:\n    block_sizes: [2, 4]\n    blocks:\n      - block: b1\n      " +
			"  nodes: n[1-2]\n", "[2 4]"},
	} {
		read := ReadConf
		if MatchYAML([]byte(tt.text)) {
			read = ReadYAML
		}
		f, err := read("x", strings.NewReader(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(f.Network.BlockSizes); got != tt.want {
			t.Errorf("%s: %s; want %s", tt.text, got, tt.want)
		}
	}
}

// Synthetic, in the form that newer releases print blocks and that a log which
// lost its newlines shows.
func TestShow(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{
			"blocks", "BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2\nBlockName=b2 BlockIndex=1 Nodes=n[3-4] " +
				"BlockSize=2\nAggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-4] BlockSize=4\n",
			"b1 group tier=0 hosts=n[1-2]\nb2 group tier=0 hosts=n[3-4]\nb[1-2] group tier=1 under=b[1-2]",
		},
		{
			"newlines lost", "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n1 SwitchName=s2 Level=0 LinkSpeed=1 Nodes=n2 " +
				"SwitchName=t Level=1 LinkSpeed=1 Nodes=n[1-2] Switches=s[1-2]",
			"s1 tier=0 hosts=n1\ns2 tier=0 hosts=n2\nt tier=1 under=s[1-2]",
		},
		{
			"upper level only", "SwitchName=t Level=2 LinkSpeed=1 Switches=s1\nSwitchName=s1 Level=1 LinkSpeed=1 Nodes=(null) " +
				"Switches=l1\nSwitchName=l1 Level=0 LinkSpeed=1 Nodes=n1",
			"t tier=2 under=s1\ns1 tier=1 under=l1\nl1 tier=0 hosts=n1",
		},
	}
	for _, tt := range tests {
		if !MatchConf([]byte(tt.in)) {
			t.Errorf("%s: not recognised", tt.name)
		}
		f, err := ReadConf("x", strings.NewReader(tt.in))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := readertest.Shape(&f.Cluster); got != tt.want+"\n" {
			t.Errorf("%s:\n%swant\n%s", tt.name, got, tt.want)
		}
	}
}

func TestYAML(t *testing.T) {
	in := `---
- topology: main
  tree:
    switches: [{switch: s1, nodes: "n[1-2]"}, {switch: s2, nodes: [n3, n4]}]
- topology: odd
  wave: 1
- topology: even
  flat: true
- topology: def
  cluster_default: true
  tree:
    switches:
      - switch: t
        children: a,b
      - switch: a
        nodes: n1
      - switch: b
        nodes: n2
      - nodes: n9
- topology: blocks
  block:
    blocks: [{block: b1, nodes: "n[1-2]"}]
`
	if !MatchYAML([]byte(in)) {
		t.Error("not recognised")
	}
	f, err := ReadYAML("x", strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	want := readertest.Flush(`
		t tier=1 under=a,b
		a tier=0 hosts=n1
		b tier=0 hosts=n2
		b1 group tier=0 hosts=n[1-2]`)
	if got := readertest.Shape(&f.Cluster); got != want {
		t.Errorf("\n%swant\n%s", got, want)
	}
	if len(f.Warnings) != 3 {
		t.Errorf("%s", readertest.Warnings(f))
	}
	for _, w := range []string{
		"x:2: main: neither the tree of the network", "x:5: odd: neither", "x:19: an entry without \"switch\"",
	} {
		if !strings.Contains(readertest.Warnings(f), w) {
			t.Errorf("no warning %q in\n%s", w, readertest.Warnings(f))
		}
	}
	for _, bad := range []struct{ in, want string }{
		{"- topology: a\n  tree: &x\n    switches: []\n", "x:2: \"&x\" is an anchor or an alias"},
		{"- topology: a\n  tree:\n    switches: [\n", "x:"},
		{"a: b\n", "x: no \"- topology: name\""},
		{"- topology: a\n  tree:\n    switches:\n    - switch: s\n      children: s\n", "x:4: switch s is below itself"},
	} {
		if _, err := ReadYAML("x", strings.NewReader(bad.in)); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%q: %v; want %s", bad.in, err, bad.want)
		}
	}
}

// A switch that is only named by the one above is below it, however little is known of it.
func TestNamedOnly(t *testing.T) {
	f, err := ReadConf("x", strings.NewReader("SwitchName=s1 Nodes=n[1-4]\nSwitchName=s2 Nodes=n[5-8]\n"+
		"SwitchName=s0 Switches=s[1-3]\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := cluster.Join(f)
	for name, want := range map[string]cluster.Tier{"s0": cluster.Spine, "s3": cluster.Leaf} {
		for _, s := range c.Network.Switches {
			if s.Name == name && s.Tier != want {
				t.Errorf("%s is of tier %v, want %v", name, s.Tier, want)
			}
		}
	}
	for _, l := range c.Network.Links {
		if !l.B.ToHosts() && c.Network.Switches[l.A.Switch].Name != "s0" {
			t.Errorf("%s is above %s", c.Network.Switches[l.A.Switch].Name, c.Network.Switches[l.B.Switch].Name)
		}
	}
}

func TestMatchNothingElse(t *testing.T) {
	for _, e := range corpus.Index(t) {
		if strings.HasPrefix(e.File, "slurm-topology/") || strings.Contains(strings.ToLower(e.Format), "slurm") {
			continue
		}
		data := corpus.Open(t, e.File)
		got := []bool{MatchConf(data), MatchYAML(data), MatchNodes(data)}
		if slices.Contains(got, true) {
			t.Errorf("%s: recognised as conf, yaml, nodes: %v", e.File, got)
		}
	}
}
