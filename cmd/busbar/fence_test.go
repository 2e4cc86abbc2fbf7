package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbar.dev/web"
)

// inside runs a command as the page asks it.
func inside(t *testing.T, folders []string, args ...string) (code int, out string) {
	t.Helper()
	var b bytes.Buffer
	code = confined(t.Context(), web.Job{Args: args, Stdin: strings.NewReader(""), Stdout: &b, Stderr: &b, Folders: folders})
	return code, b.String()
}

// TestFence tries words that would read or write files of the server.
func TestFence(t *testing.T) {
	const mark = "swordfish"
	topo, err := os.ReadFile("../../docs/examples/topo.txt")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	config := `{"model_type":"` + mark + `","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":2,"vocab_size":1000}`
	for name, text := range map[string]string{"secret.txt": string(topo), mark + ".yaml": "name: " + mark + "\n", "config.json": config, "job.log": mark + ":1:1 [0] NCCL INFO Bootstrap : Using " + mark + "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "secret.txt"), "link"); err != nil {
		t.Fatal(err)
	}
	allowed := t.TempDir()
	if err := os.Symlink(dir, filepath.Join(dir, "own")); err != nil {
		t.Fatal(err)
	}
	job := []string{"--cluster=dgx-h100:1", "--model=gpt2"}
	for _, args := range [][]string{
		{"map", "secret.txt"},
		{"map", "./secret.txt"},
		{"map", dir + "/secret.txt"},
		{"map", "secret.txt:4"},
		{"map", "gpu1=secret.txt"},
		{"map", "gpu1=" + dir + "/secret.txt"},
		{"map", "link"},
		{"map", dir},
		{"map", "own"},
		{"map", "/"},
		{"map", "/etc/passwd"},
		{"map", "../" + filepath.Base(dir) + "/secret.txt"},
		{"map", "@secret.txt"},
		{"map", "/proc/self/environ"},
		{"map", "/dev/stdin"},
		{"map", allowed + "/../" + filepath.Base(dir) + "/secret.txt"},
		{"map", mark + ".yaml"},
		{"map", allowed + "x/secret.txt"},
		{"map", "secret.txt\x00"},
		{"map", "dgx-h100", "--output=" + dir + "/out.svg"},
		{"map", "dgx-h100", "--output=svg=out.svg"},
		{"map", "dgx-h100", "--output=yaml=/dev/stdout2"},
		{"predict", "--cluster=secret.txt"},
		{"predict", "--cluster=secret.txt:2"},
		{"predict", "secret.txt"},
		{"predict", "--cluster=dgx-h100", "--output=out.svg"},
		{"predict", "--cluster=dgx-h100", "--size=1G", "--algo=ring", "--trace=out.json"},
		append([]string{"step", "--output=out.svg"}, job...), append([]string{"step", "--output=svg=" + dir + "/out.svg"}, job...),
		{"step", "--cluster=dgx-h100", "--model=config.json"},
		{"step", "--cluster=dgx-h100", "--model=" + dir + "/config.json"},
		append([]string{"scale", "--output=out.svg"}, job...), append([]string{"plan", "--global-batch=8", "--emit=out"}, job...), append([]string{"plan", "--global-batch=8", "--emit=" + allowed + "/../out"}, job...),
		append([]string{"plan", "--global-batch=8", "--emit=" + allowed + "/plan", "--detected=secret.txt"}, job...),
		{"models", "config.json"},
		{"doctor", "."},
		{"doctor", dir},
		{"doctor", "job.log"},
		{"doctor", "--live"},
		{"doctor", "/etc"},
		{"doctor", "explain", "job.log"},
		{"doctor", "explain", dir},
		{"doctor", "bench", "secret.txt"},
		{"doctor", "explain", "-", "--output=out.svg"},
		{"doctor", "bench", "-", "--svg=out.svg"},
		{"bench", "-n", "2"},
		{"bench", "pairs"},
		{"lab", "status"},
		{"exec", "--", "true"},
		{"serve", "--data=" + dir},
		{"serve", "token", "list", "--data=" + dir},
		{"sched", "secret.txt"},
		{"validate", "secret.txt"},
		{"calibrate", "-c", "dgx-h100", "secret.txt"},
		{"demo"},
		{"completion", "bash"},
	} {
		code, out := inside(t, []string{allowed}, args...)
		if code != exitBad {
			t.Errorf("%q: exit code %d, expected %d\n%.300s", args, code, exitBad, out)
		}
		if strings.Contains(strings.ReplaceAll(out, mark+".yaml", ""), mark) || strings.Contains(out, "GPU0") {
			t.Errorf("%q tells what a file holds:\n%.300s", args, out)
		}
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 6 {
		t.Errorf("files were written: %v", list)
	}
	if left, _ := os.ReadDir(filepath.Dir(allowed)); len(left) > 2 {
		t.Errorf("files were written: %v", left)
	}
}

// TestFenceLetsItsFoldersThrough reads and writes what a job may.
func TestFenceLetsItsFoldersThrough(t *testing.T) {
	dir := t.TempDir()
	topo, err := os.ReadFile("../../docs/examples/topo.txt")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "topo.txt")
	if err := os.WriteFile(file, topo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"map", file, "--json"},
		{"map", file + ":4", "--output=svg"},
		{"map", "dgx-h100:2", "--json"},
		{"plan", "--cluster=dgx-h100:1", "--model=gpt2", "--global-batch=8", "--emit=" + dir + "/plan", "--json"},
		{"step", "--cluster=dgx-h100:1", "--model=gpt2", "--output=svg=-"},
	} {
		if code, out := inside(t, []string{dir}, args...); code != exitDone {
			t.Errorf("%q: exit code %d\n%.300s", args, code, out)
		}
	}
	if _, err := os.Stat(dir + "/plan/plan.json"); err != nil {
		t.Error(err)
	}
}
