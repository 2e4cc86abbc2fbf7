//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// rankLine is where the table's head names a rank's process.
var rankLine = regexp.MustCompile(`^#  Rank +(\d+) Group +0 Pid +(\d+) `)

// begun starts a bench that would take very long, and returns when its first row is there, with
// the numbers of its ranks' processes.
func begun(t *testing.T, args ...string) (cmd *exec.Cmd, pids map[int]int, errs *bytes.Buffer) {
	t.Helper()
	return begunIn(t, os.TempDir(), args...)
}

// begunIn has the ranks keep what they share in a folder.
func begunIn(t *testing.T, temp string, args ...string) (cmd *exec.Cmd, pids map[int]int, errs *bytes.Buffer) {
	t.Helper()
	if !slices.Contains(args, "--transport") {
		args = append(args, "--transport", "tcp")
	}
	args = append([]string{"bench", "-b", "8", "-e", "1M", "-f", "1.01", "--warmup", "1", "--iters", "40"}, args...)
	cmd, errs = exec.Command(built(t), args...), &bytes.Buffer{}
	cmd.Env, cmd.Stderr = append(os.Environ(), "TMPDIR="+temp), errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	pids = map[int]int{}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := rankLine.FindStringSubmatch(lines.Text()); m != nil {
			r, _ := strconv.Atoi(m[1])
			pids[r], _ = strconv.Atoi(m[2])
		}
		if !strings.HasPrefix(lines.Text(), "#") {
			go io.Copy(io.Discard, out)
			return cmd, pids, errs
		}
	}
	cmd.Wait()
	t.Fatalf("no row: %s", errs)
	return nil, nil, nil
}

func codeOf(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// TestBenchHung: of a rank that hangs it is said that it does, and not that it was killed, which
// only the program itself has done, afterwards.
func TestBenchHung(t *testing.T) {
	t.Parallel()
	cmd, pids, errs := begun(t, "-n", "3", "--timeout", "5s")
	syscall.Kill(pids[2], syscall.SIGSTOP)
	if code := codeOf(cmd.Wait()); code != exitCannot {
		t.Errorf("exit code %d", code)
	}
	if text := errs.String(); !strings.HasPrefix(text, "busbar: rank 2 (") ||
		!strings.Contains(text, "it hangs or is cut off") || !strings.Contains(text, "; rank 2 hung: ") ||
		strings.Contains(text, "signal") {
		t.Errorf("%s", text)
	}
}

// TestBenchKilledRank: a rank that somebody else has ended is named with the signal.
func TestBenchKilledRank(t *testing.T) {
	t.Parallel()
	cmd, pids, errs := begun(t, "-n", "3")
	syscall.Kill(pids[1], syscall.SIGKILL)
	if code := codeOf(cmd.Wait()); code != exitCannot ||
		!strings.HasPrefix(errs.String(), "busbar: rank 1 was ended by signal 9") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// TestBenchCrashedRank: Go catches some signals and ends with an exit code that means something
// else; the signal is named all the same, and -v shows how the crash began.
func TestBenchCrashedRank(t *testing.T) {
	t.Parallel()
	cmd, pids, errs := begun(t, "-n", "3", "-v")
	syscall.Kill(pids[1], syscall.SIGSEGV)
	code := codeOf(cmd.Wait())
	if text := errs.String(); code != exitCannot || !strings.Contains(text,
		"busbar: rank 1 died by signal SEGV (segmentation violation)") ||
		!strings.HasPrefix(text, "busbar: rank 1: SIGSEGV: ") {
		t.Errorf("exit code %d: %s", code, text)
	}
}

// TestBenchEndedRank: a rank that is asked to end tells the others, which do not wait for it.
func TestBenchEndedRank(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"shm", "tcp"} {
		cmd, pids, errs := begun(t, "-n", "3", "--transport", how)
		syscall.Kill(pids[1], syscall.SIGTERM)
		if code := codeOf(cmd.Wait()); code != exitCannot || !strings.Contains(errs.String(), "busbar: rank 1 (") ||
			strings.Contains(errs.String(), "hung") {
			t.Errorf("%s: exit code %d: %s", how, code, errs)
		}
	}
}

// TestBenchKilled: nothing stays of a launcher that was killed once another has run.
func TestBenchKilled(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	cmd, _, _ := begunIn(t, temp, "-n", "2")
	cmd.Process.Kill()
	cmd.Wait()
	again := exec.Command(built(t), "bench", "-n", "2", "-b", "8", "-e", "8")
	again.Env = append(os.Environ(), "TMPDIR="+temp)
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestBenchRefusedRanks: rank 0 says at once who was refused and why; who was refused ends at
// once. Who waited instead would do so for an hour, and the job goes on
// for longer than the test.
func TestBenchRefusedRanks(t *testing.T) {
	t.Parallel()
	file, meet := built(t), filepath.Join(t.TempDir(), "meet")
	rank := func(secret string, more ...string) *exec.Cmd {
		cmd := exec.Command(file,
			append([]string{
				"bench", "--meet", meet, "--bind", "127.0.0.1", "--meet-timeout", "1h", "--timeout", "5m", "-b", "8", "-f", "1.01",
				"--iters", "60000",
			}, more...)...)
		cmd.Env = append(os.Environ(), "BUSBAR_SECRET="+secret)
		return cmd
	}
	host := rank("s", "-n", "2", "--rank", "0", "-e", "64K")
	said, err := host.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Process.Kill() })
	lines := bufio.NewScanner(said)
	refused := func(who, why string, cmd *exec.Cmd) {
		t.Helper()
		out, err := cmd.CombinedOutput()
		if codeOf(err) != exitCannot || !strings.Contains(string(out), why) {
			t.Errorf("%v: %s", err, out)
		}
		said := ""
		// on a busy machine ranks come late, which rank 0 says too
		for said == "" || strings.HasPrefix(said, "busbar: waiting for ") {
			if !lines.Scan() {
				break
			}
			said = lines.Text()
		}
		if !strings.Contains(said, why) || !strings.HasPrefix(said, "busbar: "+who+" from 127.0.0.1:") {
			t.Errorf("rank 0 says %q; expected who was refused because %s", said, why)
		}
	}
	refused("rank 1", "its flags are others", rank("s", "-n", "2", "--rank", "1", "-e", "32K"))
	refused("rank 1", "its secret or its job is another", rank("x", "-n", "2", "--rank", "1", "-e", "64K"))
}

