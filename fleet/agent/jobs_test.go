package agent

import (
	"testing"
	"testing/fstest"
	"time"

	"busbar.dev/coll"
	"busbar.dev/doctor/rates"
	"busbar.dev/input/profile"
	"busbar.dev/internal/test/ringfile"
)

// TestJobs sends what rings got since the beat before, under the node's own name, and nothing where no job writes any.
func TestJobs(t *testing.T) {
	files := fstest.MapFS{"dev/shm/other": {Data: []byte("x")}, "dev/shm/busbar-1-a.ring": {Data: []byte("damaged")}}
	a := &agent{Config: Config{Name: "n1", Sys: files, Beat: 10 * time.Second}}
	if a.jobs() != nil {
		t.Error("a window without a ring")
	}
	r := &profile.Ring{PID: 4, Host: "pod-7", Rank: 0, World: 2, Comms: []profile.Comm{{Hash: 5, Ranks: 2, Nodes: 1}}}
	add := func(n int) {
		for range n {
			r.Ops = append(r.Ops, profile.Op{
				Function: "AllReduce", Kind: coll.AllReduce, Sequence: uint64(len(r.Ops)), Type: "Int8", Count: 100, Algo: "ring",
				Launched: time.Now().Add(time.Duration(len(r.Ops)-500) * time.Millisecond), Started: true, Ended: true,
				Took: time.Millisecond,
			})
		}
		files["dev/shm/busbar-4-a.ring"] = &fstest.MapFile{Data: ringfile.Encode(r)}
	}
	count := func() int {
		data := a.jobs()
		if data == nil {
			return 0
		}
		w, err := rates.Unpack(data, "n1")
		if err != nil || len(w.Members) != 1 || w.Members[0].Host != "n1" || len(data) > maxJobs {
			t.Fatalf("%v %+v", err, w)
		}
		return w.Parts[0].Count
	}
	add(100)
	if n := count(); n != 100 {
		t.Errorf("%d operations", n)
	}
	add(50)
	if n := count(); n != 50 {
		t.Errorf("%d operations", n)
	}
	a = &agent{Config: a.Config, jobsRead: r.Ops[len(r.Ops)-1].Launched} // an agent that was killed and starts again
	if n := count(); n != 0 {
		t.Errorf("an agent that starts again sends %d operations that the one before sent", n)
	}
	add(7)
	if n := count(); n != 7 {
		t.Errorf("%d operations after the start", n)
	}
}
