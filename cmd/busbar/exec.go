package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"busbar.dev/internal/failure"
	"busbar.dev/launch"
	"busbar.dev/report"
)

type execCmd struct {
	common
	Plan string `placeholder:"DIR" help:"Folder of busbar plan --emit, or its plan.json (default: this machine's topology)."`
	launch.Exec
	Profile bool     `help:"Record every NCCL operation for busbar jobs: builds busbar's profiler plugin with cc where the user cache has no libnccl-profiler-busbar.so yet, and sets NCCL_PROFILER_PLUGIN (default: off)."`
	DryRun  bool     `name:"dry-run" help:"Print what would be done without starting the program."`
	Args    []string `arg:"" optional:"" passthrough:"" name:"command" help:"Program and its arguments, after --."`
}

// Run becomes the program.
func (c *execCmd) Run(e *env) error {
	args := c.Args
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	switch {
	case len(args) == 0 && !c.DryRun:
		return errors.New("no program; expected busbar exec [--plan DIR] -- PROGRAM ARGUMENTS…")
	case c.JSON && !c.DryRun:
		return errors.New("--json is for --dry-run; standard output is the program's")
	}
	args = withPython(args)
	b, err := c.bind()
	if err != nil {
		return err
	}
	b.Command = append([]string{}, args...)
	if c.Profile {
		if err := c.profile(e, b); err != nil {
			return err
		}
	}
	switch {
	case c.JSON:
		return report.JSON(e.stdout, b)
	case c.DryRun:
		for _, l := range b.Lines() {
			fmt.Fprintln(e.stdout, l)
		}
		return nil
	case c.Verbose:
		for _, l := range b.Lines() {
			fmt.Fprintf(e.stderr, "busbar exec: rank %d: %s\n", b.Rank, l)
		}
	case b.Elsewhere:
		c.say(e, "busbar exec: rank %d on %s: %s", b.Rank, b.Host, b.Notes[0])
	}
	return become(b, args)
}

// withPython puts an interpreter before a script that cannot be started by itself: people of torchrun write train.py.
func withPython(args []string) []string {
	if len(args) == 0 || filepath.Ext(args[0]) != ".py" {
		return args
	}
	info, err := os.Stat(args[0])
	if err != nil || info.IsDir() || info.Mode()&0o111 != 0 && strings.ContainsRune(args[0], '/') {
		return args
	}
	return append([]string{cmp.Or(os.Getenv("PYTHON"), "python3"), "-u"}, args...)
}

// bind finds out what this process is bound and set to.
func (c *execCmd) bind() (*launch.Binding, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, failure.Cannot(err)
	}
	var plan *launch.Plan
	if c.Plan != "" {
		if plan, err = readPlan(c.Plan); err != nil {
			return nil, err
		}
	}
	return c.Exec.Bind(plan, launch.Process{
		Host: host, Env: os.LookupEnv, Node: launch.ReadNode(host, os.DirFS("/")), May: allowed,
		NUMA: func(domain int) bool {
			_, err := os.Stat(fmt.Sprintf("/sys/devices/system/node/node%d", domain))
			return err == nil
		},
		File: c.fileOfPlan,
	})
}

// fileOfPlan is a file in the plan's folder.
func (c *execCmd) fileOfPlan(name string) (string, error) {
	dir := c.Plan
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	file, err := filepath.Abs(filepath.Join(dir, name))
	if err == nil {
		_, err = os.Stat(file)
	}
	return file, err
}

func readPlan(name string) (*launch.Plan, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		name = filepath.Join(name, "plan.json")
	}
	f, err := os.Open(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("--plan: %w; expected a folder of busbar plan --emit, on every node", err)
		}
		return nil, failure.Cannot(err)
	}
	defer f.Close()
	return launch.Read(name, f)
}