// TestBenchFullDisk: a disk that is full is not the input's fault, and the file that the user
// named is the one that is named.
func TestBenchFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := `mount -t tmpfs -o size=16k none "$1" && cd "$1" && head -c 16k /dev/zero >fill 2>/dev/null; shift; "$@"; echo "exit code $?"; ls -a`
	if err := exec.Command("unshare", "-Urm", "true").Run(); err != nil {
		t.Skipf("no mount namespaces here: %v", err)
	}
	out, err := exec.Command("unshare", "-Urm", "sh", "-c", script, "sh", dir, built(t), "bench", "-n", "2", "-b", "8",
		"-e", "8", "-o", "kept.jsonl").CombinedOutput()
	text := string(out)
	if err != nil || !strings.Contains(text, "busbar: kept.jsonl: cannot write there: no space left on device") ||
		!strings.Contains(text, "exit code 3") || strings.Contains(text, ".busbar-") {
		t.Errorf("%v: %s", err, text)
	}
}

// TestBenchExposed: ranks that others can reach, and that anybody may join, are warned of.
func TestBenchExposed(t *testing.T) {
	t.Parallel()
	file := built(t)
	for _, tt := range []struct {
		secret, bind string
		warns        bool
	}{{"", "0.0.0.0", true}, {"s", "0.0.0.0", false}, {"", "127.0.0.1", false}} {
		args := []string{
			"bench", "-n", "2", "--meet", filepath.Join(t.TempDir(), "meet"), "--bind", tt.bind, "-b", "8", "-e", "8",
		}
		var errs [2]bytes.Buffer
		var ranks [2]*exec.Cmd
		for r := range ranks {
			ranks[r] = exec.Command(file, append(args, "--rank", strconv.Itoa(r))...)
			ranks[r].Env, ranks[r].Stderr = append(os.Environ(), "BUSBAR_SECRET="+tt.secret), &errs[r]
			if err := ranks[r].Start(); err != nil {
				t.Fatal(err)
			}
		}
		for r := range ranks {
			if err := ranks[r].Wait(); err != nil {
				t.Errorf("rank %d: %v: %s", r, err, errs[r].String())
			}
			if warned := strings.Contains(errs[r].String(), "warning: "); warned != (tt.warns && r == 0) {
				t.Errorf("%+v: rank %d says %q", tt, r, errs[r].String())
			}
		}
	}
}
