package nccl_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/input/nccllog"
	"busbar.dev/input/ncclxml"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/internal/test/ncclplan"
	"busbar.dev/nccl"
)

// realRun is one folder of logs that NCCL 2.28.9 wrote.
type realRun struct {
	name  string
	dir   string
	log   *ncclplan.Log
	comm  *nccllog.Comm
	plan  *ncclplan.Plan // that its ranks have in common
	rank0 string         // text of rank 0's log
}

func realRuns(t *testing.T) []realRun {
	t.Helper()
	root := filepath.Join(corpus.Dir(t), "corpus", "nccl-real")
	dirs, err := filepath.Glob(filepath.Join(root, "n*"))
	if err != nil || len(dirs) == 0 {
		t.Skip("no logs of real runs")
	}
	var all []realRun
	for _, dir := range dirs {
		files, _ := filepath.Glob(filepath.Join(dir, "nccl.*.log"))
		r := realRun{name: filepath.Base(dir), dir: dir}
		var sources []ncclplan.Source
		for i, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				r.rank0 = string(data)
			}
			sources = append(sources, ncclplan.Source{Name: f, Data: data})
		}
		r.log = ncclplan.Read(t, sources...)
		for i := range r.log.Comms {
			if p := r.log.Common(&r.log.Comms[i]); len(p.Cells) > 0 {
				r.comm, r.plan = &r.log.Comms[i], p
			}
		}
		if r.comm == nil {
			t.Fatalf("%s: no tuning table", r.name)
		}
		all = append(all, r)
	}
	return all
}

// logged turns a graph of the log into ours.
func logged(g ncclplan.Graph) nccl.Graph {
	intra, _ := nccl.ParsePath(g.TypeIntra)
	inter, _ := nccl.ParsePath(g.TypeInter)
	return nccl.Graph{
		Pattern: nccl.Pattern(g.Pattern), CrossNIC: g.CrossNic, NChannels: g.NChannels, BwIntra: float32(g.BwIntra),
		BwInter:   float32(g.BwInter),
		TypeIntra: intra, TypeInter: inter, SameChannels: g.SameChannels == 1,
	}
}

// tableText is the tuning table as the log has it, without prefixes.
func tableText(log string) string {
	var b strings.Builder
	for line := range strings.Lines(log) {
		if _, text, ok := strings.Cut(line, "NCCL INFO "); ok && strings.Contains(text, " |") &&
			!strings.HasPrefix(text, "threadThr") {
			b.WriteString(text)
		}
	}
	return b.String()
}

// TestRealTables computes the tables from the graphs that the logs print and
// compares them as text, and every choice with its channels.
func TestRealTables(t *testing.T) {
	tables, choices := 0, 0
	for _, r := range realRuns(t) {
		var g nccl.Graphs
		for _, x := range r.plan.Graphs {
			switch x.Pattern {
			case 4:
				g.Ring = logged(x)
			case 1, 2, 3:
				g.Tree = logged(x)
			}
		}
		v, err := nccl.ParseVersion(r.log.Versions[0].Text)
		if err != nil {
			t.Fatal(err)
		}
		c := nccl.Comm{
			Version: v, NRanks: r.comm.NRanks, NNodes: r.comm.NNodes, MaxLocalRanks: 1, MinCC: 90, MaxCC: 90,
			Arch: nccl.ArchX86, Vendor: nccl.Intel, Channels: r.plan.Coll, Env: r.log.Env,
		}
		tab, err := nccl.NewTable(&c, &g)
		if err != nil {
			t.Fatal(err)
		}
		tables++
		if got, want := tab.String(), tableText(r.rank0); got != want {
			t.Errorf("%s: table\n%s\nwant\n%s", r.name, got, want)
		}
		choices += checkChoices(t, r, tab.Choose)
	}
	t.Logf("%d tables equal as text, %d choices compared", tables, choices)
}

func checkChoices(t *testing.T, r realRun, choose func(nccl.Call) (nccl.Choice, error)) int {
	n := 0
	for _, x := range r.log.Choices {
		op, err := nccl.ParseOp(x.Op)
		if err != nil {
			continue
		}
		n++
		got, err := choose(nccl.Call{Op: op, Bytes: x.Bytes})
		a := fmt.Sprintf("%s %s %d", got.Algo, got.Proto, got.Channels)
		b := fmt.Sprintf("%s %s %d", x.Algo, x.Proto, x.Hi-x.Lo+1)
		if err != nil || a != b {
			t.Errorf("%s: %s of %d bytes: %s, %v; the log has %s", r.name, x.Op, x.Bytes, a, err, b)
		}
	}
	return n
}

