package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/failure"
	"busbar.dev/launch"
	"busbar.dev/nccl"
	"busbar.dev/step"
)

// emitFlags say where a plan's files go.
type emitFlags struct {
	Emit  string `placeholder:"DIR" help:"Write the files that start a plan into DIR: NCCL's settings, Slurm, torchrun, MPI, Kubernetes, Megatron-LM, DeepSpeed, and plan.json for busbar exec."`
	Pick  int    `default:"1" placeholder:"N" help:"With --emit: which of the plans."`
	Hosts string `placeholder:"HOSTLIST" help:"The hosts (gpu[01-08]). Where the cluster has them: plan for these, as a scheduler gave them, in the order of ranks that is fastest. Where its names are made up: their real names, in the order of ranks."`
	Keep  bool   `name:"keep-order" help:"With --hosts: ranks in the order of the list."`
	Shown string `name:"detected" placeholder:"FILE" help:"With --emit: what a node shows of itself (NCCL_TOPO_DUMP_FILE of one of its ranks, lstopo's XML, a copy of /sys). Where the cluster's description has devices nearer or farther, a topology file for NCCL is written."`
	Force bool   `help:"With --emit: write into a folder that is not empty, over files of the same names; those of an earlier plan that this one has no use for are removed."`
}

// emittedDoc is what was written, in the document of --json.
type emittedDoc struct {
	Dir          string           `json:"dir"`
	Plan         int              `json:"plan"`
	Files        []string         `json:"files"`
	Left         []leftDoc        `json:"left_out,omitempty"`
	Placeholders bool             `json:"placeholder_hosts"`
	Settings     []launch.Setting `json:"settings"`
}

type leftDoc struct {
	File   string `json:"file"`
	Reason string `json:"reason"`
}

// check says before the search what could not be written after it.
func (f *emitFlags) check(e *env) error {
	if f.Keep && f.Hosts == "" {
		return errors.New("--keep-order: the order of which hosts? expected --hosts too")
	}
	if f.Emit == "" {
		if f.Force || f.Pick != 1 || f.Shown != "" {
			return errors.New("--pick, --detected and --force are for --emit DIR")
		}
		return nil
	}
	if f.Pick < 1 {
		return fmt.Errorf("--pick %d; expected 1 for the best plan, 2 for the next", f.Pick)
	}
	if err := e.fence.keeps(f.Emit); err != nil {
		return err
	}
	list, err := os.ReadDir(f.Emit)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return failure.Cannot(fmt.Errorf("--emit: %w; expected a folder, or a name for a new one", err))
	case len(list) > 0 && !f.Force:
		return fmt.Errorf("--emit %s: the folder is not empty (%s); take another, or --force to write over files of the same names", f.Emit, list[0].Name())
	}
	return nil
}

// madeUp are names that readers and presets give to nodes without one.
var madeUp = regexp.MustCompile(`^node[0-9]+$`)

// emit writes the files of one plan.
func (f *emitFlags) emit(e *env, p *planned) (*emittedDoc, error) {
	if f.Pick > len(p.rows) {
		return nil, fmt.Errorf("--pick %d; there are %d plans (--top)", f.Pick, len(p.rows))
	}
	plan, layout, err := f.tuned(e, p)
	if err != nil {
		return nil, err
	}
	shown, err := f.shown(e)
	if err != nil {
		return nil, err
	}
	topologies, right := plan.Topologies(shown)
	dir, err := filepath.Abs(f.Emit)
	if err != nil {
		return nil, failure.Cannot(err)
	}
	files, left, err := plan.Files(dir)
	if err != nil {
		return nil, err
	}
	fabric := step.NewFabric(p.query.Cluster, layout, p.rows[f.Pick-1].job.Split, p.query.Version)
	tables, none, err := plan.Tables(fabric)
	if err != nil {
		return nil, err
	}
	files, left = slices.Concat(files, topologies, tables), slices.Concat(left, right, none)
	readme, err := plan.Readme(files, left)
	if err != nil {
		return nil, err
	}
	doc := &emittedDoc{Dir: f.Emit, Plan: f.Pick, Placeholders: plan.Placeholders, Settings: append([]launch.Setting{}, plan.Settings...)}
	return doc, f.write(e, doc, append(files, readme), left)
}

