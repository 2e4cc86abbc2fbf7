//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/doctor/rates"
	"busbar.dev/engine"
	"busbar.dev/engine/ranks"
	"busbar.dev/finding"
	"busbar.dev/input/profile"
	"busbar.dev/internal/test/ringfile"
	"busbar.dev/unit"
)

// pairRounds are the pairs of four ranks, two at a time, as groups of a job that communicate at once.
var pairRounds = [][2][2]int{{{0, 1}, {2, 3}}, {{0, 2}, {1, 3}}, {{0, 3}, {1, 2}}}

const (
	trainSteps = 16
	trainSize  = 192 * unit.KiB
)

// labTrainer is a rank of a job whose collectives go over real cables, recorded as the plugin for NCCL does it: FOLDER
// LATE-RANK.
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
	r := &profile.Ring{
		PID: 1000 + me, Host: fmt.Sprintf("node%d", me), Job: "lab", Rank: me, World: cfg.Size, Created: time.Now(),
	}
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
				c.Rank, c.Size, c.Meet, c.Job = at, 2, filepath.Join(dir, fmt.Sprintf("meet-%d-%d", p[0], p[1])),
					fmt.Sprint("pair", p)
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
				// which algorithm the engine took is not recorded
				Comm: i, Function: "AllReduce", Kind: coll.AllReduce, Sequence: uint64(step), Type: "Float32",
				Count: uint64(size / 4), Bytes: size,
				Launched: began, Started: true, Ended: true, Took: time.Since(began),
			})
		}
	}
	for _, g := range groups {
		g.Close()
	}
	return os.WriteFile(filepath.Join(dir, fmt.Sprintf("busbar-%d-lab.ring", r.PID)), ringfile.Encode(r), 0o600)
}

// TestJobsInLab tells a NIC at half its rate from a late rank and from a healthy job, over real traffic and by busbar
// jobs.
func TestJobsInLab(t *testing.T) {
	if !quiet() {
		t.Skip("judges what it measures, for minutes; make test-quiet runs it")
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
	site := calibratedLab(t, busbar, program)
	draw := rand.New(rand.NewPCG(24, 5))
	ways := []struct {
		name          string
		words         []string
		right, alarms int
	}{{name: string(rates.ByPeers)}, {name: string(rates.ByCalibrated), words: []string{"-c", site}}}
	for i := range 30 {
		kind, who := []string{"nic", "rank", "none"}[i%3], draw.IntN(4)
		dir := labJob(t, busbar, trainer, kind, who)
		for w := range ways {
			way := &ways[w]
			got, against := labVerdict(t, busbar, dir, way.words...)
			switch {
			case got == fmt.Sprintf("%s node%d", kind, who):
				way.right++
			case kind == "none" && got == "none":
			case kind == "none":
				way.alarms++
				fallthrough
			default:
				t.Logf("by the %s: %s of node%d is called %q", way.name, kind, who, got)
			}
			if against != way.name {
				t.Errorf("judged by the %s, expected the %s", against, way.name)
			}
		}
	}
	for _, way := range ways {
		t.Logf("by the %s: told apart in %d of 20 runs; %d false alarms in 10", way.name, way.right, way.alarms)
		if way.right < 18 || way.alarms > 1 {
			t.Errorf("by the %s: %d of 20 right, %d false alarms in 10; expected at least 18 and at most 1", way.name, way.right,
				way.alarms)
		}
	}
}

// calibratedLab is the file of the lab's cluster, as slow as it is there, with a calibration beside it: what a pair of
// its healthy nodes gives.
func calibratedLab(t *testing.T, busbar func(...string) string, program string) string {
	t.Helper()
	dir := t.TempDir()
	site := filepath.Join(dir, "site.yaml")
	busbar("map", "baskerville:4", "-o", site, "-q")
	text, err := os.ReadFile(site)
	if err != nil {
		t.Fatal(err)
	}
	slow := regexp.MustCompile(`rate: "25GB/s[^"]*"`).ReplaceAll(text,
		[]byte(`rate: "12.5MB/s (measured: the lab's cable)"`))
	if bytes.Equal(slow, text) {
		t.Fatalf("no link of 25 GB/s in\n%s", text)
	}
	if err := os.WriteFile(site, slow, 0o600); err != nil {
		t.Fatal(err)
	}
	words := []string{"calibrate", "-c", site, "-l", "2x1", "-o", filepath.Join(dir, "site.calibration.yaml"), "-q"}
	// Sizes close to that of the job: what is left out of a fit is then told by its neighbours.
	for i, size := range []string{"128K", "160K", "192K", "224K", "256K"} {
		out := busbar("lab", "exec", "--name", "jobs", "-l", "2x1", "all", "--", program, "bench", "-b", size, "-e", size)
		// ranks stand for its GPUs
		out = strings.ReplaceAll(strings.ReplaceAll(out, "node0| ", ""), "[0x00] CPU", "[0x01] NVIDIA A100-SXM4-40GB")
		file := filepath.Join(dir, fmt.Sprintf("bench%d.txt", i))
		if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
			t.Fatal(err)
		}
		words = append(words, file)
	}
	t.Log(busbar(words...))
	return site
}

// labJob runs a job with a fault, and gives the folder of its rings.
func labJob(t *testing.T, busbar func(...string) string, trainer, kind string, who int) string {
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
	return dir
}

// labVerdict is what busbar jobs says of a job, and by what it judged the pairs: nic NODE, rank NODE, or none.
func labVerdict(t *testing.T, busbar func(...string) string, dir string, words ...string) (verdict, against string) {
	t.Helper()
	var doc struct {
		Findings []finding.Finding
		Jobs     []struct{ Rows []rates.Row }
	}
	if err := json.Unmarshal([]byte(busbar(append([]string{"jobs", dir, "--json", "--fail-on", "never"}, words...)...)),
		&doc); err != nil {
		t.Fatal(err)
	}
	for _, r := range doc.Jobs[0].Rows {
		if r.Ranks == 2 {
			against = string(r.Against)
		}
	}
	got := map[string]bool{}
	for _, f := range doc.Findings {
		if f.Severity < finding.Warn {
			continue
		}
		name := map[finding.Kind]string{"slow-collective": "nic", "late-rank": "rank"}[f.Kind]
		got[name+" "+strings.Join(f.Nodes, ",")] = true
	}
	list := slices.Sorted(maps.Keys(got))
	if len(list) == 0 {
		return "none", against
	}
	return strings.Join(list, "; "), against
}
