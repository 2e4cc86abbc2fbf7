package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/agent"
	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/hub"
	"busbar.dev/input/profile"
	"busbar.dev/internal/eventually"
	"busbar.dev/launch/profiler"
)

// quickAgent is an agent that beats ten times a second: URL CREDS FOLDER MEET.
func quickAgent() {
	cfg := agent.Config{
		Name: "n1", Bus: bus.Config{URLs: []string{os.Args[1]}, Creds: os.Args[2]}, Dir: os.Args[3], Meet: os.Args[4], Beat: 100 * time.Millisecond, Version: "test",
		Measure: func(context.Context, *fleet.Part, func(int, int, string)) (*fleet.Measured, error) {
			return nil, context.Canceled
		},
	}
	if err := agent.Run(context.Background(), cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitCannot)
	}
}

// TestAgentKilledUnderJob kills the agent of a node and starts it again while a process calls the profiler plugin: the process goes
// on, the server hears of its operations again, and of none twice.
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
	source, lib, drive := filepath.Join(dir, profiler.SourceName), filepath.Join(dir, profiler.LibraryName), filepath.Join(dir, "drive")
	if err := os.WriteFile(source, []byte(profiler.Source()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"-O2", "-shared", "-fPIC", "-o", lib, source}, {"-O1", "-w", "-rdynamic", "-pthread", "-o", drive, "../../launch/profiler/testdata/drive.c", "-ldl"},
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
		c := exec.CommandContext(t.Context(), quick, "nats://"+f.bus, creds, filepath.Join(dir, "agent"), freeAddress(t))
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	const calls = 4000
	name := fmt.Sprintf("steady-%d", os.Getpid())
	job := exec.CommandContext(t.Context(), drive, lib, "5", "steady", fmt.Sprint(calls), "2000")
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
	over := func() bool { return len(ended) > 0 }
	count := 0
	heard := func() (int, time.Time) {
		r := f.jobs(t)
		for _, j := range r.Jobs {
			if j.Name == name && len(j.Rows) == 1 {
				return j.Rows[0].Count, r.To
			}
		}
		return 0, time.Time{}
	}
	a := start()
	for range 3 {
		eventually.Holds(t, "the server hears of the job", func() bool { count, _ = heard(); return count > 0 || over() })
		if err := a.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = a.Wait()
		at := time.Now()
		a = start()
		eventually.Holds(t, "the server hears of the job from the agent that started again", func() bool { _, to := heard(); return to.After(at) || over() })
	}
	if err := <-ended; err != nil || !strings.Contains(said.String(), fmt.Sprintf("steady %d\n", calls)) {
		t.Fatalf("the job: %v\n%s", err, said.String())
	}
	time.Sleep(300 * time.Millisecond) // the last beats
	if count, _ = heard(); count > calls {
		t.Errorf("%d operations heard of %d", count, calls)
	}
	t.Logf("%d of %d operations in the last minute's report, the agent killed three times", count, calls)
	_ = a.Process.Kill()
	_ = a.Wait()
}

// jobs is what the server says of the fleet's jobs.
func (f *servedFleet) jobs(t *testing.T) (r hub.JobsReply) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+f.page+"/api/fleet/jobs", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}
