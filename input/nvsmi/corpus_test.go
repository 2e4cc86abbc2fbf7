package nvsmi

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/corpus"
)

// readSample reads a real sample that must hold one node.
func readSample(t *testing.T, file string, match func([]byte) bool,
	read readFunc,
) (*cluster.Fragment, *cluster.NodeType) {
	t.Helper()
	data := corpus.Open(t, file)
	if !match(data) {
		t.Fatal("not recognised")
	}
	f, err := read(file, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Types) != 1 || len(f.Hosts) != 1 {
		t.Fatalf("%d types, %d hosts; want one of each", len(f.Types), len(f.Hosts))
	}
	if err := f.Types[0].Check(); err != nil {
		t.Fatal(err)
	}
	return f, f.Types[0]
}

// Every matrix of the corpus, held to the facts that were counted in it.
func TestCorpusTopo(t *testing.T) {
	seen := 0
	for _, e := range corpus.Index(t, "nvidia-smi topo -m") {
		seen++
		t.Run(e.File, func(t *testing.T) {
			f, node := readSample(t, e.File, matchTopo, readTopoOnly)
			for _, w := range f.Warnings {
				if !strings.Contains(w.Text, "affinity") && !strings.Contains(w.Text, "no row for") {
					t.Errorf("warned: %v", w)
				}
			}
			checkCounts(t, e, node)
			checkTails(t, e, node)
			checkClosest(t, e, node)
			checkLegend(t, e, node)
			checkHeader(t, e)
			checkTreeSays(t, node)
			if matchP2P(corpus.Open(t, e.File)) {
				t.Error("taken for a matrix of peer access too")
			}
			must, ok := mustFind[e.File]
			if !ok {
				t.Fatalf("no assertion for %q", e.MustFind)
			}
			must(t, node)
		})
	}
	if seen != 20 {
		t.Errorf("%d samples; the index had 20 when this was written", seen)
	}
}

func checkCounts(t *testing.T, e corpus.Entry, node *cluster.NodeType) {
	t.Helper()
	if got, want := node.Count(cluster.GPU), int(e.Facts["gpus"].(float64)); got != want {
		t.Errorf("%d GPUs; want %d", got, want)
	}
	if got, want := node.Count(cluster.NIC), int(e.Facts["nics"].(float64)); got != want {
		t.Errorf("%d NICs; want %d", got, want)
	}
	m := node.Matrix()
	got := map[string]int{}
	for i := range node.Count(cluster.GPU) {
		for j := range i {
			got[m.Class[i][j]]++
		}
	}
	want := map[string]int{}
	for k, v := range e.Facts["gpu_pairs"].(map[string]any) {
		want[strings.Replace(k, "SOC", "SYS", 1)] += int(v.(float64))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("classes %v; want %v", got, want)
	}
}

func checkTails(t *testing.T, e corpus.Entry, node *cluster.NodeType) {
	t.Helper()
	hasNUMA := e.Facts["has_numa_column"].(bool)
	for name, v := range e.Facts["trailing_cells"].(map[string]any) {
		g := node.Devices[node.ByName(strings.ToLower(name))].GPU
		cells := v.([]any)
		if g.Cores != cells[0] {
			t.Errorf("%s: cores %q; want %q", name, g.Cores, cells[0])
		}
		want := "unknown"
		if hasNUMA && cells[1] != "N/A" {
			want = fmt.Sprint(cells[1])
		}
		got := "unknown"
		if g.NUMA.Known() {
			got = fmt.Sprint(g.NUMA.Value)
		}
		if got != want {
			t.Errorf("%s: NUMA %s; want %s", name, got, want)
		}
	}
}

// nicName is the column that a NIC had.
func nicName(d *cluster.Device, numbered bool) string {
	if numbered {
		return fmt.Sprintf("NIC%d", d.Index)
	}
	return d.Label
}

