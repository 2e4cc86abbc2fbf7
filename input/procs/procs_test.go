package procs

import (
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// machine is a /proc with processes of one job; a process is pid, parent, name, state, rank.
func machine(list ...[5]string) fstest.MapFS {
	m := fstest.MapFS{
		"stat":                {Data: []byte("cpu  1 2 3\nbtime 1700000000\n")},
		"sys/kernel/hostname": {Data: []byte("node1\n")},
		"self":                {Data: []byte("7"), Mode: fs.ModeSymlink},
	}
	for _, p := range list {
		zeros := strings.Repeat(" 0", 17)
		m[p[0]+"/stat"] = &fstest.MapFile{Data: fmt.Appendf(nil, "%s (a (b) %s) %s %s%s 250%s 9\n", p[0], p[2], p[3], p[1],
			zeros, strings.Repeat(" 0", 29))}
		m[p[0]+"/comm"] = &fstest.MapFile{Data: []byte(p[2] + "\n")}
		m[p[0]+"/fd/1"] = &fstest.MapFile{Data: []byte("/logs/rank_" + p[4] + ".log"), Mode: fs.ModeSymlink}
		m[p[0]+"/fd/2"] = &fstest.MapFile{Data: []byte("/dev/null"), Mode: fs.ModeSymlink}
		m[p[0]+"/environ"] = &fstest.MapFile{Data: []byte("RANK=" + p[4] + "\x00WORLD_SIZE=4\x00MASTER_ADDR=node1\x00MASTER_PORT=29500\x00NCCL_DEBUG_FILE=/logs/nccl.%h.%p\x00TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/tmp/pipe_\x00")}
	}
	return m
}

func TestFind(t *testing.T) {
	// a shell, a rank and its data loader
	m := machine([5]string{"10", "1", "bash", "S", "0"}, [5]string{"11", "10", "python3", "R", "0"}, [5]string{
		"12", "11", "python3", "S", "0",
	},
		[5]string{"20", "1", "python3", "T", "1"}, [5]string{"30", "1", "python3", "Z", "3"})
	m["40/environ"] = &fstest.MapFile{Data: []byte("RANK=2\x00WORLD_SIZE=4\x00MASTER_ADDR=other\x00")}
	list, err := Find(m, 20)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range list {
		got = append(got, fmt.Sprintf("%d:%d%c%d", p.Rank, p.PID, p.State, p.Code))
	}
	if want := []string{"0:11R0", "1:20T0", "3:30Z-9"}; !slices.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
	p := list[1]
	if !slices.Equal(p.Logs, []string{"/logs/nccl.node1.20", "/logs/rank_1.log"}) || p.Pipe != "/tmp/pipe_1.pipe" ||
		p.RAS != "localhost:28028" || p.Dump != "/tmp/nccl_trace_rank_1" || p.Started.Unix() != 1700000002 {
		t.Errorf("%+v", p)
	}
	for pid, want := range map[int]string{99: "is not here", 40: "no RANK"} {
		if _, err := Find(m, pid); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("process %d: %v, expected %q", pid, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("RANK=1\x00WORLD_SIZE=2\x00MASTER_ADDR=a"), []byte("7 (x) Z 1 2"))
	f.Fuzz(func(t *testing.T, env, stat []byte) {
		m := fstest.MapFS{"7/environ": {Data: env}, "7/stat": {Data: stat}}
		if p, ok := read(m, 7); ok && (p.Rank < 0 || p.Rank >= p.World) {
			t.Errorf("%+v", p)
		}
	})
}

// TestWaits reads what a first thread is in, where the kernel tells it.
func TestWaits(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("numbers of system calls are amd64's")
	}
	for _, x := range []struct {
		syscall, stat string
		want          Wait
	}{
		{"7 0x7ffd 0x1 0xffff 0x0 0x0 0x0 0x7ffd 0x7f", "S", WaitSocket},
		{"0 0x5 0x1 0xffff 0x0 0x0 0x0 0x7ffd 0x7f", "S", WaitSocket},
		{"0 0x6 0x1 0xffff 0x0 0x0 0x0 0x7ffd 0x7f", "S", WaitElse},
		{"230 0x0 0x0 0x7ffd 0x0 0x0 0x0 0x7ffd 0x7f", "S", WaitElse},
		{"running", "R", WaitNone},
		{"running", "S", WaitUnknown},
		{"", "S", WaitUnknown},
		{"-1 0x7ffd 0x7f", "S", WaitUnknown},
	} {
		m := machine([5]string{"11", "1", "python3", x.stat, "0"})
		m["11/fd/5"] = &fstest.MapFile{Data: []byte("socket:[77]"), Mode: fs.ModeSymlink}
		m["11/fd/6"] = &fstest.MapFile{Data: []byte("/tmp/x"), Mode: fs.ModeSymlink}
		m["11/syscall"] = &fstest.MapFile{Data: []byte(x.syscall)}
		if got := waits(m, "11", x.stat[0]); got != x.want {
			t.Errorf("%q: %d, expected %d", x.syscall, got, x.want)
		}
	}
}