// graphText is the part of a log that shows NCCL's view: the system, its paths and
// the graphs.
func graphText(log string) string {
	var b strings.Builder
	in := false
	for line := range strings.Lines(log) {
		_, text, ok := strings.Cut(line, "NCCL INFO ")
		if !ok || strings.HasPrefix(text, "ncclTopoGetCpuAffinity") {
			continue
		}
		in = in || strings.HasPrefix(text, "=== System")
		if strings.Contains(text, " set by environment") || strings.HasPrefix(text, "comm 0x") {
			in = false
		}
		if in {
			b.WriteString(text)
		}
	}
	return b.String()
}

// realCluster is the machine of a run, as NCCL itself described it, once a rank.
func realCluster(t *testing.T, r realRun) *cluster.Cluster {
	t.Helper()
	f, err := os.Open(filepath.Join(r.dir, "topo.xml"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	frag, err := ncclxml.Read(f.Name(), f)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster.Cluster{Types: frag.Types}
	for i := range r.comm.NRanks {
		c.Hosts = append(c.Hosts, cluster.Host{Name: fmt.Sprintf("host%d", i)})
	}
	return c
}

// TestRealRuns plans from the topology file alone and compares everything that
// the logs of all ranks print.
func TestRealRuns(t *testing.T) {
	n := map[string]int{}
	for _, r := range realRuns(t) {
		c := realCluster(t, r)
		l, err := nccl.Block(c, r.comm.NRanks, 1)
		if err != nil {
			t.Fatal(err)
		}
		v, _ := nccl.ParseVersion(r.log.Versions[0].Text)
		p, err := new(nccl.Planner).Plan(c, l, v, r.log.Env)
		if err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		text := p.String()
		view := p.Nodes[0].View.String() + text[:strings.Index(text, "nRanks ")]
		want := graphText(r.rank0)
		n["lines of system, paths and graphs"] += strings.Count(want, "\n")
		if spaces(view) != spaces(want) {
			t.Errorf("%s: NCCL's view\n%s\nwant\n%s", r.name, view, want)
		}
		if got, want := p.Table.String(), tableText(r.rank0); got != want {
			t.Errorf("%s: table\n%s\nwant\n%s", r.name, got, want)
		}
		n["tables"]++
		n["cells"] += len(r.plan.Cells)
		n["choices"] += checkChoices(t, r, p.Choose)
		for _, ring := range r.comm.Rings {
			n["rings"]++
			if fmt.Sprint(p.Ring(ring.Channel)) != fmt.Sprint(ring.Ranks) {
				t.Errorf("%s: ring %d of %d: %v, want %v", r.name, ring.Channel, p.Count(), p.Ring(ring.Channel), ring.Ranks)
			}
		}
		for _, k := range r.comm.Ranks {
			for _, node := range k.Trees {
				n["places in trees"]++
				if got := p.Tree(node.Channel)[node.Rank]; !sameLinks(got, node) {
					t.Errorf("%s: tree %d of rank %d: %v, want %v", r.name, node.Channel, node.Rank, got, node)
				}
			}
			ch := r.log.Of(k)
			n["channel counts"]++
			if ch.Coll != p.Count() || ch.NVLS != p.NVLSChannels || ch.P2P != p.P2PChannels || ch.P2PPerPeer != p.P2PPerPeer {
				t.Errorf("%s: channels %d %d %d %d, want %+v", r.name, p.Count(), p.NVLSChannels, p.P2PChannels, p.P2PPerPeer, ch)
			}
		}
	}
	t.Log("compared:", n)
}

// spaces takes out what ends lines, which a log may have lost.
func spaces(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}

func sameLinks(l nccl.Links, n nccllog.TreeNode) bool {
	var kids []int
	for _, d := range l.Down {
		if d >= 0 {
			kids = append(kids, d)
		}
	}
	return l.Up == n.Parent && fmt.Sprint(kids) == fmt.Sprint(n.Children)
}
