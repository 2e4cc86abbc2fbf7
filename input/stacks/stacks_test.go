package stacks

import (
	"strings"
	"testing"
)

const spied = `Process 1234: python3 train.py
Python v3.12.3 (/usr/bin/python3.12)

Thread 1234 (active): "MainThread"
    write (torch/serialization.py:700)
    save (torch/serialization.py:850)
    save_everything (train.py:72)
    <module> (train.py:211)
Thread 0x7F0000000001 (idle): "Thread-1"
    wait (threading.py:355)
    run (queues.py:251)
`

const faulted = `[rank3]: noise
Thread 0x00007f7b5b7fe6c0 [QueueFeeder] (most recent call first):
  File "/usr/lib/python3.12/threading.py", line 355 in wait

Current thread 0x00007f7e70db2740 (most recent call first):
  File "/usr/lib/python3.12/selectors.py", line 415 in select
  File "/x/torch/utils/data/dataloader.py", line 1310 in _try_get_data
  File "/data/train.py", line 187 in main
  File "/data/train.py", line 211 in <module>
`

func TestStacks(t *testing.T) {
	for _, test := range []struct {
		text  string
		n     int
		doing Activity
		frame string
	}{
		{spied, 2, Checkpoint, "write (serialization.py:700)"}, {faulted, 2, Loading, "_try_get_data (dataloader.py:1310)"},
	} {
		if !Match([]byte(test.text)) {
			t.Errorf("not recognised: %.40q", test.text)
		}
		list := Read("x", []byte(test.text))
		if len(list) != test.n {
			t.Fatalf("%d stacks, want %d: %+v", len(list), test.n, list)
		}
		doing, frame := Main(list).Doing()
		if doing != test.doing || frame.String() != test.frame {
			t.Errorf("%s in %s, want %s in %s", doing, frame, test.doing, test.frame)
		}
	}
	if _, bare, _ := strings.Cut(spied, "\n\n"); !Match([]byte(bare)) || len(Read("x", []byte(bare))) != 2 {
		t.Error("without its head: not recognised") // which is not always copied
	}
	if list := Read("x", []byte(spied)); list[0].PID != 1234 || list[0].Title != "MainThread" {
		t.Errorf("%+v", list[0])
	}
}

// TestWhere names the program's own line before the library's.
func TestWhere(t *testing.T) {
	for text, want := range map[string]string{
		spied:   "save_everything (train.py:72), in write (serialization.py:700)",
		faulted: "main (train.py:187), in _try_get_data (dataloader.py:1310)",
		"Process 9: python3 train.py\nPython v3.12.3 (/usr/bin/python3.12)\n\nThread 9 (active): \"MainThread\"\n    wait " +
			"(threading.py:355)\n    fetch (/opt/v/lib/python3.12/site-packages/boto3/s3.py:5)\n    tokenize " +
			"(data/tok.py:60)\n    <module> (train.py:211)\n": "tokenize (tok.py:60)",
	} {
		if got := Main(Read("x", []byte(text))).Where(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestDoing(t *testing.T) {
	for _, test := range []struct {
		frames []Frame
		want   Activity
	}{
		{[]Frame{{"sleep", "t.py", 1}, {"tokenize", "t.py", 2}, {"<module>", "t.py", 3}}, Other},
		{[]Frame{{"all_reduce", "/x/torch/distributed/distributed_c10d.py", 1}, {"evaluate", "t.py", 2}}, Collective},
		{[]Frame{{"forward", "m.py", 1}, {"evaluate", "t.py", 2}}, Evaluation},
		{[]Frame{{"compile_fx", "/x/torch/_inductor/compile_fx.py", 1}, {"forward", "t.py", 2}}, Compiling},
		{[]Frame{{"checkpoint", "/x/torch/utils/checkpoint.py", 1}, {"forward", "t.py", 2}}, Other},
		{[]Frame{{"fsync", "t.py", 1}, {"save_checkpoint", "t.py", 2}}, Checkpoint},
		{[]Frame{{"rendezvous", "/x/torch/distributed/rendezvous.py", 1}}, Rendezvous},
	} {
		s := Stack{Frames: test.frames}
		if got, _ := s.Doing(); got != test.want {
			t.Errorf("%v: %q, want %q", test.frames, got, test.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(spied))
	f.Add([]byte(faulted))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s := Main(Read("fuzz", data)); s != nil {
			s.Doing()
		}
	})
}