// tuned is the plan that was picked with NCCL's settings, and who takes part: it may take fewer
// nodes than there are.
func (f *emitFlags) tuned(e *env, p *planned) (*launch.Plan, nccl.Layout, error) {
	var hosts []string
	var err error
	q, r := p.query, &p.rows[f.Pick-1]
	if p.order != nil {
		hosts = p.order.hosts(q.Layout)
	} else if f.Hosts != "" {
		if hosts, err = cluster.ParseHosts(f.Hosts); err != nil {
			return nil, nil, fmt.Errorf("--hosts: %w", err)
		}
	}
	placeholder := slices.ContainsFunc(q.Cluster.Hosts, func(h cluster.Host) bool { return madeUp.MatchString(h.Name) })
	layout := q.Layout[:r.job.Split.Ranks()]
	plan, err := launch.New(q.Cluster, layout, q.Version, r.job, hosts, placeholder)
	if err != nil {
		return nil, nil, err
	}
	plan.Made, plan.Job.Step = "busbar "+strings.Join(e.args, " "), r.Step
	if p.order != nil {
		plan.Given = p.order.doc.Given
	}
	return plan, layout, plan.Tune(q.Cluster, layout, q.Version, r.job, q.GPU)
}

// write writes the files and lists them. plan.json goes first and comes last: what exec finds is
// whole, and not an earlier plan's among this one's files.
func (f *emitFlags) write(e *env, doc *emittedDoc, files []launch.File, left []launch.Left) error {
	stale := []string{"plan.json"}
	for _, l := range left { // what an earlier plan left there would pass for this one's
		doc.Left = append(doc.Left, leftDoc{l.Name, l.Reason})
		stale = append(stale, l.Name)
	}
	for _, name := range stale {
		if err := os.Remove(filepath.Join(f.Emit, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return failure.Cannot(err)
		}
	}
	slices.Reverse(files)
	for _, x := range files {
		if err := e.emitFile(filepath.Join(f.Emit, x.Name), x); err != nil {
			return err
		}
		doc.Files = append(doc.Files, x.Name)
	}
	slices.Reverse(doc.Files)
	return nil
}

// shown is what a node shows of itself, or nil.
func (f *emitFlags) shown(e *env) (*cluster.NodeType, error) {
	if f.Shown == "" {
		return nil, nil
	}
	c, err := e.load([]string{f.Shown}, common{Quiet: true})
	if err != nil {
		return nil, fmt.Errorf("--detected: %w", err)
	}
	if len(c.Types) != 1 {
		return nil, fmt.Errorf("--detected %s: %d kinds of node; expected what one node shows", f.Shown, len(c.Types))
	}
	return c.Types[0], nil
}

func (e *env) emitFile(name string, x launch.File) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return failure.Cannot(err)
	}
	// A link is replaced, not followed: what it points to is no file of a plan.
	if info, err := os.Lstat(name); err == nil && info.Mode()&os.ModeSymlink != 0 {
		if err := os.Remove(name); err != nil {
			return failure.Cannot(err)
		}
	}
	err := e.writeFile(name, func(w io.Writer) error {
		_, err := w.Write(x.Text)
		return err
	})
	if err != nil || !x.Run {
		return err
	}
	info, err := os.Stat(name)
	if err == nil { // who may read it may run it
		err = os.Chmod(name, info.Mode().Perm()|info.Mode().Perm()&0o444>>2)
	}
	if err != nil {
		return failure.Cannot(err)
	}
	return nil
}

func (d *emittedDoc) print(w io.Writer) {
	fmt.Fprintf(w, "\nplan %d is in %s: %s\n", d.Plan, d.Dir, strings.Join(d.Files, ", "))
	for _, s := range d.Settings {
		fmt.Fprintf(w, "  %s=%s: %s\n", s.Name, s.Value, s.Reason)
	}
	if len(d.Settings) == 0 {
		fmt.Fprintln(w, "  no setting of NCCL for all ranks: none makes the step faster by 1% or more")
	}
	for _, l := range d.Left {
		fmt.Fprintf(w, "  no %s: %s\n", l.File, l.Reason)
	}
	if d.Placeholders {
		fmt.Fprintln(w, "  host names are placeholders; --hosts gives real ones")
	}
}
