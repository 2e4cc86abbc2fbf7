package query

import (
	"context"
	"fmt"
	"strings"

	"busbar.dev/engine/ranks"
	"busbar.dev/internal/words"
)

// SelfTest asks whether this program works on this machine: each part once, on a case whose answer is known.
type SelfTest struct{}

// SelfTestDoc is the answer to SelfTest.
type SelfTestDoc struct {
	ReleaseDoc
	Checks []SelfCheck `json:"checks"`
	Failed int         `json:"failed"`
}

// SelfCheck is one part and what it did.
type SelfCheck struct {
	Name    string  `json:"name"`
	Result  string  `json:"result,omitempty"` // what was checked
	Error   string  `json:"error,omitempty"`  // empty: it passed
	Seconds float64 `json:"seconds"`
}

// Wrong reports a check that failed.
func (d *SelfTestDoc) Wrong() bool { return d.Failed > 0 }

// selfChecks are the parts, in the order of the data's path. Each returns what it checked.
var selfChecks = []struct {
	name string
	run  func(context.Context, Env) (string, error)
}{
	{"machine", selfMachine},
	{"collectives", selfCollectives},
	{"predict", selfPredict},
	{"step", selfStep},
	{"doctor", selfDoctor},
}

// Run does every check, whether or not others failed.
func (SelfTest) Run(ctx context.Context, env Env) (*SelfTestDoc, error) {
	release, err := Release{}.Run(ctx, env)
	if err != nil {
		return nil, err
	}
	d := &SelfTestDoc{ReleaseDoc: *release}
	env.Note, env.Verbose = nil, nil
	for _, c := range selfChecks {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		done := env.working("checking " + c.name)
		start := env.now()
		result, err := c.run(ctx, env)
		done()
		check := SelfCheck{Name: c.name, Result: result, Seconds: env.now().Sub(start).Seconds()}
		if err != nil {
			check.Error = err.Error()
			d.Failed++
		}
		d.Checks = append(d.Checks, check)
	}
	return d, nil
}

// selfMachine: a machine without GPUs is no failure, one that cannot be read is.
func selfMachine(ctx context.Context, env Env) (string, error) {
	if env.Machine == nil {
		return "skipped: machines are read on Linux only", nil
	}
	d, err := Map{}.Run(ctx, env)
	if err != nil {
		return "", err
	}
	return "read this machine: " + words.Plural(d.Summary.GPUs, "GPU") + ", " + words.Plural(d.Summary.NICs, "NIC"), nil
}

// selfCollectives runs one among ranks in memory and compares every element.
func selfCollectives(ctx context.Context, env Env) (string, error) {
	job := ranks.DefaultJob()
	job.Ranks, job.Transport = 4, "mem"
	q := Bench{Min: "64K", Max: "64K", Iters: 1, Check: true}
	if err := prepare(&q); err != nil {
		return "", err
	}
	d, err := q.RunOn(ctx, env, Ranks[*BenchDoc]{Job: job})
	if err != nil {
		return "", err
	}
	if wrong := d.WrongElements(); wrong > 0 {
		return "", fmt.Errorf("%d elements of an all_reduce are wrong; expected none", wrong)
	}
	return "all_reduce among 4 ranks in memory is exact", nil
}

// selfPredict: four A100s are published as fastest on one node (docs/baskerville.md).
func selfPredict(ctx context.Context, env Env) (string, error) {
	d, err := Predict{Cluster: "baskerville", Compare: "1x4,4x1", Size: "1.32GB"}.Run(ctx, env)
	if err != nil {
		return "", err
	}
	chosen := map[string]float64{}
	for _, r := range d.Rows {
		if r.Chosen {
			chosen[string(r.Layout)] = r.Time.Seconds()
		}
	}
	if chosen["1x4"] <= 0 || chosen["1x4"] >= chosen["4x1"] {
		return "", fmt.Errorf("1x4 and 4x1 of the reference cluster take %.3g and %.3g s; expected ascending times",
			chosen["1x4"], chosen["4x1"])
	}
	return "layouts of the reference cluster are in their measured order", nil
}

func selfStep(ctx context.Context, env Env) (string, error) {
	d, err := Step{Job: Job{Cluster: "dgx-h100:2", Model: "llama3-8b", Parallel: "zero=3"}}.Run(ctx, env)
	if err != nil {
		return "", err
	}
	if len(d.Rows) == 0 || d.Rows[0].MFU <= 0 || d.Rows[0].MFU >= 1 {
		return "", fmt.Errorf("a step of llama3-8b on dgx-h100:2 has %d rows; expected one with an MFU between 0 and 100%%",
			len(d.Rows))
	}
	return fmt.Sprintf("llama3-8b on dgx-h100:2: MFU %.0f%%", 100*d.Rows[0].MFU), nil
}

// selfDoctor: what NCCL prints in a container with Docker's default /dev/shm.
func selfDoctor(ctx context.Context, env Env) (string, error) {
	const want = "shm-too-small"
	env.Stdin = strings.NewReader("node1:100:200 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\n" +
		"node1:100:200 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-8JkA2b to 33030532 bytes\n")
	d, err := Doctor{Sources: []string{"-"}}.Run(ctx, env)
	if err != nil {
		return "", err
	}
	if len(d.Findings) == 0 || d.Findings[0].ID != want {
		return "", fmt.Errorf("a log of a full /dev/shm has %d findings; expected %s first", len(d.Findings), want)
	}
	return "named the cause of a known log", nil
}
