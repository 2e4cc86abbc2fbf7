package doctor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"busbar.dev/finding"
)

// ran is a log of RCCL in which all ranks of a communicator were made, with its own words about them.
func ran(ranks int) string {
	var b strings.Builder
	for r := range ranks {
		pre := fmt.Sprintf("amd-07:%d:%d [%d] NCCL INFO ", 400+r, 1400+r, r)
		comm := fmt.Sprintf("comm 0x3cf9%02x rank %d nranks %d cudaDev %d busId %x000 commId 0xea12d82f079d05%02x", r, r,
			ranks,
			r, 16*r+5, 7)
		fmt.Fprintf(&b, "%s%s - Init START\n", pre, comm)
		fmt.Fprintf(&b, "%s%s localSize 384 used %d bytes on core %d - Init COMPLETE\n", pre, comm, 667533643+r, 48+r)
	}
	return b.String() + "# Avg bus bandwidth    : 317.2\n"
}

// What real files were read wrongly for, as made-up texts of the same shape: none of these is a fault.
func TestMisread(t *testing.T) {
	for name, c := range map[string]struct{ text, never string }{
		"RCCL's own Init COMPLETE": {ran(8), "init-incomplete"},
		"UCX tries a unix socket": {"[1708608201.047950] [n1:3348177:0]          vfs_sock.c:108  UCX  DEBUG failed to " +
			"connect to " +
			"unix socket /tmp/ucx.sock: Connection refused\nn1:12:34 [0] NCCL INFO Using network IB\n", "connect-failed"},
		"a document about errors": {"# Guide\n\n## Errors\n\n## More\n\n" +
			strings.Repeat("This sentence is about the network and "+
				"what it does when it is slow.\n", 60) + "When a peer is gone, you see `NCCL WARN Call to ibv_reg_mr failed with " +
			"error Cannot allocate memory` in the log.\n", "memlock"},
	} {
		if r := examine(t, c.text); slices.Contains(ids(r), c.never) {
			t.Errorf("%s: %v", name, ids(r))
		}
	}
}

// A program that ends by what it raised is at fault though no line is marked with its rank; what it caught or what is
// printed at the end of every run is none.
func TestRaised(t *testing.T) {
	const trace = "Traceback (most recent call last):\n  File \"/home/u/train.py\", line 31, in <module>\n    main()\n" +
		"KeyError: 'tokens'\n"
	steps := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "step %d loss 2.3 tok/s 831\n", i)
		}
		return b.String()
	}
	for name, c := range map[string]struct{ text, says string }{
		"at the end": {
			steps(9) + trace + "wandb: train/loss 2.3\nwandb: You can sync this run\nreal 0m56.895s\n", "raised KeyError",
		},
		"a program that never began": {
			"0:   File \"/home/u/train.py\", line 7\n0:     grouped (4\n0:     ^^^^\n0: SyntaxError: invalid syntax\n",
			"Rank 0 raised SyntaxError",
		},
		"DeepSpeed's launcher": {
			steps(9) + "n1: [2026-01-19 08:57:32,304] [ERROR] [launch.py:321:sigkill_handler] ['python'] exits with return " +
				"code = 1\n", "of unknown rank ended with exit code 1",
		},
		"a watchdog's line that is cut": {
			steps(9) + "[rank5]:[E602 11:17:52.18 ProcessGroupNCCL.cpp:632] [Rank 5] Watchdog caught collective operati",
			"timed out",
		},
		"a GPU that nvidia-smi cannot ask": {
			"|   1  ERR!                           On  | 00000000:2A:00.0 Off |                 ERR! |\n", "prints ERR!",
		},
		"raised while another was handled": {
			trace + "\nDuring handling of the above exception, another exception occurred:\n\n" +
				strings.Replace(trace, "Key", "Import", 1), "raised ImportError",
		},
		"tasks of Slurm": {"srun: error: gpu-01: tasks 0-3: Exited with exit code 127\n", "ended with exit code 127"},
		"killed": {
			steps(9) + "run.sh: line 12:  4711 Killed                  python train.py\n", "killed by SIGKILL",
		},
		"killed by Slurm": {
			steps(9) + "slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0. Some of the step tasks have been OOM " +
				"Killed.\nsrun: error: gpu-07: task 3: Out Of Memory\n", "out-of-memory",
		},
		"caught":                           {trace + steps(200), ""},
		"caught, and the training goes on": {trace + steps(4) + "done\n", ""},
		"behind a bar":                     {"  2%|▏ | 40/1752 [01:52<1:22:56,  2.80s/it]" + trace, "raised KeyError"},
		"loguru": {
			"Traceback (most recent call last):\n\n> File \"train.py\", line 31, in <module>\n    main()\n    └ <function " +
				"x>\n\n" +
				"ValueError: bad\n", "raised ValueError",
		},
		"Rich": {
			"╭────── Traceback (most recent call last) ──────╮\n│ /home/u/train.py:31 in " +
				"<module>  │\n╰──────╯\n" +
				"KeyError: 'tokens'\n", "raised KeyError",
		},
		"Horovod": {
			"[2026-10-20: W stall_inspector.cc:107] One or more tensors were submitted to be reduced by subset of ranks and " +
				"are " +
				"waiting for remainder of ranks for more than 60 seconds.\n", "timed out",
		},
		"MPI_ABORT":         {steps(9) + "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD\n", "Rank 3 ended"},
		"at a run's end":    {steps(9) + "Exception ignored in: <function _x at 0x7f>\n" + trace, ""},
		"the first program": {steps(9), ""},
	} {
		r := examine(t, c.text)
		if text := fmt.Sprint(r.Findings); c.says == "" && finding.Serious(r.Findings) || !strings.Contains(text, c.says) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// What libraries print at a start is nobody's description of a fault.
func TestWarningsOfLibraries(t *testing.T) {
	r := examine(t, "Warning: The cache directory is on a shared file system. If you experience slowdowns or hanging "+
		"when the "+
		"program exits, it is recommended to set another.\nstep 1 loss 2.3 tok/s 831\nstep 2 loss 2.3 tok/s 831\n"+
		"step 3 loss 2.3 tok/s 831\n")
	if r.Described || !r.Healthy {
		t.Errorf("%+v", r)
	}
}

// A run that asked for SHARP and does not have it is not healthy, and neither is one whose warnings nobody knows.
func TestUnreadWarnings(t *testing.T) {
	sharp := "n1:12:34 [7] sharp_plugin.c:320 NCCL WARN NET/IB : SHARP coll init error: Cannot create SHARP job(-11)\n" +
		"n1:12:34 [0] transport.cc:323 NCCL WARN Cannot initialize CollNet, using point-to-point network instead\n"
	if r := examine(t, sharp); len(r.Findings) != 1 || r.Findings[0].ID != "sharp" || r.Healthy || r.Unread != 0 {
		t.Errorf("%v, healthy %v, %d unread", ids(r), r.Healthy, r.Unread)
	}
	r := examine(t, "n1:12:34 [7] some.cc:320 NCCL WARN The flux of the capacitor is at -11 parsecs\n")
	if r.Healthy || r.Unread != 1 || !strings.Contains(r.summary(), "1 warning of NCCL that is not known") {
		t.Errorf("healthy %v, %d unread: %s", r.Healthy, r.Unread, r.summary())
	}
	r = examine(t, "n1:12:34 [7] proxy.cc:1702 NCCL WARN [Service thread] Accept failed Resource temporarily "+
		"unavailable\n")
	if len(r.Findings) != 0 || r.Unread != 0 {
		t.Errorf("a warning that says nothing: %v, %d unread", ids(r), r.Unread)
	}
}

// A training log gives its rate, from nothing else than its lines.
func TestTrained(t *testing.T) {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "step %d loss 2.3 tok/s %d\n", 10*i, 831+i%3)
	}
	r := examine(t, b.String())
	if r.Blank || r.Training == nil || r.Training.Tokens != 832 || !slices.Contains(ids(r), "training-rate") ||
		!r.Healthy {
		t.Errorf("%v %+v", ids(r), r.Training)
	}
	if r := examine(t, "INFO: Avg generation throughput: 30.1 tokens/s\n"); r.Training != nil {
		t.Errorf("%+v", r.Training)
	}
}

