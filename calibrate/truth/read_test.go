package truth

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbar.dev/internal/test/corpus"
)

// FuzzRead feeds any text to the reader, and what it accepts to everything that
// works on a sweep.
func FuzzRead(f *testing.F) {
	f.Add(`{"id":"a","collective":"all_reduce","nodes":1,"gpus_per_node":2,"n_ranks":2,"gpu":"H100","sizes_bytes":[8],"time_us":[9]}`)
	f.Add(`{"id":"a","collective":"alltoall","nodes":2,"gpus_per_node":8,"gpu":"A100 (p4d.24xlarge)","nics_per_node":4,"nic_gbps":100,"fabric":"EFA","sizes_bytes":[8,1e9],"busbw_GBps":[1,null]}`)
	f.Add(`{"id":"a","model":{},"measured":{}}`)
	f.Add("{}\n\n[]")
	f.Fuzz(func(t *testing.T, text string) {
		sweeps, _, err := Read("f", strings.NewReader(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("an error that does not say where: %v", err)
			}
			return
		}
		for _, s := range sweeps {
			machineOf(s)
			for _, r := range s.Rows() {
				if r.Time.Mean <= 0 {
					t.Errorf("a time of %v", r.Time.Mean)
				}
			}
			if s.Nodes*s.PerNode <= 64 {
				Prepare(s)
			}
		}
	})
}

// TestPublished reads every published file: collectives are sweeps, everything
// else is left with a reason.
func TestPublished(t *testing.T) {
	for name, want := range map[string][2]int{
		"collectives.jsonl": {189, 0}, "training.jsonl": {0, 627}, "doctor-cases.jsonl": {0, 107},
	} {
		f, err := os.Open(filepath.Join(corpus.Dir(t), "truth", name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		sweeps, left, err := Read(name, f)
		if err != nil {
			t.Fatal(err)
		}
		if len(sweeps) != want[0] || len(left) != want[1] {
			t.Errorf("%s: %d sweeps, %d left; want %v", name, len(sweeps), len(left), want)
		}
		for _, l := range left {
			if l.ID == "" || l.Reason == "" {
				t.Errorf("%s: left without a word: %+v", name, l)
			}
		}
	}
}

// TestAssumed tells what had to be taken for granted: a fabric and a release that nobody knows.
func TestAssumed(t *testing.T) {
	line := "\ufeff" + `{"id":"a","collective":"all_reduce","nodes":2,"gpus_per_node":8,"gpu":"H100","nics_per_node":8,"nic_gbps":400,"fabric":"marble","nccl_version":"2.4.8","sizes_bytes":[1048576],"time_us":[90]}`
	sweeps, _, err := Read("f", strings.NewReader(line))
	if err != nil || len(sweeps) != 1 {
		t.Fatalf("a file with a byte order mark: %d sweeps, %v", len(sweeps), err)
	}
	c, err := Prepare(sweeps[0])
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(c.Assumed, "\n")
	for _, want := range []string{
		`fabric "marble" is none that is known: taken as InfiniBand`,
		`the rules of NCCL 2.8.3 for 2.4.8, which are not known`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("assumed %q, want %q in it", all, want)
		}
	}
}
