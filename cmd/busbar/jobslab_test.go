package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/ranks"
	"busbar.dev/finding"
	"busbar.dev/input/profile"
	"busbar.dev/unit"
)

// pairRounds are the pairs of four ranks, two at a time, as groups of a job that communicate at once.
var pairRounds = [][2][2]int{{{0, 1}, {2, 3}}, {{0, 2}, {1, 3}}, {{0, 3}, {1, 2}}}

const (
	trainSteps = 16
	trainSize  = 192 * unit.KiB
)

// labTrainer is a rank of a job whose collectives go over real cables, recorded as the plugin for NCCL does it: FOLDER LATE-RANK.
func labTrainer() {
	if err := train(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitCannot)
	}
}

func train(dir, late string) error {
	ctx := context.Background()
	cfg, _, err := ranks.ConfigFromEnv(ranks.ThisProcess())
	if err != nil {
		return err
	}
	cfg.Transport = engine.TCP
	me := cfg.Rank
	r := &profile.Ring{PID: 1000 + me, Host: fmt.Sprintf("node%d", me), Job: "lab", Rank: me, World: cfg.Size, Created: time.Now()}
	var groups []*engine.Group
	var calls []*engine.Call
	join := func(c engine.Config, hash uint64, size unit.Bytes) error {
		g, err := engine.Join(ctx, c)
		if err != nil {
			return err
		}
		call, err := g.Prepare(nil, coll.Op{Kind: coll.AllReduce, Type: coll.Float, Bytes: size})
		if err == nil {
			x := make([]float32, size/4)
			err = call.Bind(engine.Buffers{Send: engine.Bytes(x), Recv: engine.Bytes(x)})
		}
		groups, calls = append(groups, g), append(calls, call)
		r.Comms = append(r.Comms, profile.Comm{Hash: hash, Rank: c.Rank, Ranks: c.Size, Nodes: c.Size})
		return err
	}
	if err := join(cfg, 1, 4*unit.KiB); err != nil {
		return err
	}
	for round, both := range pairRounds {
		for _, p := range both {
			if at := slices.Index(p[:], me); at >= 0 {
				c := cfg
				c.Rank, c.Size, c.Meet, c.Job = at, 2, filepath.Join(dir, fmt.Sprintf("meet-%d-%d", p[0], p[1])), fmt.Sprint("pair", p)
				if err := join(c, uint64(10*(round+1)+p[0]), trainSize); err != nil {
					return err
				}
			}
		}
	}
	for step := range trainSteps {
		compute := time.Duration(rand.Float64() * float64(2*time.Millisecond))
		if strconv.Itoa(me) == late {
			compute += 25 * time.Millisecond
		}
		time.Sleep(compute) // what the rank computes
		for i, call := range calls {
			began := time.Now()
			if _, err := call.Run(ctx); err != nil {
				return err
			}
			size := []unit.Bytes{4 * unit.KiB, trainSize}[min(i, 1)]
			r.Ops = append(r.Ops, profile.Op{
				Comm: i, Function: "AllReduce", Kind: coll.AllReduce, Sequence: uint64(step), Type: "Float32", Count: uint64(size / 4), Bytes: size, // which algorithm the engine took is not recorded
				Launched: began, Started: true, Ended: true, Took: time.Since(began),
			})
		}
	}
	for _, g := range groups {
		g.Close()
	}
	return os.WriteFile(filepath.Join(dir, fmt.Sprintf("busbar-%d-lab.ring", r.PID)), profile.Encode(r), 0o600)
}

// TestJobsInLab tells a NIC at half its rate from a late rank and from a healthy job, over real traffic and by busbar jobs.
func TestJobsInLab(t *testing.T) {
	if os.Getenv("BUSBAR_LONG") == "" {
		t.Skip("measures for minutes; BUSBAR_LONG=1 runs it")
	}
	if !labAllowed(t) {
		t.Skip("needs a lab")
	}
	program := built(t)
	trainer, err := exec.LookPath("lab-trainer")
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "BUSBAR_LAB_DIR="+filepath.Join(t.TempDir(), "lab"))
	busbar := func(words ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, words...)
		cmd.Env = env
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil && len(out) == 0 {
			t.Fatalf("busbar %s: %v\n%s", strings.Join(words, " "), err, errs.String())
		}
		return string(out)
	}
	busbar("lab", "up", "baskerville:4", "-l", "4x1", "--name", "jobs", "--scale", "1/2000", "-q", "--json")
	defer busbar("lab", "down", "--name", "jobs", "--json")
	draw := rand.New(rand.NewPCG(24, 5))
	right, runs := 0, 0
	for i := range 20 {
		kind, who := []string{"nic", "rank"}[i%2], draw.IntN(4)
		runs++
		if got := labVerdict(t, busbar, trainer, kind, who); got == fmt.Sprintf("%s node%d", kind, who) {
			right++
		} else {
			t.Logf("%s of node%d is called %q", kind, who, got)
		}
	}
	alarms := 0
	for range 10 {
		if got := labVerdict(t, busbar, trainer, "none", -1); got != "none" {
			alarms++
			t.Logf("a healthy job is called %q", got)
		}
	}
	t.Logf("told apart in %d of %d runs; %d false alarms in 10", right, runs, alarms)
	if right < 18 || alarms > 1 {
		t.Errorf("%d of %d right, %d false alarms; expected at least 18 and at most 1", right, runs, alarms)
	}
}

// labVerdict runs a job with a fault and gives what busbar jobs says of it: nic NODE, rank NODE, or none.
func labVerdict(t *testing.T, busbar func(...string) string, trainer, kind string, who int) string {
	t.Helper()
	dir, late := t.TempDir(), "-"
	switch kind {
	case "nic":
		busbar("lab", "fault", "--name", "jobs", "--json", "link", fmt.Sprintf("node%d:mlx5_0", who), "rate=50%")
		defer busbar("lab", "heal", "--name", "jobs", "--json")
	case "rank":
		late = strconv.Itoa(who)
	}
	busbar("lab", "exec", "--name", "jobs", "all", "--", trainer, dir, late)
	var doc struct{ Findings []finding.Finding }
	if err := json.Unmarshal([]byte(busbar("jobs", dir, "--json", "--fail-on", "never")), &doc); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, f := range doc.Findings {
		if f.Severity < finding.Warn {
			continue
		}
		name := map[finding.Kind]string{"slow-collective": "nic", "late-rank": "rank"}[f.Kind]
		got[name+" "+strings.Join(f.Nodes, ",")] = true
	}
	list := []string{}
	for k := range got {
		list = append(list, k)
	}
	slices.Sort(list)
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, "; ")
}
