package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"busbar.dev/engine/ranks"
	"busbar.dev/internal/failure"
	"busbar.dev/lab"
	"busbar.dev/report"
)

// labCmd is the family of commands about practice clusters.
type labCmd struct {
	Up     labUpCmd     `cmd:"" help:"Start a cluster file as network namespaces on this machine."`
	Exec   labExecCmd   `cmd:"" help:"Run a program on a node of the lab, or on all."`
	Shell  labShellCmd  `cmd:"" help:"Open a shell on a node of the lab."`
	Status labStatusCmd `cmd:"" help:"List running labs with their nodes, addresses and faults."`
	Down   labDownCmd   `cmd:"" help:"End a lab and everything in it."`
	Fault  labFaultCmd  `cmd:"" help:"Inject a fault into a link or a node of the lab."`
	Heal   labRepairCmd `cmd:"" help:"Remove faults."`
	Hold   labHoldCmd   `cmd:"" hidden:"" help:"Process that holds a lab; started by lab up."`
}

// labName are the flags of commands about one lab.
type labName struct {
	Name string `placeholder:"NAME" help:"Name of the lab, when several are up."`
}

type labUpCmd struct {
	common
	settings
	Cluster string `arg:"" help:"Cluster file, preset, or any file that map reads, with an optional node count: baskerville:2."`
	Layout  string `short:"l" placeholder:"NODESxGPUS" help:"Layout: 2x2 is two nodes with two ranks each (default: all nodes, one rank per GPU)."`
	Name    string `default:"lab" help:"Name of the lab, to run several (default lab)."`
	lab.Settings
}

type labExecCmd struct {
	common
	labName
	Layout string   `short:"l" placeholder:"NODESxPROCESSES" help:"With all: layout, NODESxPROCESSES (default: the lab's own)."`
	Node   string   `arg:"" help:"Name of a node, or all."`
	Args   []string `arg:"" passthrough:"" name:"command" help:"Program and its arguments, after --."`
}

type labShellCmd struct {
	labName
	Node string `arg:"" help:"Name of a node."`
}

type labStatusCmd struct {
	common
	labName
}

type labDownCmd struct {
	common
	labName
	All bool `help:"All labs of this user."`
}

type labFaultCmd struct {
	common
	labName
	Kind  string `arg:"" enum:"link,node" help:"link or node."`
	Where string `arg:"" help:"NODE:NIC for a link, NODE:GPU-GPU for a link inside a node (rate only), or NODE."`
	What  string `arg:"" help:"Fault: rate=50%, loss=1%, down or flap[=1s] of a link; pause or kill of a node."`
}

type labRepairCmd struct {
	common
	labName
	What string `arg:"" optional:"" help:"NODE:NIC, NODE:GPU-GPU, or NODE for the node and its links (default: everything)."`
}

type labHoldCmd struct{}

// exitedWith ends the program with another program's exit code.
type exitedWith int

func (x exitedWith) Error() string { return fmt.Sprintf("exit code %d", int(x)) }

// withCode is the end of a command that ran a program.
func withCode(code int, err error) error {
	if err == nil && code != 0 {
		return exitedWith(code)
	}
	return err
}

// Run makes a lab.
func (c *labUpCmd) Run(e *env) error {
	cl, err := e.cluster(c.common, c.Cluster)
	if err != nil {
		return err
	}
	p, err := c.Plan(cl, c.Layout)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return failure.Cannot(err)
	}
	s, err := lab.Start(e.ctx, lab.Config{
		Folder: lab.DefaultFolder(), Name: c.Name, Plan: p, Program: self, Args: []string{"busbar", "lab", "hold"},
		Rootless: c.Rootless,
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return report.JSON(e.stdout, s.Document())
	}
	if err := report.Print(e.stdout, e.text(e.stdout, c.common), report.Lab, s); err != nil {
		return err
	}
	for _, n := range s.AllNotes() {
		c.say(e, "busbar: note: %s", n)
	}
	c.say(e, "busbar: try `busbar lab exec all -- busbar bench -e 16M`; `busbar lab down` ends it")
	return nil
}

// Run is the life of a holder.
func (labHoldCmd) Run(*env) error { return failure.Cannot(lab.Hold()) }

// Run ends labs.
func (c *labDownCmd) Run(e *env) error {
	folder := lab.DefaultFolder()
	names := []string{c.Name}
	if c.Name == "" {
		var err error
		if names, err = folder.Names(); err != nil {
			return err
		}
		if len(names) > 1 && !c.All {
			return fmt.Errorf("%d labs have files here (%s); say which with --name, or --all", len(names),
				strings.Join(names, ", "))
		}
	}
	ended, failed := folder.DownAll(names)
	if c.JSON {
		if err := report.JSON(e.stdout, lab.DownDoc{Ended: ended}); err != nil {
			return err
		}
		return failed
	}
	for _, n := range ended {
		fmt.Fprintf(e.stdout, "lab %s is down\n", n)
	}
	if failed == nil && len(ended) == 0 {
		c.say(e, "busbar: no lab is up")
	}
	return failed
}

