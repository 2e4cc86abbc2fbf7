package slurm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/internal/test/freeport"
	"busbar.dev/internal/test/readertest"
)

// A real Slurm controller, where one is installed, starts with the
// topology.conf that WriteConf wrote and shows the same tree.
func TestLiveSlurm(t *testing.T) {
	ctld, err := exec.LookPath("slurmctld")
	if err != nil {
		t.Skip("no slurmctld here; Debian's package is slurm-wlm (make debian brings it)")
	}
	if testing.Short() {
		t.Skip("takes seconds")
	}
	c := rails()
	dir := t.TempDir()
	port := freeport.Of(t)
	conf := slurmConf(t, dir, port, c)
	write(t, filepath.Join(dir, "topology.conf"), writeConf(t, c))
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
	defer cancel()
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, ctld, "-D", "-c", "-f", conf)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.WaitDelay = 5 * time.Second // a child of the controller's may keep its output open
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	shown := waitForTopology(ctx, conf)
	cmd.Process.Signal(os.Interrupt)
	cmd.Wait()
	if strings.Contains(log.String(), "cannot find auth plugin") ||
		strings.Contains(log.String(), "cannot create auth context") {
		t.Skip("this Slurm has no plugin to run without keys")
	}
	f, err := ReadConf("scontrol", strings.NewReader(shown))
	if err != nil {
		t.Fatalf("%v\nscontrol: %s\nslurmctld:\n%s", err, shown, log.String())
	}
	want := readertest.Flush(`
		railgroup1 tier=0 hosts=n[0-3]
		railgroup2 tier=0 hosts=n[4-7]
		spinegroup1 tier=1 under=railgroup[1-2]`)
	if got := readertest.Shape(&f.Cluster); got != want {
		t.Errorf("slurm shows\n%s\nread as\n%swant\n%s", shown, got, want)
	}
	if strings.Contains(log.String(), "WARNING") || strings.Contains(log.String(), "TOPOLOGY") {
		t.Errorf("slurm warns:\n%s", log.String())
	}
}

func waitForTopology(ctx context.Context, conf string) string {
	out := ""
	eventually.Within(eventually.Limit, func() bool {
		cmd := exec.CommandContext(ctx, "scontrol", "show", "topology")
		cmd.Env = append(os.Environ(), "SLURM_CONF="+conf)
		b, _ := cmd.CombinedOutput()
		out = string(b)
		return strings.Contains(out, "SwitchName=") || ctx.Err() != nil
	})
	return out
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// slurmConf writes a slurm.conf for a controller without nodes behind it.
func slurmConf(t *testing.T, dir string, port int, c *cluster.Cluster) string {
	host, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	names := make([]string, len(c.Hosts))
	for i := range c.Hosts {
		names[i] = c.Hosts[i].Name
	}
	var b strings.Builder
	for k, v := range map[string]string{
		"ClusterName": "busbar", "SlurmctldHost": host + "(127.0.0.1)", "SlurmUser": me.Username,
		"AuthType": "auth/none", "CredType": "cred/none", "ProctrackType": "proctrack/linuxproc", "TaskPlugin": "task/none",
		"JobAcctGatherType": "jobacct_gather/none", "AccountingStorageType": "accounting_storage/none",
		"TopologyPlugin": "topology/tree", "SwitchType": "switch/none", "MpiDefault": "none",
		"SlurmctldPort": fmt.Sprint(port), "SlurmdPort": fmt.Sprint(port + 1),
		"StateSaveLocation": dir, "SlurmdSpoolDir": dir,
		"SlurmctldPidFile": filepath.Join(dir, "slurmctld.pid"), "SlurmdPidFile": filepath.Join(dir, "slurmd.pid"),
	} {
		fmt.Fprintf(&b, "%s=%s\n", k, v)
	}
	list := cluster.FormatSlurmHosts(names)
	fmt.Fprintf(&b, "NodeName=%s NodeAddr=127.0.0.1 Port=[%d-%d] CPUs=1 State=FUTURE\n", list, port+1, port+len(names))
	fmt.Fprintf(&b, "PartitionName=all Nodes=%s\n", list)
	conf := filepath.Join(dir, "slurm.conf")
	write(t, conf, b.String())
	return conf
}
