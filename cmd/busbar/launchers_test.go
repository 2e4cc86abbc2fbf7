//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"busbar.dev/internal/test/eventually"
	"busbar.dev/internal/test/netns"
	"busbar.dev/query"
)

// Real launchers start the ranks of a bench, on this host and on three hosts that are network
// namespaces. What is not installed, or not allowed, is skipped.

// built is the command as a file that launchers can start: the test binary itself, which TestMain puts into $PATH
// under that name. To link another one takes seconds for each test.
func built(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts launchers, which takes seconds")
	}
	file, err := exec.LookPath("busbar")
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func needsTool(t *testing.T, tool, pack string) string {
	t.Helper()
	file, err := exec.LookPath(tool)
	if err != nil {
		t.Skipf("no %s here; Debian's package is %s", tool, pack)
	}
	return file
}

func hosts(t *testing.T, n int) *netns.Net {
	t.Helper()
	x, err := netns.New(n, "")
	if errors.Is(err, netns.ErrNotHere) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// shortBench is the words of a short bench whose results are checked.
func shortBench(file string, more ...string) []string {
	return append([]string{file, "bench", "-b", "8", "-e", "64K", "-f", "64", "--iters", "3", "--check", "--json"},
		more...)
}

// alone runs a command in a process group of its own, which ends with the test.
func alone(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

func limit(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
	t.Cleanup(cancel)
	return ctx
}

// expect runs a launcher and holds what rank 0 says to the number of ranks and hosts.
func expect(t *testing.T, cmd *exec.Cmd, ranks, hosts int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := alone(cmd).Run(); err != nil {
		t.Fatalf("%v: %v\n%s%s", cmd.Args, err, out.String(), errs.String())
	}
	checkBench(t, out.Bytes(), ranks, hosts)
}

func checkBench(t *testing.T, out []byte, ranks, hosts int) {
	t.Helper()
	var doc query.BenchDoc
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	if doc.Ranks != ranks || len(doc.Hosts) != hosts || len(doc.Rows) != 3 || !doc.Checked {
		t.Errorf("%d ranks on %q, %d rows; want %d on %d hosts, 3 rows", doc.Ranks, doc.Hosts, len(doc.Rows), ranks, hosts)
	}
	for _, r := range doc.Rows {
		if r.Wrong != 0 {
			t.Errorf("%d bytes: %v wrong elements", r.Size, r.Wrong)
		}
	}
}

// asRoot lets Open MPI start programs for root.
func asRoot(cmd *exec.Cmd, more ...string) *exec.Cmd {
	cmd.Env = append(os.Environ(), append(more, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")...)
	return cmd
}

func TestMpirun(t *testing.T) {
	t.Parallel()
	file := built(t)
	t.Run("Open MPI", func(t *testing.T) {
		mpirun := needsTool(t, "mpirun.openmpi", "openmpi-bin")
		expect(t, asRoot(exec.CommandContext(limit(t), mpirun,
			append([]string{"--oversubscribe", "-n", "3"}, shortBench(file)...)...)), 3, 1)
	})
	t.Run("MPICH", func(t *testing.T) {
		mpirun := needsTool(t, "mpirun.mpich", "mpich")
		expect(t, exec.CommandContext(limit(t), mpirun, append([]string{"-n", "3"}, shortBench(file)...)...), 3, 1)
	})
}

// Over hosts, mpirun does not say where rank 0 is; BUSBAR_MEET does.
func TestMpirunOverHosts(t *testing.T) {
	t.Parallel()
	file := built(t)
	x := hosts(t, 3)
	agent := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(agent, []byte(x.Agent()), 0o755); err != nil {
		t.Fatal(err)
	}
	meet := "BUSBAR_MEET=" + x.Hosts[0].Addr + ":29517"
	t.Run("Open MPI", func(t *testing.T) {
		needsTool(t, "mpirun.openmpi", "openmpi-bin")
		words := append([]string{
			"mpirun.openmpi", "--mca", "plm_rsh_agent", agent, "--mca", "plm_rsh_no_tree_spawn", "1", "--mca",
			"oob_tcp_if_include", "eth0",
			"-x", "BUSBAR_MEET", "-H", "host0:2,host1:1,host2:1", "-n", "4",
		}, shortBench(file)...)
		expect(t, asRoot(x.Command(limit(t), 0, words...), meet), 4, 3)
	})
	t.Run("MPICH", func(t *testing.T) {
		needsTool(t, "mpirun.mpich", "mpich")
		words := append([]string{
			"mpirun.mpich", "-launcher", "ssh", "-launcher-exec", agent, "-iface", "eth0", "-hosts", "host0:2,host1:1,host2:1",
			"-n", "4",
		}, shortBench(file)...)
		expect(t, asRoot(x.Command(limit(t), 0, words...), meet), 4, 3)
	})
}

// Ranks started by hand on three hosts meet at the address that they are told.
func TestByHandOnHosts(t *testing.T) {
	t.Parallel()
	file := built(t)
	x := hosts(t, 3)
	for _, meet := range []string{x.Hosts[0].Addr + ":29518", "host0:29519", filepath.Join(t.TempDir(), "meet")} {
		var out bytes.Buffer
		var errs [4]bytes.Buffer
		var ranks []*exec.Cmd
		for r := range 4 {
			cmd := x.Command(limit(t), r*3/4, shortBench(file, "-n", "4", "--rank", fmt.Sprint(r), "--meet", meet)...)
			cmd.Env = append(os.Environ(), "BUSBAR_SECRET=not told to others")
			cmd.Stderr = &errs[r]
			if r == 0 {
				cmd.Stdout = &out
			}
			if err := alone(cmd).Start(); err != nil {
				t.Fatal(err)
			}
			ranks = append(ranks, cmd)
		}
		for r, cmd := range ranks {
			if err := cmd.Wait(); err != nil {
				t.Errorf("%s: rank %d: %v\n%s", meet, r, err, errs[r].String())
			}
		}
		checkBench(t, out.Bytes(), 4, 3)
	}
}
