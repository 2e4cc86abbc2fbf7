package nccl_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbar/input/nccllog"
	"busbar/internal/corpus"
	"busbar/nccl"
)

// realRun is one folder of logs that NCCL 2.28.9 wrote.
type realRun struct {
	name  string
	dir   string
	log   *nccllog.Log
	comm  *nccllog.Comm
	rank0 string // text of rank 0's log
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
		var sources []nccllog.Source
		for i, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				r.rank0 = string(data)
			}
			sources = append(sources, nccllog.Source{Name: f, R: bytes.NewReader(data)})
		}
		if r.log, err = nccllog.ReadLogs(sources...); err != nil {
			t.Fatal(err)
		}
		for i := range r.log.Comms {
			if c := &r.log.Comms[i]; c.Tuning != nil {
				r.comm = c
			}
		}
		if r.comm == nil {
			t.Fatalf("%s: no tuning table", r.name)
		}
		all = append(all, r)
	}
	return all
}

// env is what the log says was set.
func (r *realRun) env() map[string]string {
	env := map[string]string{}
	for _, e := range r.log.Env {
		env[e.Name] = e.Value
	}
	return env
}

// logged turns a graph of the log into ours.
func logged(g nccllog.Graph) nccl.Graph {
	intra, _ := nccl.ParsePath(g.TypeIntra)
	inter, _ := nccl.ParsePath(g.TypeInter)
	return nccl.Graph{
		Pattern: nccl.Pattern(g.Pattern), CrossNIC: g.CrossNic, NChannels: g.NChannels, BwIntra: float32(g.BwIntra), BwInter: float32(g.BwInter),
		TypeIntra: intra, TypeInter: inter, SameChannels: g.SameChannels == 1,
	}
}

// tableText is the tuning table as the log has it, without prefixes.
func tableText(log string) string {
	var b strings.Builder
	for line := range strings.Lines(log) {
		if _, text, ok := strings.Cut(line, "NCCL INFO "); ok && strings.Contains(text, " |") && !strings.HasPrefix(text, "threadThr") {
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
		for _, x := range r.comm.Graphs {
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
			Arch: nccl.ArchX86, Vendor: nccl.Intel, Channels: r.comm.Coll, Env: r.env(),
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
