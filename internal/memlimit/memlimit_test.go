package memlimit

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestGroup(t *testing.T) {
	for self, want := range map[string]int64{"0::/a/b\n": 3000, "0::/\n": 0, "4:memory:/x\n0::/a\n": 2000, "": 0} {
		root := fstest.MapFS{}
		for name, text := range map[string]string{
			"sys/fs/cgroup/a/memory.max": "3000\n", "sys/fs/cgroup/a/b/memory.max": "max\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "2000\n", "proc/self/cgroup": self,
		} {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := group(root); got != want {
			t.Errorf("group %q: %d; want %d", self, got, want)
		}
	}
}

func TestFree(t *testing.T) {
	const meminfo = "MemTotal: 100 kB\nMemAvailable:   1048576 kB\n"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  int64
		of    string
	}{
		{"nothing said", nil, 0, ""},
		{"no groups", map[string]string{"proc/meminfo": meminfo}, 1 << 30, "this host"},
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
		}, 1 << 30, "this host"},
		{"torn", map[string]string{"proc/meminfo": "MemAvailable: lots\n", "proc/self/cgroup": "nothing\n:::\n"}, 0, ""},
	} {
		files := fstest.MapFS{}
		for name, text := range tt.files {
			files[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if free, of := Free(files); (of == "") != (tt.of == "") || free != tt.want || !strings.Contains(of, tt.of) {
			t.Errorf("%s: %v of %q; expected %v of %q", tt.name, free, of, tt.want, tt.of)
		}
	}
}
