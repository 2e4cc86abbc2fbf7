package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/agent"
	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/client"
	"busbar.dev/fleet/hub"
	"busbar.dev/input/profile"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/internal/test/freeport"
	"busbar.dev/launch/profiler"
)

// quickAgent is an agent that beats twice a second: URL CREDS FOLDER MEET.
func quickAgent() {
	cfg := agent.Config{
		Name: "n1", Bus: bus.Config{URLs: []string{os.Args[1]}, Creds: os.Args[2]}, Dir: os.Args[3], Meet: os.Args[4],
		Beat: 500 * time.Millisecond, Version: "test",
		Measure: func(context.Context, *fleet.Part, func(int, int, string)) (*fleet.Measured, error) {
			return nil, context.Canceled
		},
	}
	if err := agent.Run(context.Background(), cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitCannot)
	}
}

// TestAgentKilledUnderJob kills the agent of a node and starts it again while a process calls the profiler plugin: the
// process goes on, the server hears of its operations again, and of none twice.
func TestAgentKilledUnderJob(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server and agents several times")
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	quick, err := exec.LookPath("quick-agent")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	source, lib, drive := filepath.Join(dir, profiler.SourceName), filepath.Join(dir, profiler.LibraryName),
		filepath.Join(dir, "drive")
	if err := os.WriteFile(source, []byte(profiler.Source()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"-O2", "-shared", "-fPIC", "-o", lib, source},
		{"-O1", "-w", "-rdynamic", "-pthread", "-o", drive, "../../launch/profiler/testdata/drive.c", "-ldl"},
	} {
		if out, err := exec.CommandContext(t.Context(), cc, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	f := newServedFleet(t)
	creds := filepath.Join(dir, "node.creds")
	if code, _, errs := f.busbar("serve", "token", "node", "n1", "-o", creds); code != exitDone {
		t.Fatal(errs)
	}
	start := func() *exec.Cmd {
		c := exec.CommandContext(t.Context(), quick, "nats://"+f.bus, creds, filepath.Join(dir, "agent"), freeport.Address(t))
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	stop := filepath.Join(dir, "stop")
	name := fmt.Sprintf("steady-%d", os.Getpid())
	job := exec.CommandContext(t.Context(), drive, lib, "5", "steady", "1000000", "2000", stop)
	job.Env = append(os.Environ(), "BUSBAR_JOB="+name, "RANK=0", "WORLD_SIZE=2")
	var said strings.Builder
	job.Stdout, job.Stderr = &said, &said
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		rings, _ := filepath.Glob(filepath.Join(profile.Folder, fmt.Sprintf("busbar-%d-*.ring", job.Process.Pid)))
		for _, r := range rings {
			os.Remove(r)
		}
	})
	ended := make(chan error, 1)
	go func() { ended <- job.Wait() }()
	cl := client.New(client.Options{Folder: client.Folder{Data: f.data}, Server: "http://" + f.page})
	heard := func() (int, time.Time) {
		var r hub.JobsReply
		if len(ended) > 0 {
			t.Fatalf("the job ended: %v\n%s", <-ended, said.String())
		}
		if err := cl.Call(t.Context(), "GET", "/api/fleet/jobs", nil, &r); err != nil {
			t.Log(err)
		}
		for _, j := range r.Jobs {
			if j.Name == name && len(j.Rows) == 1 {
				return j.Rows[0].Count, r.To
			}
		}
		return 0, time.Time{}
	}
	a := start()
	for range 3 {
		eventually.Holds(t, "the server hears of the job", func() bool { n, _ := heard(); return n > 0 })
		if err := a.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = a.Wait()
		at := time.Now()
		a = start()
		eventually.Holds(t, "the server hears of the job from the agent that started again",
			func() bool { _, to := heard(); return to.After(at) })
	}
	count, _ := heard()
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err = <-ended
	_, text, _ := strings.Cut(said.String(), "steady ")
	calls := 0
	if _, scan := fmt.Sscan(text, &calls); err != nil || scan != nil || count == 0 || count > calls {
		t.Fatalf("%d operations heard of; the job: %v\n%s", count, err, said.String())
	}
	t.Logf("%d of %d operations heard of, the agent killed three times", count, calls)
	_ = a.Process.Kill()
	_ = a.Wait()
}
