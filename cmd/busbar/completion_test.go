package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBashCompletes asks a real bash what it would offer.
func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	var script, stderr bytes.Buffer
	if code := run(t.Context(), strings.NewReader(""), &script, &stderr, []string{"completion", "bash"}); code != 0 {
		t.Fatal(stderr.String())
	}
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "busbar")); err != nil {
		t.Skipf("no links here: %v", err)
	}
	for _, c := range []struct{ line, want string }{
		{"busbar be", "bench"},
		{"busbar bench ", "pairs step gpu rdma --"},
		{"busbar bench pa", "pairs"},
		{"busbar bench --al", "--algo"},
		{"busbar bench pairs --al", "--alone"},
		{"busbar bench gpu --proto", "--protos"},
		{"busbar bench --transport s", "shm"},
		{"busbar bench step --overlap o", "on off"},
		{"busbar bench step -m gpt2-", "gpt2-medium gpt2-large gpt2-xl"},
		{"busbar bench step --algo rin", "ring"},
		{"busbar lab u", "up"},
		{"busbar list m", "models"},
		{"busbar fleet order pa", "pairs"},
		{"busbar step --set kern", "kernels="},
		{"busbar predict --op all_r", "all_reduce"},
		{"busbar completion f", "fish"},
	} {
		cmd := exec.Command(bash, "-c", script.String()+`
compopt() { :; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _busbar; echo "${COMPREPLY[*]}"`, "bash")
		cmd.Args = append(cmd.Args, strings.Split(c.line, " ")...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), c.want) {
			t.Errorf("%q: %s (%v), want %s", c.line, out, err, c.want)
		}
	}
}
