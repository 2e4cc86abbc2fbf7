package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/launch"
	"busbar.dev/launch/profiler"
	"busbar.dev/nccl"
	"busbar.dev/step"
)

// PlanFiles are the files that start a plan.
type PlanFiles struct {
	Dir          string           `json:"dir"`
	Plan         int              `json:"plan"`               // which of the plans, from 1
	Files        []string         `json:"files"`              // plan.json last
	Left         []launch.Left    `json:"left_out,omitempty"` // files that the plan has no use for
	Placeholders bool             `json:"placeholder_hosts"`  // the hosts' names are made up
	Settings     []launch.Setting `json:"settings"`           // of NCCL, for all ranks
	// Texts are the files, in the order of Files: plan.json, which busbar exec starts from, is the last. Write writes
	// them.
	Texts []launch.File `json:"texts"`
}

// emit makes the files of the plan that was picked.
func (x *planned) emit(ctx context.Context) (*PlanFiles, error) {
	if x.Pick > len(x.steps) {
		return nil, fmt.Errorf("--pick %d; there are %d plans (--top)", x.Pick, len(x.steps))
	}
	plan, layout, err := x.launch()
	if err != nil {
		return nil, err
	}
	detected, err := x.detected(ctx)
	if err != nil {
		return nil, err
	}
	topologies, right := plan.Topologies(detected)
	files, left, err := plan.Files(cmp.Or(x.Folder, x.Emit))
	if err != nil {
		return nil, err
	}
	fabric := step.NewFabric(x.query.Cluster, layout, x.steps[x.Pick-1].job.Split, x.query.Version)
	tables, none, err := plan.Tables(fabric)
	if err != nil {
		return nil, err
	}
	own := []launch.File{{Name: profiler.SourceName, Text: profiler.Source()}}
	files, left, err = x.chosenFiles(slices.Concat(files, topologies, tables, own), slices.Concat(left, right, none))
	if err != nil {
		return nil, err
	}
	readme, err := plan.Readme(files, left)
	if err != nil {
		return nil, err
	}
	// plan.json is the first of launch
	d := &PlanFiles{
		Dir: x.Emit, Plan: x.Pick, Placeholders: plan.Placeholders, Settings: orEmpty(plan.Settings),
		Left: left, Texts: append(append(files[1:], readme), files[0]),
	}
	for _, f := range d.Texts {
		d.Files = append(d.Files, f.Name)
	}
	return d, nil
}

// chosenFiles are those of the kinds that were asked for. Where nobody asks, one machine that is no preset of a
// cluster's node gets those that start a plan without a scheduler, and everybody else all of them.
func (p *training) chosenFiles(files []launch.File, left []launch.Left) ([]launch.File, []launch.Left, error) {
	all := append(launch.Kinds(), "all", "none")
	kinds := slices.Clone(p.Files)
	if err := choose("--files", p.Files, all, &kinds); err != nil {
		return nil, nil, err
	}
	alone := len(kinds) == 0 && len(p.cluster.Hosts) == 1 && p.Hosts == "" && !clusterNode(p.Cluster)
	if len(kinds) == 0 && !alone || slices.Contains(kinds, "all") {
		return files, left, nil
	}
	if p.Tuner {
		kinds = append(kinds, "tuner") // the plan counts on it
	}
	files, left = launch.Of(kinds, files, left)
	if alone {
		left = append(left, launch.Left{
			Name: "other files",
			Reason: "the cluster is one machine; --files all writes those for Slurm, Kubernetes, MPI and elastic jobs, and " +
				"NCCL's tuner and profiler plugins",
		})
	}
	return files, left, nil
}

// clusterNode reports a preset whose nodes have NICs for a network: one of them is a part of a cluster, with a
// scheduler.
func clusterNode(name string) bool {
	name, _, _ = strings.Cut(name, ":")
	return hardware.FindPreset(name).NICs > 0
}

// launch is the plan that was picked with NCCL's settings, and who takes part: it may take fewer nodes than there are.
func (x *planned) launch() (*launch.Plan, nccl.Layout, error) {
	var hosts []string
	var err error
	q, picked := x.query, x.steps[x.Pick-1]
	if x.order != nil {
		hosts = x.order.hosts(q.Layout)
	} else if x.Hosts != "" {
		if hosts, err = parseHosts(x.Hosts); err != nil {
			return nil, nil, err
		}
	}
	layout := q.Layout[:picked.job.Split.Ranks()]
	plan, err := launch.New(q.Cluster, layout, q.Version, picked.job, hosts, hasMadeUpNames(q.Cluster))
	if err != nil {
		return nil, nil, err
	}
	plan.Made, plan.Job.Step = cmp.Or(x.Made, ShellLine(CommandLine([]string{"plan"}, x.Plan))), picked.Step
	plan.Job.Memory = (picked.Memory.Total() - picked.Memory.Driver).Bytes()
	plan.Job.Check = x.checkCommand(picked)
	if x.order != nil {
		plan.Given = x.order.doc.Given
	}
	return plan, layout, plan.Tune(q.Cluster, layout, q.Version, picked.job, q.GPU)
}

// detected is what a node shows of itself, or nil.
func (p *training) detected(ctx context.Context) (*cluster.NodeType, error) {
	if p.Detected == "" {
		return nil, nil
	}
	quiet := *p.env
	quiet.Verbose = nil
	c, err := quiet.load(ctx, []string{p.Detected})
	if err != nil {
		return nil, fmt.Errorf("--detected: %w", err)
	}
	if len(c.Types) != 1 {
		return nil, fmt.Errorf("--detected %s: %d kinds of node; expected what one node shows", p.Detected, len(c.Types))
	}
	return c.Types[0], nil
}

// Write writes the files of a plan into Dir; see launch.Write.
func (d *PlanFiles) Write(force bool) error { return launch.Write(d.Dir, d.Texts, force) }
