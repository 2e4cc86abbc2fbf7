package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"busbar.dev/internal/failure"
	"busbar.dev/lab"
	"busbar.dev/predict"
	"busbar.dev/unit"
)

// labFolder is where this user's labs keep their files.
func labFolder() lab.Folder {
	if d := os.Getenv("BUSBAR_LAB_DIR"); d != "" {
		return lab.Folder(d)
	}
	if os.Geteuid() == 0 {
		return "/run/busbar-lab"
	}
	if d := os.Getenv("XDG_RUNTIME_DIR"); d != "" {
		return lab.Folder(filepath.Join(d, "busbar-lab"))
	}
	return lab.Folder(filepath.Join(os.TempDir(), fmt.Sprintf("busbar-lab-%d", os.Geteuid())))
}

// labError sorts an error of a lab: a wrong request is the input's fault.
func labError(err error) error {
	var wrong *lab.RequestError
	if err == nil || errors.As(err, &wrong) {
		return err
	}
	return failure.Cannot(err)
}

// plan is what the flags ask for.
func (c *labUpCmd) plan(e *env) (*lab.Plan, error) {
	cl, err := e.load([]string{c.Cluster}, c.common)
	if err != nil {
		return nil, err
	}
	o, err := c.options()
	if err != nil {
		return nil, err
	}
	if c.Layout != "" {
		if o.Nodes, o.GPUs, err = predict.ParseLayout(c.Layout); err != nil {
			return nil, err
		}
	}
	return lab.New(cl, o)
}

// options are the choices that up, check and step share.
func (c *labMake) options() (o lab.Options, err error) {
	o = lab.Options{Spines: c.Spines, MTU: c.MTU, Local: c.Local, Inside: lab.Inside(c.Inside)}
	if c.Scale != "" {
		if o.Scale, err = lab.ParseScale(c.Scale); err != nil {
			return o, fmt.Errorf("--%w", err)
		}
	}
	if c.Staging != "" {
		if o.Staging, err = unit.ParseRate(c.Staging); err != nil {
			return o, fmt.Errorf("--staging: %w", err)
		}
	}
	if c.Local && c.Staging == "" {
		return o, errors.New("--staging-local: there is no such path without --staging RATE")
	}
	if c.Spines < 1 || c.Spines > 16 || c.MTU != 0 && (c.MTU < 576 || c.MTU > 65000) {
		return o, fmt.Errorf("--spines %d --mtu %d: expected 1 to 16 spines and 576 to 65000 bytes", c.Spines, c.MTU)
	}
	return o, nil
}

// Run makes a lab.
func (c *labUpCmd) Run(e *env) error {
	p, err := c.plan(e)
	if err != nil {
		return err
	}
	if err := lab.CheckName(c.Name); err != nil {
		return err
	}
	s, err := startLab(e, lab.Config{Name: c.Name, Plan: p, Rootless: c.Rootless})
	if err != nil {
		return err
	}
	if c.JSON {
		return writeIndented(e.stdout, labDoc(s))
	}
	printLab(e, s)
	if !c.Quiet {
		for _, n := range append(append([]string{}, p.Notes...), s.Notes...) {
			fmt.Fprintln(e.stderr, "busbar: note:", n)
		}
		fmt.Fprintf(e.stderr, "busbar: try `busbar lab exec all -- busbar bench -e 16M`; `busbar lab down` ends it\n")
	}
	return nil
}

// startLab starts a lab with this program as its holder.
func startLab(e *env, cfg lab.Config) (*lab.State, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, failure.Cannot(err)
	}
	cfg.Folder, cfg.Program, cfg.Args = labFolder(), self, []string{"busbar", "lab", "hold"}
	s, err := lab.Start(e.ctx, cfg)
	if err != nil {
		return nil, failure.Cannot(err)
	}
	return s, nil
}

// Run is the life of a holder.
func (labHoldCmd) Run(*env) error { return failure.Cannot(lab.Hold()) }

// Run ends labs.
func (c *labDownCmd) Run(e *env) error {
	folder := labFolder()
	names := []string{c.Name}
	if c.Name == "" {
		var err error
		if names, err = folder.Names(); err != nil {
			return failure.Cannot(err)
		}
		if len(names) > 1 && !c.All {
			return fmt.Errorf("%d labs have files here (%s); say which with --name, or --all", len(names), strings.Join(names, ", "))
		}
	}
	ended := []string{}
	var failed error
	for _, n := range names {
		was, err := folder.Down(n)
		failed = errors.Join(failed, err) // the others end all the same
		if was {
			ended = append(ended, n)
		}
	}
	if c.JSON {
		if err := writeIndented(e.stdout, map[string]any{"ended": ended}); err != nil {
			return err
		}
		return labError(failed)
	}
	for _, n := range ended {
		fmt.Fprintf(e.stdout, "lab %s is down\n", n)
	}
	if failed != nil {
		return labError(failed)
	}
	if len(ended) == 0 && !c.Quiet {
		fmt.Fprintln(e.stderr, "busbar: no lab is up")
	}
	return nil
}

// Run breaks something.
func (c *labFaultCmd) Run(e *env) error {
	f, err := lab.ParseFault(c.Kind, c.Where, c.What)
	if err != nil {
		return err
	}
	l, err := labFolder().Open(c.Name)
	if err != nil {
		return labError(err)
	}
	if err := l.Fault(f); err != nil {
		return labError(err)
	}
	return c.faults(e, c.common)
}

// Run ends faults.
func (c *labHealCmd) Run(e *env) error {
	l, err := labFolder().Open(c.Name)
	if err != nil {
		return labError(err)
	}
	if _, err := l.Heal(c.What); err != nil {
		return labError(err)
	}
	return c.faults(e, c.common)
}

// faults prints those that are in place.
func (n *labName) faults(e *env, o common) error {
	l, err := labFolder().Open(n.Name)
	if err != nil {
		return labError(err)
	}
	if o.JSON {
		return writeIndented(e.stdout, map[string]any{"faults": l.State.Faults})
	}
	if len(l.State.Faults) == 0 {
		fmt.Fprintln(e.stdout, "no faults")
	}
	for _, f := range l.State.Faults {
		fmt.Fprintln(e.stdout, f)
	}
	return nil
}
