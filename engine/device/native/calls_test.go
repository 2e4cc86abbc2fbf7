//go:build linux

package native_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/engine/device"
)

// entry is one call of a collective by rank 0: what the stand-in recorded.
type entry struct {
	name              string
	send, recv, count int
}

func entries(t *testing.T, path string) (list []entry) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 4 {
			var x [3]int
			for i := range x {
				x[i], _ = strconv.Atoi(f[i+1])
			}
			if x[2] > 1 { // not a barrier
				list = append(list, entry{f[0], x[0], x[1], x[2]})
			}
		}
	}
	return list
}

// What is timed is what nccl-tests times: one call of NCCL's own function for each iteration where the library has it,
// with nccl-tests' count, at places that follow one another through the memory of the largest size.
func TestCallsOfNCCLTests(t *testing.T) {
	const n, room = 4, 4096
	for _, tt := range []struct {
		kind  coll.Kind
		name  string
		count int // elements of 1 KiB of floats
	}{
		{coll.AllReduce, "ncclAllReduce", 256},
		{coll.Broadcast, "ncclBroadcast", 256},
		{coll.Reduce, "ncclReduce", 256},
		{coll.AllGather, "ncclAllGather", 64},
		{coll.ReduceScatter, "ncclReduceScatter", 64},
		{coll.AllToAll, "ncclAlltoAll", 64},
		{coll.Gather, "ncclGather", 64},
		{coll.Scatter, "ncclScatter", 64},
	} {
		for _, inPlace := range []bool{false, true} {
			if inPlace && !tt.kind.InPlace() {
				continue
			}
			log := filepath.Join(t.TempDir(), "calls")
			list := joined(t, n, "", "FAKE_LOG="+log)
			q := device.Request{Do: device.Collective, Op: tt.kind, Bytes: 1024, InPlace: inPlace, Iters: 6, Room: room}
			if _, err := list.All(t.Context(), q, nil); err != nil {
				t.Fatal(tt.kind, err)
			}
			list.End()
			var got, want []string
			calls := entries(t, log)
			for i, c := range calls {
				got = append(got, fmt.Sprint(c.name, c.count, c.recv-calls[0].recv, c.send-calls[0].send,
					inPlace && c.send != c.recv))
				want = append(want, fmt.Sprint(tt.name, tt.count, i%4*1024, i%4*1024, false)) // maxbytes / size places
			}
			if len(got) != 6 || strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%s, in place %v: %d calls\n%s\nexpected 6\n%s", tt.kind, inPlace, len(got), strings.Join(got, "\n"),
					strings.Join(want, "\n"))
			}
			data, _ := os.ReadFile(log)
			if strings.Count(string(data), "config\n") != n || strings.Contains(string(data), "no config") {
				t.Errorf("%s: the communicator was made without nccl-tests' settings", tt.kind)
			}
		}
	}
}

// A size without room for more stays where it is, and a library before 2.28 gets sends and receives.
func TestCallsOfOldNCCL(t *testing.T) {
	path, err := compile("-DOLD")
	if err != nil {
		t.Skip(err)
	}
	log := filepath.Join(t.TempDir(), "calls")
	list := joined(t, 3, path, "FAKE_LOG="+log)
	for _, kind := range []coll.Kind{coll.AllToAll, coll.Gather, coll.Scatter} {
		right(t, list, device.Request{Op: kind, Bytes: 6144, Room: 6144})
	}
	for _, c := range entries(t, log) {
		if c.name != "ncclSend" && c.name != "ncclRecv" || c.count != 512 {
			t.Errorf("%+v", c)
		}
	}
}

// What NCCL's own threads fail with ends the wait for a collective.
func TestGaveUp(t *testing.T) {
	list := joined(t, 2, "", "FAKE_ASYNC=6")
	_, err := list.All(t.Context(), device.Request{Do: device.Collective, Op: coll.AllReduce, Bytes: 4096, Iters: 1}, nil)
	if err == nil || !strings.Contains(err.Error(), "a collective") || !strings.Contains(err.Error(), "fake NCCL error") {
		t.Error(err)
	}
}
