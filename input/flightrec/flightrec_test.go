package flightrec

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/internal/test/synth/livejob"
)

func TestSynthetic(t *testing.T) {
	j := &livejob.Job{Ranks: 8, TP: 2, Steps: 4, Fault: livejob.Late, Culprit: 5}
	s := NewSet()
	for r := range j.Ranks {
		if err := s.Add(fmt.Sprintf("dir/nccl_trace_rank_%d", r), j.Dump(r)); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.Groups) != 7 || len(s.Dumps) != 8 {
		t.Fatalf("%d groups, %d dumps", len(s.Groups), len(s.Dumps))
	}
	for r, d := range s.Dumps {
		want := j.Entries(r)
		if d.Rank != r || len(d.Entries) != len(want) {
			t.Fatalf("rank %d: %+v", r, d)
		}
		for i, e := range d.Entries {
			w := want[i]
			if int(e.Seq) != w.Seq || s.Sigs[e.Sig].Op != w.Op || e.State.String() != w.State ||
				s.Groups[e.Group].Name != fmt.Sprint(w.Group) || e.Created != w.Created || s.Sigs[e.Sig].In != int64(w.In) {
				t.Fatalf("rank %d: %+v (%+v), want %+v", r, e, s.Sigs[e.Sig], w)
			}
			if e.State == Completed && e.Frame != 0 ||
				e.State != Completed && s.Frames[e.Frame] != "train_step at /job/train.py:101" {
				t.Fatalf("frame %q", s.Frames[e.Frame])
			}
		}
	}
}

const jsonDumpText = `{"comm_lib_version":"2.28.9","entries":[{"collective_seq_id":17,"input_dtypes":["Float"],"input_sizes":[[262144]],"is_p2p":false,"op_id":17,"output_dtypes":["Float"],"output_sizes":[[262144]],"p2p_seq_id":0,"pg_id":2,"process_group":["3","dp"],"profiling_name":"nccl:all_reduce","record_id":42,"retired":false,"state":"scheduled","thread_id":"139852122126144","time_created_ns":1794796498281661143,"time_discovered_completed_ns":0,"time_discovered_started_ns":0,"timeout_ms":25000}],"nccl_comm_state":{},"pg_config":{"0":{"desc":"default_pg","name":"0","ranks":"[0, 1, 2, 3]"},"3":{"desc":"dp","name":"3","ranks":"[0, 2]"}},"pg_status":{"2":{"last_completed_collective":"16","last_enqueued_collective":"18","last_started_collective":"-1"}},"version":"2.10"}`

func TestJSON(t *testing.T) {
	s := NewSet()
	if err := s.Add("active.2.json", []byte(jsonDumpText)); err != nil {
		t.Fatal(err)
	}
	d := s.Dumps[0]
	if d.Rank != 2 || len(d.Entries) != 1 || d.Thread != "139852122126144" {
		t.Fatalf("%+v", d)
	}
	e := d.Entries[0]
	g := s.Groups[e.Group]
	if g.Desc != "dp" || len(g.Ranks) != 2 || d.Last[e.Group] != 18 || e.State != Scheduled ||
		s.Sigs[e.Sig].Sizes != "[262144] -> [262144]" {
		t.Fatalf("%+v %+v %+v", e, g, d.Last)
	}
}

// TestSeveralDumps: a second dump in a file is refused, in either form, instead of left out.
func TestSeveralDumps(t *testing.T) {
	j := &livejob.Job{Ranks: 2, Steps: 1, TP: 1}
	for _, twice := range []string{
		jsonDumpText + "\n" + jsonDumpText, jsonDumpText + jsonDumpText, string(j.Dump(0)) + string(j.Dump(1)),
	} {
		s := NewSet()
		if err := s.Add("all.json", []byte(twice)); err == nil || !strings.Contains(err.Error(), "one rank's dump") {
			t.Errorf("%d dumps, %v", len(s.Dumps), err)
		}
	}
	if err := NewSet().Add("active.2.json", []byte(jsonDumpText+"\n\n")); err != nil {
		t.Error(err)
	}
}

func TestRankOf(t *testing.T) {
	for name, want := range map[string]int{
		"nccl_trace_rank_12": 12, "a/rank3.json": 3, "stderr.7.log": 7, "node3-pid4083.log": -1, "attempt_0/5/stderr.log": 5,
		"x/trace":               -1,
		"fr_http.active.0.json": 0, "slurm-99999999.out": -1, "job-rank-4.err": 4, "node7.log": -1,
		"a1.b2.log": 1, "RANK_7.x": 7, "rank/out": -1, "pid_12": -1, "host-3.txt": -1, `d\5\log`: 5, "x.py": -1, "12": 12,
		"ranks.3.log": 3,
	} {
		if got := RankOf(name); got != want {
			t.Errorf("%s: rank %d, want %d", name, got, want)
		}
	}
}

func TestPickleThatIsNoDump(t *testing.T) {
	s := NewSet()
	for _, p := range []string{
		"\x80\x02}.", "\x80\x02](K\x01e.", "\x80\x02}(X\x07\x00\x00\x00entries](K\x01eu.",
		"\x80\x02cposix\nsystem\nX\x02\x00\x00\x00id\x85R.",
	} {
		if err := s.Add("x", []byte(p)); err == nil {
			t.Errorf("%q was taken for a dump", p)
		}
	}
}

func FuzzAdd(f *testing.F) {
	j := &livejob.Job{Ranks: 4, TP: 2, Steps: 2, Fault: livejob.Order, Culprit: 1}
	f.Add(j.Dump(1))
	f.Add([]byte(jsonDumpText))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := NewSet()
		if err := s.Add("fuzz", data); err != nil {
			return
		}
		for _, e := range s.Dumps[0].Entries {
			_, _, _ = s.Groups[e.Group], s.Sigs[e.Sig], s.Frames[e.Frame]
			_ = e.State.String()
		}
	})
}

// BenchmarkMerge4096 reads the dumps of a job of 4,096 ranks.
func BenchmarkMerge4096(b *testing.B) {
	j := &livejob.Job{Ranks: 4096, TP: 8, Steps: 20, Fault: livejob.Late, Culprit: 1234}
	var dumps [][]byte
	size := int64(0)
	for r := range 256 { // the rest repeat them: what is measured is the reading
		dumps = append(dumps, j.Dump(r))
		size += int64(len(dumps[r]))
	}
	b.SetBytes(size * 16)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		s := NewSet()
		for r := range j.Ranks {
			if err := s.Add(fmt.Sprintf("nccl_trace_rank_%d", r), dumps[r%256]); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// A dump as PyTorch's documents print it has a tuple of Python.
func TestTuple(t *testing.T) {
	s := NewSet()
	err := s.Add("rank_1.json",
		[]byte(`{"version": "2.5", "pg_config": {"0": {"name": "0", "ranks": "[0, 1]"}}, "entries": [
		{"process_group": ("0", "default_pg"), "collective_seq_id": 4, "profiling_name": "nccl:all_reduce", "state": "started"}]}`))
	if err != nil || len(s.Dumps[0].Entries) != 1 || s.Dumps[0].Entries[0].Seq != 4 {
		t.Errorf("%v: %+v", err, s)
	}
}