func checkClosest(t *testing.T, e corpus.Entry, node *cluster.NodeType) {
	t.Helper()
	closest, _ := e.Facts["closest_nic"].(map[string]any)
	_, legend := e.Facts["nic_legend"]
	for name, v := range closest {
		want := v.(map[string]any)
		var near []int
		var class cluster.Class
		for _, n := range node.Nearest() {
			if node.Devices[n.GPU].Name == strings.ToLower(name) {
				near, class = n.NICs, n.Class
			}
		}
		var names []any
		for _, i := range near {
			names = append(names, nicName(&node.Devices[i], legend))
		}
		kind := strings.Replace(fmt.Sprint(want["kind"]), "SOC", "SYS", 1)
		if class.String() != kind || fmt.Sprint(names) != fmt.Sprint(want["nics"]) {
			t.Errorf("%s: nearest %v %v; want %v %v", name, class, names, kind, want["nics"])
		}
	}
}

func checkLegend(t *testing.T, e corpus.Entry, node *cluster.NodeType) {
	t.Helper()
	legend, _ := e.Facts["nic_legend"].(map[string]any)
	for name, label := range legend {
		i := node.ByName(strings.ToLower(name))
		if i < 0 || node.Devices[i].Label != label {
			t.Errorf("%s is not labelled %v", name, label)
		}
	}
}

func checkHeader(t *testing.T, e corpus.Entry) {
	t.Helper()
	tables, err := scan("", bytes.NewReader(corpus.Open(t, e.File)))
	if err != nil || len(tables) != 1 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	m := tables[0]
	if fmt.Sprint(m.Cols) != fmt.Sprint(e.Facts["columns"]) {
		t.Errorf("columns %v; want %v", m.Cols, e.Facts["columns"])
	}
	want := 1 // every driver prints the cores
	for _, key := range []string{"has_numa_column", "has_gpu_numa_id"} {
		if e.Facts[key] == true {
			want++
		}
	}
	if m.tails != want {
		t.Errorf("%d affinity columns; want %d", m.tails, want)
	}
	if rows, want := m.Count(), int(e.Facts["rows_present"].(float64)); rows != want {
		t.Errorf("%d rows; want %d", rows, want)
	}
}

// The tree must give back the matrix that was read.
func checkTreeSays(t *testing.T, node *cluster.NodeType) {
	t.Helper()
	m := node.Matrix()
	for i := range m.Class {
		for j := range m.Class[i] {
			if said := node.Said.Class[i][j]; said != "?" && said != m.Class[i][j] {
				t.Errorf("%s–%s: the tree says %s, the matrix %s", m.Names[i], m.Names[j], m.Class[i][j], said)
			}
		}
	}
}

// Every matrix of peer access.
func TestCorpusP2P(t *testing.T) {
	seen := 0
	for _, e := range corpus.Index(t, "nvidia-smi topo -p2p") {
		seen++
		t.Run(e.File, func(t *testing.T) {
			f, node := readSample(t, e.File, matchP2P, readP2POnly)
			if len(f.Warnings) > 0 {
				t.Errorf("warned: %v", f.Warnings)
			}
			if got, want := node.Count(cluster.GPU), int(e.Facts["gpus"].(float64)); got != want {
				t.Errorf("%d GPUs; want %d", got, want)
			}
			got := map[string]int{}
			for _, p := range node.Pairs {
				word, _, _ := strings.Cut(p.Why, ":")
				if p.P2P == cluster.Yes {
					word = "OK"
				}
				got[word]++
			}
			for word, n := range e.Facts["gpu_pairs"].(map[string]any) {
				if got[word] != 2*int(n.(float64)) {
					t.Errorf("%d ordered pairs say %s; want %d", got[word], word, 2*int(n.(float64)))
				}
			}
			if matchTopo(corpus.Open(t, e.File)) {
				t.Error("taken for a matrix of path classes too")
			}
			if strings.Contains(e.MustFind, "not supported by chipset") &&
				!strings.Contains(node.Pairs[0].Why, "chipset not supported") {
				t.Errorf("why: %q", node.Pairs[0].Why)
			}
		})
	}
	if seen != 2 {
		t.Errorf("%d samples; the index had 2 when this was written", seen)
	}
}
