package ranks

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"busbar.dev/internal/failure"
	"busbar.dev/unit"
)

func TestRoom(t *testing.T) {
	const meminfo = "MemTotal: 100 kB\nMemAvailable:   1048576 kB\n"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  unit.Bytes
		of    string
	}{
		{"nothing said", nil, 0, ""},
		{"no groups", map[string]string{"proc/meminfo": meminfo}, unit.GiB, "this host"},
		{"v2", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "2000\n",
			"sys/fs/cgroup/a/memory.current": "1500\n",
			"sys/fs/cgroup/a/memory.stat":    "anon 7\ninactive_file 300\n", "sys/fs/cgroup/a/b/memory.max": "max\n",
			"sys/fs/cgroup/a/b/memory.current": "9\n",
		}, 800, "control group"},
		{"v2 within a container", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/host/outside\n", "sys/fs/cgroup/memory.max": "4096\n",
			"sys/fs/cgroup/memory.current": "96\n",
		}, 4000, "control group"},
		{"v1", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "9:name=systemd:/\n4:memory:/job\n",
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes": "1000\n",
			"sys/fs/cgroup/memory/job/memory.usage_in_bytes": "1200\n",
		}, 0, "control group"},
		{"v1 without a limit", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "4:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes": "1\n",
		}, unit.GiB, "this host"},
		{"torn", map[string]string{"proc/meminfo": "MemAvailable: lots\n", "proc/self/cgroup": "nothing\n:::\n"}, 0, ""},
	} {
		files := fstest.MapFS{}
		for name, text := range tt.files {
			files[name] = &fstest.MapFile{Data: []byte(text)}
		}
		r, ok := roomIn(files)
		if ok != (tt.of != "") || r.free != tt.want || !strings.Contains(r.of, tt.of) {
			t.Errorf("%s: %v of %q; expected %v of %q", tt.name, r.free, r.of, tt.want, tt.of)
		}
	}
}

func TestRoomHolds(t *testing.T) {
	r := room{unit.GiB, "this host"}
	if err := r.holds(4, 100*unit.MiB, "less"); err != nil {
		t.Error(err)
	}
	for _, each := range []unit.Bytes{300 * unit.MiB, 16 << 40, 1 << 60} {
		err := r.holds(1024, each, "fewer ranks")
		if !errors.Is(err, failure.ErrCannot) || !strings.Contains(err.Error(), "1024 ranks of") ||
			!strings.Contains(err.Error(), "this host has 1.00 GiB free") || !strings.Contains(err.Error(), "take fewer ranks") {
			t.Errorf("%v each: %v", each, err)
		}
	}
}

func TestLocalRanks(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		want int
	}{
		{nil, 1},
		{map[string]string{"LOCAL_WORLD_SIZE": "4"}, 4},
		{map[string]string{"SLURM_NTASKS_PER_NODE": "2(x3)"}, 1},
		{map[string]string{"MPI_LOCALNRANKS": "99"}, 1},
	} {
		if got := localRanks(func(k string) string { return tt.env[k] }, 8); got != tt.want {
			t.Errorf("%v: %d", tt.env, got)
		}
	}
}
