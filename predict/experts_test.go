package predict

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/stats"
	"busbar.dev/nccl"
	"busbar.dev/unit"
)

// exchange is a published point of an exchange of experts' tokens.
type exchange struct {
	Source    string
	Kind      string
	Mode, Op  string
	EP        int
	Nodes     int
	PerNode   int `json:"gpus_per_node"`
	GPU, NIC  string
	NICs      int `json:"nics_per_node"`
	Tokens    int `json:"tokens_per_rank"`
	Hidden    int
	TopK      int
	Experts   int
	Dtype     string
	Groups    int      `json:"top_groups"`
	Bandwidth float64  `json:"bandwidth_GBps"`
	Time      *float64 `json:"time_us"`
}

// predict asks for the point on a cluster as it describes it, and returns predicted over measured.
func (x *exchange) predict(t *testing.T) float64 {
	t.Helper()
	name, _, _ := strings.Cut(x.GPU, " (")
	s := hardware.Spec{
		GPU: name, Count: x.PerNode, NICs: x.PerNode, Port: 400 * unit.Gbps, Kind: cluster.InfiniBand, GDR: cluster.Yes,
	}
	switch {
	case strings.Contains(x.NIC, "EFA"):
		s.Kind = cluster.EFA
	case strings.Contains(x.NIC, "Thor"), strings.Contains(x.NIC, "Pollara"):
		s.Kind = cluster.RoCE
	}
	c, err := s.Cluster(x.Nodes)
	if err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Block(c, x.Nodes, x.PerNode)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(c, l, nccl.Newest, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	call := ExpertCall{
		Combine: x.Op == "combine", LowLatency: x.Mode == "low_latency", Tokens: x.Tokens, Hidden: x.Hidden, TopK: x.TopK,
		Experts: x.Experts, Width: 2, Groups: x.Groups,
	}
	if call.Experts == 0 {
		call.Experts = 256
		for call.Experts%x.EP != 0 {
			call.Experts++
		}
	}
	if !call.Combine && x.Dtype != "bf16" {
		call.Width = 1
	}
	r, err := p.Experts(call)
	if err != nil {
		t.Fatal(err)
	}
	if x.Time != nil {
		return float64(r.Time) / (*x.Time * 1e6)
	}
	return x.Bandwidth / float64(r.Bandwidth/unit.GBps)
}

// TestExperts holds exchanges of tokens to points of a publisher whose figures informed none of the constants but
// `proxied` (UCCL-EP's README: H200 and B200 over EFA, MI300X, MI355X), and where they are not at hand to what must be
// so.
func TestExperts(t *testing.T) {
	file := filepath.Join(os.Getenv("BUSBAR_SHARED"), "truth", "serving.jsonl")
	f, err := os.Open(file)
	if os.Getenv("BUSBAR_SHARED") == "" || err != nil {
		t.Skip("published points are not in the repository: BUSBAR_SHARED names their folder")
	}
	defer f.Close()
	var errs []float64
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var x exchange
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil || x.Kind != "moe" ||
			!strings.Contains(x.Source, "uccl-project") {
			continue
		}
		x.Nodes = max(x.Nodes, 1)
		errs = append(errs, math.Abs(x.predict(t)-1))
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	median, p90 := stats.Median(errs), stats.Quantile(errs, 0.9)
	t.Logf("%d points: median %.1f%%, 90th percentile %.1f%%", len(errs), 100*median, 100*p90)
	if len(errs) < 60 || median > 0.12 || p90 > 0.4 {
		t.Errorf("%d points, median %.1f%%, 90th percentile %.1f%%; expected 60 or more, within 12 and 40%%", len(errs),
			100*median, 100*p90)
	}
}

// TestExpertsOrder holds what must be so whatever the figures are.
func TestExpertsOrder(t *testing.T) {
	base := exchange{
		Mode: "normal", Op: "dispatch", EP: 16, Nodes: 2, PerNode: 8, GPU: "H100", Tokens: 4096, Hidden: 7168, TopK: 8,
		Experts: 256, Dtype: "fp8", Bandwidth: 1,
	}
	time := func(change func(*exchange)) float64 {
		x := base
		one := 1.0
		x.Time = &one
		change(&x)
		return x.predict(t)
	}
	is := time(func(*exchange) {})
	for name, other := range map[string]func(*exchange){
		"more tokens":     func(x *exchange) { x.Tokens *= 2 },
		"wider elements":  func(x *exchange) { x.Dtype = "bf16" },
		"more nodes":      func(x *exchange) { x.Nodes, x.EP = 4, 32 },
		"more experts":    func(x *exchange) { x.TopK = 12 },
		"straight to all": func(x *exchange) { x.Mode = "low_latency" },
	} {
		if got := time(other); got <= is {
			t.Errorf("%s: %.0f us, not more than %.0f", name, got, is)
		}
	}
	if got := time(func(x *exchange) { x.Groups, x.Nodes, x.EP = 1, 4, 32 }); got >= time(func(x *exchange) {
		x.Nodes,
			x.EP = 4, 32
	}) {
		t.Errorf("routing to one node: %.0f us, not less than to all", got)
	}
}
