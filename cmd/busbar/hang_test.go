//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"busbar.dev/internal/test/synth/livejob"
)

// TestHangExitCodes: scripts tell a healthy job from one that nothing is known about.
func TestHangExitCodes(t *testing.T) {
	dir := t.TempDir()
	write := func(folder, name string, data []byte) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	well, late := &livejob.Job{Ranks: 4, TP: 2, Steps: 3, Fault: livejob.None},
		&livejob.Job{Ranks: 4, TP: 2, Steps: 3, Fault: livejob.Late, Culprit: 2}
	for r := range 4 {
		name := fmt.Sprintf("nccl_trace_rank_%d", r)
		write("well", name, well.Dump(r))
		write("late", name, late.Dump(r))
	}
	write("missing", "nccl_trace_rank_0", late.Dump(0))
	write("log", "stdout.log", []byte(well.Log(0)))
	write("words", "notes.txt", []byte("nothing to see\n"))
	for _, tt := range []struct {
		words  string
		code   int
		stdout string
		stderr string
	}{
		{"well", exitDone, "no hang found", ""},
		{"late", exitWrong, "stalled: rank 2 has not launched", ""},
		{"late --fail-on error", exitDone, "stalled: rank 2 has not launched", ""}, // no watchdog timed out
		{"log", exitCannot, "nothing to judge by", "no verdict: nothing to judge by"},
		{"log --json", exitCannot, `"verdict": "unknown"`, "no verdict"},
		{"log --fail-on never", exitDone, "nothing to judge by", ""},
		{"missing", exitCannot, "for whom is not known", "no verdict: ranks wait"},
		{"words", exitBad, "", "nothing in it tells how a job is"},
	} {
		words := strings.Fields(tt.words)
		code, out, errs := busbarRun(t, append([]string{"hang", filepath.Join(dir, words[0])}, words[1:]...)...)
		if code != tt.code || !strings.Contains(out, tt.stdout) || !strings.Contains(errs, tt.stderr) ||
			(tt.stderr == "") != (errs == "") {
			t.Errorf("hang %s: exit code %d, expected %d\n%s%s", tt.words, code, tt.code, out, errs)
		}
	}
}

// TestTriggerFollowsNoLink: everybody may write to the folder in which pipes lie, and a link there leads to no file of
// the user's.
func TestTriggerFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	plain := filepath.Join(dir, "trace_1.pipe")
	for _, name := range []string{precious, plain} {
		if err := os.WriteFile(name, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(precious, filepath.Join(dir, "trace_0.pipe")); err != nil {
		t.Skip(err)
	}
	if n, err := triggerDumps(filepath.Join(dir, "trace_")); err == nil {
		t.Errorf("%d pipes were written to where there are none", n)
	}
	for _, name := range []string{precious, plain} {
		if text, _ := os.ReadFile(name); string(text) != "precious" {
			t.Errorf("%s is %q now", name, text)
		}
	}
}

// TestHangPodCommand runs the command that is printed for a job's pods where there are no credentials, with a kubectl
// that takes these folders for pods.
func TestHangPodCommand(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	program, dir := built(t), t.TempDir()
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", dir)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	code, _, errs := busbarRun(t, "hang", "--pods", "train/llama")
	lines := strings.Split(strings.TrimSpace(errs), "\n")
	if code != exitCannot || len(lines) != 3 || !strings.Contains(lines[1], "kubectl get pods -n train -l ") {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	job := &livejob.Job{Ranks: 4, TP: 2, Steps: 5, Fault: livejob.Late, Culprit: 3}
	for name, text := range map[string]string{
		"kubectl": `#!/bin/sh
set -e
verb=$1; shift
while [ $# -gt 0 ]; do
  case $1 in
    -n) test "$2" = train; shift 2 ;;
    --) shift; break ;;
    *) words="$words $1"; shift ;;
  esac
done
set -- $words -- "$@"
case $verb in
  cp) pod=${2%%:*}; mkdir -p "$PODS/$pod/tmp"; cp "$1" "$PODS/$pod${2#*:}" ;;
  exec) pod=$1; shift 2; command=$PODS/$pod$1; shift; exec "$command" "$@" ;;
esac
`,
		"ras.json": job.RAS("2026-11-16 02:00:05", true),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(program, filepath.Join(dir, "busbar")); err != nil {
		t.Skip(err)
	}
	// Whether something listens at the service's port here is not known: what it would say is given as a file, too.
	line := strings.ReplaceAll(strings.TrimSpace(lines[2]), "POD", "llama-0") + " ras.json --json --fail-on never"
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "PODS="+filepath.Join(dir, "pods"))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"kind": "late-rank"`) ||
		!strings.Contains(string(out), `"addr": "localhost:28028"`) {
		t.Errorf("%s: %v\n%s", line, err, out)
	}
}
