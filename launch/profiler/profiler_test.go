package profiler_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/doctor/rates"
	"busbar.dev/input/profile"
	"busbar.dev/launch/profiler"
	"busbar.dev/unit"
)

// built is the plugin and a program that calls it as NCCL does.
type built struct{ lib, drive, dir string }

func build(t *testing.T, flags ...string) built {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	dir := t.TempDir()
	b := built{filepath.Join(dir, profiler.LibraryName), filepath.Join(dir, "drive"), filepath.Join(dir, "rings")}
	source := filepath.Join(dir, profiler.SourceName)
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(source, []byte(profiler.Source()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		append([]string{"-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", "-o", b.lib, source}, flags...),
		append([]string{"-O1", "-w", "-rdynamic", "-pthread", "-o", b.drive, "testdata/drive.c", "-ldl"}, flags...),
	} {
		if out, err := exec.CommandContext(t.Context(), cc, args...).CombinedOutput(); err != nil {
			if len(flags) > 0 {
				t.Skipf("this compiler has no %v: %s", flags, out)
			}
			t.Fatalf("%v: %s", err, out)
		}
	}
	return b
}

func (b built) run(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), b.drive, append([]string{b.lib}, args...)...)
	cmd.Env = append(os.Environ(),
		append([]string{
			"BUSBAR_PROFILE_DIR=" + b.dir, "BUSBAR_PROFILE_RECORDS=1024", "BUSBAR_HOST=node1", "ASAN_OPTIONS=detect_leaks=0",
		}, env...)...)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "done") {
		t.Errorf("%v %v: %v\n%s", env, args, err, out)
	}
	return string(out)
}