// Logs of a JSON object a line.
func TestTrainedInJSON(t *testing.T) {
	var b strings.Builder
	for i := range 9 {
		fmt.
			Fprintf(&b, `{"step": %d, "loss": 2.31, "lr": 3e-05, "tokens_per_sec": 45000.0, "timestamp": "2025-10-20T18:22Z"}`+
				"\n",
				10*i)
	}
	if r := examine(t, b.String()); r.Training == nil || r.Training.Tokens != 45000 || r.Training.Last != 80 {
		t.Errorf("%v %+v", ids(r), r.Training)
	}
}

// The same texts give the same document every time.
func TestSameReport(t *testing.T) {
	started := strings.Builder{}
	for r := range 7 {
		fmt.Fprintf(&started, "n1:%d:%d [%d] NCCL INFO ncclCommInitRank comm 0x5%d rank %d nranks 8 cudaDev %d nvmlDev %d "+
			"busId "+
			"%d000 commId 0xabc - Init START\n", 100+r, 200+r, r, r, r, r, r, r+1)
	}
	for name, text := range map[string]string{"a rank that never came": started.String(), "a run that ended": ran(8)} {
		var first string
		for i := range 8 {
			doc, err := json.Marshal(Examine(read(t, text)))
			if err != nil {
				t.Fatal(err)
			}
			if first == "" {
				first = string(doc)
			}
			if string(doc) != first {
				t.Fatalf("%s: the %d. document differs\n%s\n%s", name, i+1, first, doc)
			}
		}
	}
}

// Every harmless warning is read, and has its source.
func TestHarmlessWarnings(t *testing.T) {
	s := read(t, "n1:12:34 [0] NCCL WARN MSCCL++: Cannot enable MSCCL++; environment is not MSCCL compatible\n")
	if o := s.First("known-warning"); o == nil || o.Arg(0) == "" {
		t.Errorf("%+v", o)
	}
}

// Where nothing was judged but words, nothing is called healthy; a guess of less than one percent is not printed.
func TestNothingJudged(t *testing.T) {
	if r := examine(t, "GLOBAL_RANK: 1, MEMBER: 2/16\nInitializing distributed\n"); r.Healthy {
		t.Errorf("%+v", r)
	}
	if out := textOf(t, examine(t, "the GPU is not there in the container\n")); strings.Contains(out, " 0% sure") {
		t.Error(out)
	}
}
