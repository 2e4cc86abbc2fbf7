package nccl_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/input/ncclxml"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/internal/test/ncclplan"
	"busbar.dev/nccl"
)

// TestJobLogs plans for the communicators of recorded PyTorch jobs, healthy and broken ones, one rank a node, and
// compares rings, trees and channels of every communicator, and tables and choices where a log has them. The machine is
// that of TestRealRuns.
func TestJobLogs(t *testing.T) {
	root := filepath.Join(corpus.Dir(t), "corpus")
	dirs, err := filepath.Glob(filepath.Join(root, "live-jobs", "*"))
	if err != nil || len(dirs) == 0 {
		t.Skip("no recorded jobs")
	}
	topology, err := os.ReadFile(filepath.Join(root, "nccl-real", "n4", "topo.xml"))
	if err != nil {
		t.Skip(err)
	}
	frag, err := ncclxml.Read("topo.xml", bytes.NewReader(topology))
	if err != nil {
		t.Fatal(err)
	}
	plans := map[int]*nccl.Plan{}
	total := map[string]int{}
	for _, dir := range dirs {
		files, _ := filepath.Glob(filepath.Join(dir, "nccl.*.log"))
		var sources []ncclplan.Source
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, ncclplan.Source{Name: f, Data: data})
		}
		if len(sources) == 0 {
			continue
		}
		log := ncclplan.Read(t, sources...)
		total["jobs"]++
		for i := range log.Comms {
			comm := &log.Comms[i]
			if comm.NRanks == 0 {
				continue
			}
			if plans[comm.NRanks] == nil {
				c := &cluster.Cluster{Types: frag.Types, Hosts: hosts(frag.Types[0], comm.NRanks).Hosts}
				plans[comm.NRanks] = planOn(t, c, comm.NRanks, 1, "2.28.9", nil)
			}
			total["communicators"]++
			compare(t, filepath.Base(dir), plans[comm.NRanks], log, comm, total)
		}
	}
	if total["rings"] == 0 {
		t.Error("nothing was compared")
	}
	t.Log(total)
}
