package nccllog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/synth"
)

// job is a synthetic job of one of the machines.
func job(t testing.TB, machine, minor int) *synth.Job {
	t.Helper()
	m := synth.Machines()[machine]
	j, err := synth.NewJob(&m, minor, map[string]string{"NCCL_DEBUG": "INFO", "NCCL_IB_QPS_PER_CONNECTION": "4"})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// What a job's log says is what NCCL's model decided, in the forms of releases from 2.12 to 2.30.
func TestSyntheticLogs(t *testing.T) {
	for _, c := range []struct{ machine, minor int }{
		{0, 12}, {0, 18}, {2, 20}, {4, 22}, {0, 23}, {2, 24}, {3, 27}, {0, 28}, {4, 30},
	} {
		j := job(t, c.machine, c.minor)
		t.Run(fmt.Sprintf("%s 2.%d", j.Name, c.minor), func(t *testing.T) {
			text := j.Logs()
			if !Match([]byte(text)) {
				t.Error("Match says no")
			}
			l := read(t, text)
			if l.NotUnderstood != 0 || len(l.Dropped) != 0 {
				t.Errorf("not understood: %v; dropped %v", l.Unknown, l.Dropped)
			}
			if len(l.Comms) != 1 || len(l.Versions) != 1 || !strings.HasPrefix(l.Versions[0].Text, j.Release) {
				t.Fatalf("%d communicators, %v", len(l.Comms), l.Versions)
			}
			checkRanks(t, j, l)
			checkWiring(t, j, l)
			checkNetwork(t, j, l)
		})
	}
}

// checkRanks compares who took part.
func checkRanks(t *testing.T, j *synth.Job, l *Log) {
	m := &l.Comms[0]
	if m.NRanks != j.Ranks() || len(m.Ranks) != j.Ranks() || len(l.Hosts) != j.Nodes ||
		j.Minor >= 17 && m.NNodes != j.Plan.NNodes {
		t.Fatalf("%d of %d ranks on %d hosts, %d nodes", len(m.Ranks), m.NRanks, len(l.Hosts), m.NNodes)
	}
	for i, k := range m.Ranks {
		if k.Rank != i || k.Host != j.HostOf(i) || k.CudaDev != i%j.PerNode || k.Started.Line == 0 ||
			k.Completed.Line <= k.Started.Line || !k.Ended {
			t.Errorf("rank %d: %+v", i, k)
		}
		if want := cluster.PCI(fmt.Sprintf("0000:%02x:00.0", synth.Bus(i%j.PerNode))); k.PCI != want {
			t.Errorf("rank %d is at %s, want %s", i, k.PCI, want)
		}
	}
	f := l.Fragment()
	if len(f.Hosts) != j.Nodes || len(f.Types) != 1 || f.Types[0].Count(cluster.GPU) != j.PerNode {
		t.Errorf("%d hosts of %d types", len(f.Hosts), len(f.Types))
	}
}

// checkWiring compares rings, trees and connections.
func checkWiring(t *testing.T, j *synth.Job, l *Log) {
	m, p := &l.Comms[0], j.Plan
	if len(m.Rings) != p.Count() || len(m.Trees) != p.Count() {
		t.Fatalf("%d rings, %d trees; want %d", len(m.Rings), len(m.Trees), p.Count())
	}
	hops, open := map[[3]int]bool{}, map[[3]int]bool{}
	for c := range p.Count() {
		ring := p.Ring(c)
		if r := m.Rings[c]; r.Channel != c || r.Cut || !slices.Equal(r.Ranks, ring) {
			t.Errorf("ring %d: %v, want %v", c, r.Ranks, ring)
		}
		for i, from := range ring {
			hop := [3]int{c, from, ring[(i+1)%len(ring)]}
			hops[hop], open[hop] = true, true
		}
		for rank, want := range p.Tree(c) {
			got := m.Trees[c].Nodes[rank]
			kids := slices.DeleteFunc(want.Down[:], func(n int) bool { return n < 0 })
			if got.Rank != rank || got.Parent != want.Up || !slices.Equal(got.Children, kids) {
				t.Errorf("tree %d: %+v, want %+v", c, got, want)
			}
		}
	}
	for _, c := range l.Connections {
		hop := [3]int{c.Channel, c.From, c.To}
		across := c.From/j.PerNode != c.To/j.PerNode
		if !hops[hop] || across != (c.Transport == "NET") || across != (c.Dir != "") {
			t.Errorf("connection %+v is none of the rings'", c)
		}
		if c.Dir != "receive" {
			delete(open, hop)
		}
	}
	if len(open) != 0 {
		t.Errorf("hops without a connection: %v", open)
	}
}

// checkNetwork compares NICs.
func checkNetwork(t *testing.T, j *synth.Job, l *Log) {
	socket := j.Spec.NICs == 0 || j.Spec.Kind == cluster.Ethernet
	nics := 1
	if !socket {
		nics = j.Spec.NICs
	}
	if len(l.NICs) != nics*j.Nodes {
		t.Errorf("%d NICs, want %d on each of %d hosts", len(l.NICs), nics, j.Nodes)
	}
	for _, n := range l.NICs {
		if !socket && (n.GDR != cluster.Yes || n.Port != 1 || j.Minor >= 27 && n.Mbps != int(j.Spec.Port*8/1e6) ||
			j.Minor >= 23 && n.PCI == "") {
			t.Errorf("NIC %+v", n)
		}
	}
	if f := l.Fragment(); f.Types[0].Count(cluster.NIC) != nics {
		t.Errorf("%d NICs in the fragment, want %d", f.Types[0].Count(cluster.NIC), nics)
	}
}

// content is what a log says without where and in how many lines.
func content(t *testing.T, l *Log) string {
	t.Helper()
	copied := *l
	copied.Records = 0
	text, err := json.Marshal(&copied)
	if err != nil {
		t.Fatal(err)
	}
	var any any
	if err := json.Unmarshal(text, &any); err != nil {
		t.Fatal(err)
	}
	text, err = json.Marshal(without(any))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// without removes places, and who of several that said the same came first.
func without(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["Source"]; ok && len(v) == 2 {
			return nil
		}
		for k := range v {
			if v[k] = without(v[k]); k == "Time" {
				v[k] = nil
			}
		}
	case []any:
		for i := range v {
			v[i] = without(v[i])
		}
	}
	return v
}

// A log says the same behind launchers' labels, timestamps, terminal codes, wrapped by a container's runtime, with
// carriage returns, and in several files.
func TestSyntheticWrappings(t *testing.T) {
	j := job(t, 4, 28)
	text := j.Logs()
	want := content(t, read(t, text))
	each := func(f func(line string) string) string {
		var b strings.Builder
		for line := range strings.Lines(text) {
			b.WriteString(f(strings.TrimSuffix(line, "\n")) + "\n")
		}
		return b.String()
	}
	wrapped := func(s string) string {
		out, err := json.Marshal(map[string]string{"log": s + "\n", "stream": "stdout"})
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	stamped := job(t, 4, 28)
	stamped.Timestamps = true
	for name, text := range map[string]string{
		"mpirun":    each(func(s string) string { return "[1,3]<stdout>:" + s }),
		"srun":      each(func(s string) string { return "12: " + s }),
		"ray":       each(func(s string) string { return "(Worker pid=3, ip=10.77.0.9) " + s }),
		"colour":    each(func(s string) string { return "\x1b[36m" + s + "\x1b[0m" }),
		"container": each(wrapped),
		"windows":   each(func(s string) string { return s + "\r" }),
		"stamped":   stamped.Logs(),
	} {
		if got := content(t, read(t, text)); got != want {
			t.Errorf("%s: a log of %d bytes says something else", name, len(text))
		}
	}
	reader := NewReader()
	for r := range j.Ranks() {
		if err := reader.Add("f", strings.NewReader(j.Log(r))); err != nil {
			t.Fatal(err)
		}
	}
	l := reader.Log()
	if l.Sources = []string{"f"}; content(t, l) != want {
		t.Error("one file a rank says something else than one file for all")
	}
}

// Ranks that write at the same time say what they say one after the other.
func TestSyntheticInterleaved(t *testing.T) {
	j := job(t, 4, 30)
	var logs [][]string
	for r := range j.Ranks() {
		logs = append(logs, strings.SplitAfter(j.Log(r), "\n"))
	}
	var b strings.Builder
	for i := 0; ; i++ {
		wrote := false
		for _, log := range logs {
			if i < len(log) {
				b.WriteString(log[i])
				wrote = true
			}
		}
		if !wrote {
			break
		}
	}
	want, got := read(t, j.Logs()), read(t, b.String())
	if got.NotUnderstood != 0 || len(got.Comms) != 1 {
		t.Fatalf("%d communicators, not understood %v", len(got.Comms), got.Unknown)
	}
	for _, l := range []*Log{want, got} { // connections come in another order
		slices.SortFunc(l.Connections, func(a, b Connection) int {
			return strings.Compare(fmt.Sprint(a.Channel, a.From, a.To, a.Dir), fmt.Sprint(b.Channel, b.From, b.To, b.Dir))
		})
	}
	if content(t, got) != content(t, want) {
		t.Error("lines of several ranks in turn say something else")
	}
}
