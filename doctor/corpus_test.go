package doctor

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbar.dev/finding"
	"busbar.dev/internal/test/corpus"
)

// sick are samples in which something is wrong, with what; a finding above a note
// is right there.
var sick = map[string]string{
	"nccl-log/2.25.1-b200x8-dell.log":               "ends in ncclInvalidUsage",
	"nccl-log/2.27.7-2rank-nvlink-fault.log":        "a simulated NVLink fault",
	"nccl-log/2.30.7-gb200-cuda719-timestamped.log": "CUDA error 719",
	"nccl-log/bootstrap-no-interface-flattened.log": "no socket interface",
	"nccl-log/connection-refused-2.7.8.log":         "connection refused",
	"nccl-log/duplicate-gpu-notes.md":               "two ranks on a GPU",
	"nccl-log/ib-completion-error12.log":            "completion error 12",
	"nccl-log/nccl-userguide-networking.rst":        "documents failures of verbs",
	"nccl-log/nccl-userguide-runtime.rst":           "documents a full /dev/shm",
	"nccl-topo-xml/timez-nccl_topo_dump.xml":        "NVLinks lost in one direction",
	"nccl-topo-xml/timez-topo_fail.xml":             "NVLinks lost in one direction",
	"ib/sim-ibqueryerrors.txt":                      "injected symbol errors",
	"ib/sim-perfquery.txt":                          "injected symbol errors",
	"ib/sim-ft-hdr.net":                             "links slower than their ports",
	"ib/sim-iblinkinfo.txt":                         "links slower than their ports",
	"ib/sim-iblinkinfo-l.txt":                       "links slower than their ports",
	"ib/sim-ibnetdiscover.txt":                      "links slower than their ports",
	"live/ib-demo.sh":                               "a script that injects errors",
}

// Every other sample gives no finding above a note.
func TestHealthyCorpus(t *testing.T) {
	root := filepath.Join(corpus.Dir(t), "corpus")
	healthy, notes := 0, 0
	words := vocabulary()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, root+"/")
		if err != nil || d.IsDir() || strings.HasSuffix(name, ".jsonl") || !strings.Contains(name, "/") {
			return err
		}
		if strings.HasPrefix(name, "live-jobs/") {
			return nil // jobs with a fault planted in each
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		r := words.NewReader()
		if err := r.Read(name, bytes.NewReader(data)); err != nil {
			t.Logf("%s is not read: %v", name, err)
			return nil
		}
		set, err := r.Set()
		if err != nil {
			return err
		}
		rep := Examine(set)
		if finding.Serious(rep.Findings) && sick[name] == "" {
			t.Errorf("%s: %v", name, ids(rep))
		}
		if sick[name] == "" {
			healthy++
			notes += len(rep.Findings)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d healthy samples, nothing above a note in any, %d notes", healthy, notes)
}

// The published faults: the cause is among the first two findings of most.
func TestTrials(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(corpus.Dir(t), "truth", "doctor-cases.jsonl"))
	if err != nil {
		t.Skip(err)
	}
	tryAll(t, data, 0.85)
}

// Faults in our own words, after threads that are not among the published ones:
// they were written before the rules knew their wording, and hold the rules to
// what they learned.
func TestOwnTrials(t *testing.T) {
	data, err := os.ReadFile("testdata/trials.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	tryAll(t, data, 0.95)
}

func tryAll(t *testing.T, data []byte, least float64) {
	t.Helper()
	if !MatchTrials(data) {
		t.Fatal("not recognised")
	}
	list, err := ReadTrials("trials", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	decidable, hits := 0, 0
	words := vocabulary()
	for i := range list {
		o, err := Try(words, &list[i])
		if err != nil {
			t.Fatal(err)
		}
		if wantedRows()[list[i].Category].Findings == nil {
			t.Errorf("%s: category %s is new", list[i].ID, list[i].Category)
		}
		if o.Undecidable != "" {
			continue
		}
		decidable++
		if o.Hit {
			hits++
		} else {
			t.Logf("miss: %s (%s): %v", list[i].ID, list[i].Category, o.Said)
		}
	}
	t.Logf("%d cases, %d decidable, %d hits", len(list), decidable, hits)
	if float64(hits) < least*float64(decidable) {
		t.Errorf("%d of %d; want %.0f%%", hits, decidable, 100*least)
	}
}
