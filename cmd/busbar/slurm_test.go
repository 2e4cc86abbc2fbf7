//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"busbar.dev/internal/test/eventually"
	"busbar.dev/internal/test/netns"
)

// slurmCluster is a controller and a daemon for each host, with keys of their own.
type slurmCluster struct {
	x    *netns.Net
	conf string
	dir  string
}

// A real Slurm starts the ranks: all on one node, and over three.
func TestSrun(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"slurmctld", "slurmd", "srun", "munged"} {
		needsTool(t, tool, "slurm-wlm (and munge)")
	}
	file := built(t)
	c := startSlurm(t, hosts(t, 3))
	for _, tt := range []struct {
		words        string
		ranks, hosts int
	}{
		{"-N 1 -n 2", 2, 1},
		{"-N 3 -n 3", 3, 3},
		{"-N 3 --ntasks-per-node 2", 6, 3},
	} {
		words := append([]string{"srun"}, strings.Fields(tt.words)...)
		cmd := c.x.Command(limit(t), 0, append(words, shortBench(file)...)...)
		cmd.Env = append(os.Environ(), "SLURM_CONF="+c.conf)
		t.Run(tt.words, func(t *testing.T) { expect(t, cmd, tt.ranks, tt.hosts) })
	}
}

// startSlurm starts the daemons, in the foreground so that they can be ended, and waits until
// the nodes have come.
func startSlurm(t *testing.T, x *netns.Net) *slurmCluster {
	t.Helper()
	c := startController(t, x, "", "")
	for i, h := range x.Hosts {
		os.MkdirAll(filepath.Join(c.dir, "spool", h.Name), 0o755)
		c.daemon(t, i, "slurmd", "-D", "-N", h.Name, "-f", c.conf)
	}
	c.await(t)
	return c
}

// startController starts a controller with its keys, for nodes of their own or for those that lines of slurm.conf and
// topology.conf name.
func startController(t *testing.T, x *netns.Net, nodes, topology string) *slurmCluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "busbar-slurm-") // a short path: sockets need one
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755) // munge does not trust others' folders
	c := &slurmCluster{x: x, dir: dir, conf: filepath.Join(dir, "slurm.conf")}
	if nodes == "" {
		nodes = c.nodes()
	}
	if err := os.WriteFile(c.conf, []byte(c.text()+nodes), 0o644); err != nil {
		t.Fatal(err)
	}
	if topology != "" {
		os.WriteFile(filepath.Join(dir, "topology.conf"), []byte(topology), 0o644)
	}
	os.WriteFile(filepath.Join(dir, "cgroup.conf"), []byte("CgroupPlugin=cgroup/v1\n"), 0o644)
	// Two devices that every machine has stand for GPUs, so that jobs may ask for some.
	os.WriteFile(filepath.Join(dir, "gres.conf"),
		[]byte("AutoDetect=off\nName=gpu File=/dev/zero\nName=gpu File=/dev/null\n"), 0o644)
	os.Mkdir(filepath.Join(dir, "key"), 0o700)
	key := make([]byte, 128)
	rand.Read(key)
	if err := os.WriteFile(filepath.Join(dir, "key", "key"), key, 0o400); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	c.daemon(t, 0, "munged", "--foreground", "--force", "--key-file="+at("key/key"), "--socket="+at("munge"),
		"--pid-file="+at("munged.pid"), "--log-file="+at("key/log"), "--seed-file="+at("key/seed"))
	c.daemon(t, 0, "slurmctld", "-D", "-c", "-f", c.conf)
	return c
}

// nodes are the hosts as slurm.conf has them.
func (c *slurmCluster) nodes() string {
	var names []string
	for _, h := range c.x.Hosts {
		names = append(names, h.Name)
	}
	return fmt.Sprintf("NodeName=%[1]s CPUs=4 RealMemory=100 Gres=gpu:2 State=UNKNOWN\nPartitionName=all Nodes=%[1]s "+
		"Default=YES\n", strings.Join(names, ","))
}

func (c *slurmCluster) text() string {
	first := c.x.Hosts[0]
	return fmt.Sprintf(`ClusterName=busbar
SlurmctldHost=%s(%s)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=%s/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
ReturnToService=2
StateSaveLocation=%[3]s
SlurmdSpoolDir=%[3]s/spool/%%n
SlurmctldPidFile=%[3]s/slurmctld.pid
SlurmdPidFile=%[3]s/slurmd.%%n.pid
SlurmdParameters=config_overrides
GresTypes=gpu
`, first.Name, first.Addr, c.dir)
}

// daemon runs a program on a host until the test is over.
func (c *slurmCluster) daemon(t *testing.T, i int, words ...string) {
	t.Helper()
	cmd := c.x.Command(context.Background(), i, words...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = append(os.Environ(), "SLURM_CONF="+c.conf)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &said, &said, time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		timer := time.AfterFunc(5*time.Second, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		cmd.Wait()
		timer.Stop()
		if t.Failed() {
			t.Logf("%s on %s said:\n%s", words[0], c.x.Hosts[i].Name, said.String())
		}
	})
}

// await waits until all nodes are idle.
func (c *slurmCluster) await(t *testing.T) {
	t.Helper()
	var out []byte
	if !eventually.Within(eventually.Limit, func() bool {
		cmd := c.x.Command(t.Context(), 0, "sinfo", "-h", "-N", "-o", "%T")
		cmd.Env = append(os.Environ(), "SLURM_CONF="+c.conf)
		out, _ = cmd.CombinedOutput()
		return strings.Count(string(out), "idle\n") == len(c.x.Hosts)
	}) {
		t.Fatalf("the nodes did not come; sinfo says\n%s", out)
	}
}
