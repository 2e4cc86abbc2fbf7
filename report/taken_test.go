package report

import (
	"io"
	"slices"
	"strings"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/engine/bench/gpu"
	"busbar.dev/internal/texttab"
	"busbar.dev/measure"
	"busbar.dev/query"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// taker takes tables, as a writer of CSV does.
type taker struct {
	io.Writer
	heads []string
	rows  int
}

func (t *taker) Table(tab *texttab.Table) (bool, error) {
	t.heads = append(t.heads, tab.Heads()...)
	t.rows += tab.Len()
	return true, nil
}

// TestTablesAreTaken: the reports of what a test of the command cannot measure give their tables to whoever takes them.
func TestTablesAreTaken(t *testing.T) {
	s := &result.Sweep{
		Op: coll.AllReduce, Dtype: "float", Ranks: 4, Env: map[string]string{"NCCL_ALGO": "ring"},
		Points: []result.Point{{Size: unit.MiB, Algo: "ring", Out: result.Time(100)}},
	}
	for _, c := range []struct {
		name  string
		print func(io.Writer) error
		head  string
	}{
		{"order collective", func(w io.Writer) error {
			return Print(w, TextOptions{}, orderFigures,
				&query.OrderDoc{Results: result.Sweeps{s}})
		}, "busbw"},
		{"bench gpu", func(w io.Writer) error {
			return Print(w, TextOptions{}, BenchGPU,
				&query.BenchGPUDoc{Results: gpu.Results{Settings: 1, Sweeps: result.Sweeps{s}}})
		}, "in-place time (us)"},
		{"bench rdma", func(w io.Writer) error {
			return Print(w, TextOptions{}, BenchRDMA, &measure.RDMA{
				Rails: make([]measure.Rail, 1), Pairs: make([]measure.RailPair, 100),
			})
		}, "failed"},
		{"bench gpu node", func(w io.Writer) error {
			return Print(w, TextOptions{}, BenchGPUNode, &measure.GPUNode{
				GPUs:    []measure.GPUDevice{{Products: []measure.GPUProduct{{M: 8, N: 8, K: 8}}}},
				Peers:   []measure.GPUPeer{{From: 0, To: 1}},
				Results: result.Sweeps{s},
			})
		}, "TFLOPS"},
	} {
		got := &taker{Writer: io.Discard}
		if err := c.print(got); err != nil || got.rows == 0 || !slices.Contains(got.heads, c.head) {
			t.Errorf("%s: %d rows, columns %s, %v", c.name, got.rows, strings.Join(got.heads, ", "), err)
		}
	}
}
