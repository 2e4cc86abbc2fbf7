//go:build unix

package tuner_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/launch/tuner"
	"busbar.dev/nccl"
	"busbar.dev/predict"
)

// drive is a program that calls a plugin as NCCL does, by every interface that it has, and
// prints what is chosen.
const drive = `
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
static void say(int level, unsigned long flags, const char *file, int line, const char *fmt, ...) {
  va_list a; va_start(a, fmt); printf("log%d ", level); vprintf(fmt, a); printf("\n"); va_end(a);
}
int main(int argc, char **argv) {
  void *lib = dlopen(argv[1], RTLD_NOW);
  if (!lib) { printf("%s\n", dlerror()); return 1; }
  size_t ranks = 4, nodes = 2, sizes[] = {0, 1023, 1024, 65536, 65537, 1u << 30};
  for (int v = 2; v <= 6; v++) {
    char name[32]; snprintf(name, sizeof name, "ncclTunerPlugin_v%d", v);
    void **t = dlsym(lib, name); void *ctx = 0;
    if (!t) return 2;
    if (v < 5) ((int (*)(size_t, size_t, void *, void **))t[1])(ranks, nodes, say, &ctx);
    else ((int (*)(void **, uint64_t, size_t, size_t, void *, void *, void *))t[1])(&ctx, 7, ranks, nodes, say, 0, 0);
    for (int i = 0; i < 6; i++) for (int coll = 0; coll < 6; coll++) {
      float costs[7][3]; int channels = 0, algo = -1, proto = -1;
      for (int a = 0; a < 7; a++) for (int p = 0; p < 3; p++) costs[a][p] = a == 4 ? -1 : 10 + a;
      int rc;
      if (v == 2) rc = ((int (*)(void *, int, size_t, int, int, int, int *, int *, int *))t[2])(ctx, coll, sizes[i], 0, 0, 1, &algo, &proto, &channels);
      else if (v == 3) rc = ((int (*)(void *, int, size_t, int, float **, int, int, int *))t[2])(ctx, coll, sizes[i], 1, (float **)costs, 7, 3, &channels);
      else rc = ((int (*)(void *, int, size_t, int, float **, int, int, int, int *))t[2])(ctx, coll, sizes[i], 1, (float **)costs, 7, 3, 0, &channels);
      for (int a = 0; a < 7; a++) for (int p = 0; p < 3; p++) if (costs[a][p] == 0) algo = a, proto = p;
      if (rc || algo >= 0) printf("v%d coll %d size %zu: rc %d algo %d proto %d channels %d\n", v, coll, sizes[i], rc, algo, proto, channels);
    }
    ((int (*)(void *))t[3])(ctx);
  }
  return 0;
}`

// TestPlugin builds the plugin, calls it as NCCL does and looks at what it answers.
func TestPlugin(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run := func(name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = append(os.Environ(), "BUSBAR_TUNER_TABLE="+filepath.Join(dir, "table"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	lib, driver := filepath.Join(dir, "t.so"), filepath.Join(dir, "drive")
	run(cc, "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", "-o", lib, write("t.c", tuner.Source()))
	run(cc, "-o", driver, write("drive.c", drive), "-ldl")

	write("table", "# a comment\n\nall_reduce 1024 65536 4 2 tree ll128 7\nall_reduce 0 9999999999 8 1 ring ll 3\n"+
		"all_gather 0 99999999999 0 0 nvls simple 0\nbroadcast 5 4 0 0 ring ll 1\nnonsense\nreduce 0 -1 0 0 ring ll 1\n"+
		"reduce 0 10 0 0 ring ll 65\n"+
		"reduce_scatter 65537 99999999999 4 2 pat simple 0\n"+strings.Repeat("x", 5000)+
		"\nall_reduce 1 2 3 4 ring ll 1 more\nreduce 65536 65536 4 0 ring ll 2")
	out := run(driver, lib)
	for _, want := range []string{
		"v5 coll 4 size 1024: rc 0 algo 0 proto 1 channels 7", "v3 coll 4 size 65536: rc 0 algo 0 proto 1 channels 7",
		"v2 coll 4 size 1024: rc 0 algo 0 proto 1 channels 7",
		"v6 coll 3 size 1073741824: rc 0 algo 6 proto 2 channels 0", "v4 coll 1 size 65536: rc 0 algo 1 proto 0 channels 2",
		"nvls simple is not available here", ":6 cannot be read", ":7 cannot be read", ":8 cannot be read",
		":9 cannot be read", ":11 cannot be read", ":12 cannot be read",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for _, never := range []string{"size 1023: ", "coll 4 size 65537", "coll 0", "coll 5", "rc 1", "rc 3"} {
		if strings.Contains(out, never) {
			t.Errorf("%q in\n%s", never, out)
		}
	}
	if err := os.Remove(filepath.Join(dir, "table")); err != nil {
		t.Fatal(err)
	}
	if out := run(driver, lib); !strings.Contains(out, "cannot be opened; NCCL chooses by itself") ||
		strings.Contains(out, "algo") {
		t.Errorf("without a table:\n%s", out)
	}
	// A line with a NUL in it is left out, and the next one is not.
	write("table", "all_reduce 1024 65536 4 2 tree\x00 ll128 7\nall_reduce 1024 65536 4 2 tree ll128 7\n")
	if out := run(driver, lib); !strings.Contains(out, ":1 cannot be read") ||
		!strings.Contains(out, "v5 coll 4 size 1024: rc 0 algo 0 proto 1 channels 7") {
		t.Errorf("with a NUL:\n%s", out)
	}
	// What is no plain file would stall the job, or never end.
	table := filepath.Join(dir, "table")
	for what, make := range map[string]func() error{
		"a FIFO":   func() error { return syscall.Mkfifo(table, 0o600) },
		"a device": func() error { return os.Symlink("/dev/zero", table) },
		"a folder": func() error { return os.Mkdir(table, 0o700) },
	} {
		if err := errors.Join(os.Remove(table), make()); err != nil {
			t.Fatal(err)
		}
		if out := run(driver, lib); !strings.Contains(out, "is no plain file") || strings.Contains(out, "algo") {
			t.Errorf("%s as the table:\n%s", what, out)
		}
	}
}

// The layout behind the product: trees in place of the ring for large sizes.
func TestRows(t *testing.T) {
	c, err := hardware.Preset("baskerville", 2)
	if err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Block(c, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	p, err := predict.New(c, l, nccl.Newest, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := tuner.Rows(p, coll.BFloat16)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, r := range rows {
		found = found ||
			r.Kind == coll.AllReduce && r.Algo == "tree" && r.Max > 1<<30 && r.Ranks == 4 && r.Nodes == 2 && r.Gain > 1.05
	}
	if !found {
		t.Errorf("no tree for large all-reduces in %+v", rows)
	}
	var text, csv bytes.Buffer
	if err := tuner.Write(&text, "a test", rows); err != nil {
		t.Fatal(err)
	}
	if err := tuner.CSV(&csv, p, coll.BFloat16, rows); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s\n%s", text.String(), csv.String())
	for _, line := range strings.Split(strings.TrimSpace(csv.String()), "\n")[1:] {
		f := strings.Split(line, ",")
		if len(f) != 8 || f[5] == "-1" || f[5] == "0" || len(line) > 255 {
			t.Errorf("line %q", line)
		}
	}
}