// Run shows what is up.
func (c *labStatusCmd) Run(e *env) error {
	folder := lab.DefaultFolder()
	names, err := folder.Names()
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return c.Name != "" && n != c.Name })
	states, dead, err := folder.States(names)
	for _, n := range dead {
		c.say(e, "busbar: %s: the holder has died; `busbar lab down --name %[1]s` removes what is left", n)
	}
	if c.JSON {
		err = errors.Join(err, report.JSON(e.stdout, lab.Documents(states)))
	} else {
		err = errors.Join(err, report.Print(e.stdout, e.text(e.stdout, c.common), report.Labs, states))
	}
	if err == nil && len(states) == 0 {
		if !c.JSON {
			c.say(e, "busbar: no lab is up")
		}
		return errWrong
	}
	return err
}

// Run breaks something.
func (c *labFaultCmd) Run(e *env) error {
	f, err := lab.ParseFault(c.Kind, c.Where, c.What)
	if err != nil {
		return err
	}
	return c.change(e, c.common, func(l *lab.Lab) ([]lab.Fault, error) { return l.Fault(f) })
}

// Run ends faults.
func (c *labRepairCmd) Run(e *env) error {
	return c.change(e, c.common, func(l *lab.Lab) ([]lab.Fault, error) { return l.Repair(c.What) })
}

// change changes the faults of a lab and prints those that are in place then.
func (n *labName) change(e *env, o common, do func(*lab.Lab) ([]lab.Fault, error)) error {
	l, err := lab.DefaultFolder().Open(n.Name)
	if err != nil {
		return err
	}
	faults, err := do(l)
	if err != nil {
		return err
	}
	return show(e, o, lab.FaultsDoc{Faults: faults}, report.LabFaults)
}

// Run runs a program on one node or on all.
func (c *labExecCmd) Run(e *env) error {
	args := c.Args
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return errors.New("no program; expected busbar lab exec NODE -- PROGRAM ARGUMENTS…")
	}
	l, err := lab.DefaultFolder().Open(c.Name)
	if err != nil {
		return err
	}
	p, err := labProgram(c.Node, args)
	if err != nil {
		return err
	}
	if c.Node != "all" {
		if c.Layout != "" {
			return errors.New("-l is for all nodes: busbar lab exec -l 2x2 all -- …")
		}
		if l.State.Plan.NodeByName(c.Node) < 0 {
			return fmt.Errorf("no node %q in the lab; expected all or one of those that `busbar lab status` lists", c.Node)
		}
		return withCode(l.Run(e.ctx, p))
	}
	slots, err := l.State.Plan.Ranks(c.Layout)
	if err != nil {
		return err
	}
	return withCode((&lab.Job{Lab: l, Slots: slots, Stdout: e.stdout, Stderr: e.stderr}).Run(e.ctx, p))
}

// labProgram is a program with this process's environment, folder and streams.
func labProgram(node string, args []string) (p lab.Program, err error) {
	p = lab.Program{Node: node, Args: args, Env: os.Environ(), Files: [3]*os.File{os.Stdin, os.Stdout, os.Stderr}}
	if p.Path, err = findProgram(args[0]); err != nil {
		return p, err
	}
	p.Dir, err = os.Getwd()
	return p, failure.Cannot(err)
}

// findProgram finds a program as a shell does; busbar is this one where no other is found.
func findProgram(name string) (string, error) {
	path, err := ranks.FindProgram("", name)
	if err != nil && name == "busbar" {
		return os.Executable()
	}
	return path, failure.Cannot(err)
}

// Run opens a shell on a node.
func (c *labShellCmd) Run(e *env) error {
	l, err := lab.DefaultFolder().Open(c.Name)
	if err != nil {
		return err
	}
	if l.State.Plan.NodeByName(c.Node) < 0 {
		return fmt.Errorf("no node %q in the lab; `busbar lab status` lists them", c.Node)
	}
	p, err := labProgram(c.Node, []string{cmp.Or(os.Getenv("SHELL"), "/bin/sh")})
	if err != nil {
		return err
	}
	p.Args, p.Env = []string{p.Path}, append(p.Env, "PS1="+c.Node+"$ ")
	return withCode(l.Shell(e.ctx, p))
}