// rings reads and removes what was written.
func (b built) rings(t *testing.T) (list []*profile.Ring) {
	t.Helper()
	files := os.DirFS(b.dir)
	names, err := profile.Files(files, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		r, err := profile.ReadFile(files, n)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
		if err := os.Remove(filepath.Join(b.dir, n)); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// TestVersions records the same by every interface, as far as it says it.
func TestVersions(t *testing.T) {
	b := build(t)
	for v := 2; v <= 6; v++ {
		b.run(t, []string{"RANK=11", "LOCAL_RANK=3", "WORLD_SIZE=16", "SLURM_JOB_ID=42"}, fmt.Sprint(v), "once")
		list := b.rings(t)
		if len(list) != 1 {
			t.Fatalf("v%d: %d rings", v, len(list))
		}
		r := list[0]
		if r.Rank != 11 || r.LocalRank != 3 || r.World != 16 || r.Job != "42" || r.Host != "node1" || len(r.Comms) != 1 ||
			len(r.Ops) != 4 || r.PID <= 0 {
			t.Fatalf("v%d: %+v", v, r)
		}
		if c := r.Comms[0]; c.Hash != 0xabcdef || c.Rank != 3 || v >= 4 && (c.Ranks != 8 || c.Name != "world") {
			t.Errorf("v%d: %+v", v, c)
		}
		a, g, s, open := r.Ops[0], r.Ops[1], r.Ops[2], r.Ops[3]
		if a.Kind != coll.AllReduce || a.Bytes != 2*unit.MiB || a.Algo != "ring" || a.Proto != "simple" || !a.Ended ||
			a.GPU != (v >= 4) || a.Took.Round(time.Microsecond) != 100*time.Microsecond {
			t.Errorf("v%d: %+v", v, a)
		}
		if v >= 4 && g.Bytes != 8192 || g.Took.Round(time.Microsecond) != 50*time.Microsecond {
			t.Errorf("v%d: %+v", v, g)
		}
		if s.Function != "Send" || s.Peer != 5 || s.Ended || s.Bytes != 64 || open.Ended || !open.Started ||
			open.Sequence != 1 {
			t.Errorf("v%d: %+v\n%+v", v, s, open)
		}
	}
}

// TestJob runs four processes that wait for each other: the one that computes 20% longer is named.
func TestJob(t *testing.T) {
	b := build(t)
	var wait sync.WaitGroup
	for r := range 4 {
		wait.Go(func() {
			slow := 0
			if r == 2 {
				slow = 20
			}
			b.run(t, []string{fmt.Sprintf("RANK=%d", r), "WORLD_SIZE=4"}, "5", "job", fmt.Sprint(r), "4", "60", fmt.Sprint(slow),
				filepath.Join(b.dir, "meet"))
		})
	}
	wait.Wait()
	w := rates.NewWindow(256)
	for _, r := range b.rings(t) {
		w.AddRing(r, time.Time{})
	}
	report, err := rates.Join(t.Context(), rates.Bounds{}, w.Done())
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Jobs) != 1 || len(report.Jobs[0].Ranks) != 4 || report.Jobs[0].Late == nil {
		t.Fatalf("%+v", report)
	}
	j := report.Jobs[0]
	if j.Late.Ranks[0] != 2 || j.Late.Share < 0.1 || j.Late.Share > 0.2 || j.Rows[0].Transfer.Micros() < 499 ||
		j.Rows[0].Transfer.Micros() > 501 {
		t.Errorf("%+v %+v", j.Late, j.Rows)
	}
}

// TestNoFile has the job run on where a ring cannot be made.
func TestNoFile(t *testing.T) {
	b := build(t)
	file := filepath.Join(b.dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/nowhere", file, "/proc", strings.Repeat("x", 5000), "/dev/full", "/dev/null"} {
		if out := b.run(t, []string{"BUSBAR_PROFILE_DIR=" + dir}, "5", "once"); !strings.Contains(out, "log2 ") ||
			!strings.Contains(out, "mask 0 done") {
			t.Errorf("%.40s: %s", dir, out)
		}
	}
	for _, records := range []string{"-1", "9999999999999999999999", "x", "", "0x10"} {
		b.run(t, []string{"BUSBAR_PROFILE_RECORDS=" + records}, "6", "once")
	}
	if list := b.rings(t); len(list) != 5 || len(list[0].Ops) != 4 {
		t.Errorf("%d rings", len(list))
	}
	if out := b.run(t, []string{"BUSBAR_PROFILE_TIMING=0"}, "5", "once"); !strings.Contains(out, "mask 6 done") {
		t.Error(out)
	}
}

// TestHostile drives a plugin with the address sanitizer by what NCCL never does, from several threads too.
func TestHostile(t *testing.T) {
	b := build(t, "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")
	for v := 2; v <= 6; v++ {
		b.run(t, []string{"RANK=-3", "BUSBAR_JOB=" + strings.Repeat("j", 4000), "BUSBAR_HOST=" + strings.Repeat("h", 4000)},
			fmt.Sprint(v), "hostile")
		b.run(t, nil, fmt.Sprint(v), "many", "20000")
	}
	for _, r := range b.rings(t) {
		if len(r.Ops) > 1024 {
			t.Errorf("%d operations in a ring of 1024", len(r.Ops))
		}
	}
}

// TestFullDisk has rings on a file system without room: with none for the ring the job runs without one, and one that
// fills up later loses nothing, for the ring has its room from the start.
func TestFullDisk(t *testing.T) {
	b := build(t)
	script := `set -e
mount -t tmpfs -o size=1m none "$1"
cd "$1"
if [ "$4" = before ]; then dd if=/dev/zero of=fill bs=4k 2>/dev/null || true; fi
BUSBAR_PROFILE_DIR="$1" "$2" "$3" 5 steady 400 500 nowhere > out.txt 2>&1 & # its own output meets the full disk too
job=$!
if [ "$4" = after ]; then
  while ! ls busbar-*.ring >/dev/null 2>&1 && kill -0 $job 2>/dev/null; do sleep 0.01; done
  dd if=/dev/zero of=fill bs=4k 2>/dev/null || true
fi
wait $job
rm -f fill
for f in busbar-*.ring; do if [ -e "$f" ]; then cat "$f" > "$5"; fi; done
`
	for _, when := range []string{"before", "after"} {
		dir := t.TempDir()
		ring := filepath.Join(dir, "ring")
		disk := filepath.Join(dir, "disk")
		if err := os.Mkdir(disk, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := exec.CommandContext(t.Context(), "unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none",
			disk).Run(); err != nil {
			t.Skip("no file system of its own: ", err)
		}
		cmd := exec.CommandContext(t.Context(), "unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", disk,
			b.drive, b.lib, when, ring)
		cmd.Env = append(os.Environ(), "BUSBAR_PROFILE_RECORDS=1024")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("disk full %s the start: the job ended: %v\n%s", when, err, out)
		}
		data, err := os.ReadFile(ring)
		if when == "before" {
			if err == nil {
				t.Errorf("a ring of %d bytes on a full disk", len(data))
			}
			continue
		}
		r, err := profile.Read("ring", data, 0)
		if err != nil || len(r.Ops) != 400 {
			t.Errorf("disk full after the start: %v, %+v", err, r)
		}
	}
}
