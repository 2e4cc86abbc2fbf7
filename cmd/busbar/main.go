// Busbar tells the people who run distributed GPU training how fast a job will
// go on their cluster, what limits it, and why it is slow.
//
// This release maps, audits and predicts: it reads the topology of a machine or a
// cluster from what its tools print, shows what will hurt, and says how long a
// collective takes there and why.
//
//	$ busbar map dgx-h100:2 --audit
//	$ busbar predict -c dgx-h100:2
//
// Exit codes: 0 done; 1 done, and something is wrong; 2 bad usage or input;
// 3 could not do it; 130 interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"

	"github.com/alecthomas/kong"

	"busbar.dev/internal/failure"
	"busbar.dev/internal/outfile"
	"busbar.dev/internal/texttab"
)

// Exit codes that scripts can use.
const (
	exitDone    = 0
	exitWrong   = 1 // done, and something is wrong: findings, a missed threshold
	exitBad     = 2 // bad usage or bad input
	exitCannot  = 3 // could not do it: missing rights, a dead peer, a limit
	description = "busbar maps a cluster, measures it, predicts on it, plans jobs, diagnoses them and watches the " +
		"fleet.\n\nExit codes: 0 done; 1 done and something is wrong; 2 bad usage or input; 3 could not do it; 130 " +
		"interrupted."
)

// errWrong makes a command that did its work exit with 1.
var errWrong = errors.New("something is wrong")

// command is the subcommands that do more than ask one question; grammar adds the others.
type command struct {
	Map        mapCmd        `cmd:"" help:"Read a machine's or a cluster's topology; print it, convert it, audit it."`
	Bench      benchCmd      `cmd:"" help:"Run collectives between processes and hosts and measure them; also pairs, steps, GPUs."`
	Lab        labCmd        `cmd:"" help:"Run a small cluster in network namespaces on this machine."`
	Predict    predictCmd    `cmd:"" help:"Predict how long a collective takes, what limits it, and which setting would help."`
	Validate   validateCmd   `cmd:"" help:"Compare predictions with measured points."`
	Calibrate  calibrateCmd  `cmd:"" help:"Fit the model's parameters to measurements on a cluster."`
	Sched      schedCmd      `cmd:"" help:"Print or verify the schedule of a collective."`
	Step       stepCmd       `cmd:"" help:"Predict a training step: how long, where the time goes, how much memory."`
	Scale      scaleCmd      `cmd:"" help:"Predict how a job scales from one node to many, with the knee marked."`
	Goodput    goodputCmd    `cmd:"" help:"Predict how much of a run's time is useful when nodes fail, and how often to save checkpoints."`
	Plan       planCmd       `cmd:"" help:"Find the fastest way to run a model on a cluster: parallel degrees, micro-batches, schedule, recomputation, rank order."`
	Place      placeCmd      `cmd:"" help:"Find which of the free nodes a job should take, in predicted step time, against the scheduler's choice."`
	Exec       execCmd       `cmd:"" help:"Start a program as one rank of a job, bound to the cores and memory near its GPU, with NCCL settings."`
	Doctor     doctorCmd     `cmd:"" help:"Diagnose why a job is slow, broken or hung, from logs and tool output."`
	Hang       hangCmd       `cmd:"" help:"Say which ranks hold a running job up, in which collective, and why."`
	Jobs       jobsCmd       `cmd:"" help:"Show the rates of running jobs against what is expected, and who is late."`
	Serve      serveCmd      `cmd:"" help:"Serve the web page, the fleet's bus and its API."`
	Agent      agentCmd      `cmd:"" help:"Run a node's agent: report its state and measure when asked."`
	Check      checkCmd      `cmd:"" help:"Check nodes before a job starts on them: each by itself, every pair, all together."`
	Nodes      nodesCmd      `cmd:"" help:"List the nodes of a fleet, and the unhealthy ones."`
	Order      orderCmd      `cmd:"" help:"Order measurements of a fleet, watch and cancel them."`
	Schema     schemaCmd     `cmd:"" help:"Print the JSON Schema of the cluster file, for editors."`
	Man        manCmd        `cmd:"" help:"Print manual pages in the format of man, or write them into a folder."`
	Completion completionCmd `cmd:"" help:"Print a completion script for bash, zsh or fish."`
	Version    versionCmd    `cmd:"" help:"Print the version."`

	ShowVersion versionFlag `name:"version" short:"V" help:"Print the version."`
}

// common are the flags every command has.
type common struct {
	JSON    bool `name:"json" help:"Print one JSON document on standard output and nothing else."`
	Quiet   bool `short:"q" help:"No progress and no notes on standard error."`
	Verbose bool `short:"v" help:"Print more: what was read and how it was recognised."`
	tableFlags
}

// env is what a command may touch of the world.
type env struct {
	ctx      context.Context
	args     []string
	stdin    io.Reader
	stdout   *stdoutStream
	stderr   io.Writer
	terminal *os.File          // standard output where it is a file, else nil
	model    *kong.Application // for completion
	files    outfile.Writer
	answers  atomic.Bool // what it has when it is told to stop is worth waiting for
	lasting  atomic.Bool // it runs until it is told to stop, which is how it should end
}

func main() {
	measurePart()
	os.Exit(program())
}

// program is the command with the process's own streams and signals.
func program() int {
	runtime.MemProfileRate = 0 // nothing prints a profile of memory, and sampling costs a fiftieth of a short command
	lateCollection()
	ctx, stop := untilSignal(context.Background())
	defer stop()
	return run(ctx, os.Stdin, os.Stdout, os.Stderr, os.Args[1:])
}

// exited carries kong's own exits (--help) out of its parser.
type exited int

// run is the program as a function of its arguments and streams.
func run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, args []string) (code int) {
	stderr = messages{stderr}
	var helpless error // the help could not be written
	help := func(o kong.HelpOptions, k *kong.Context) error {
		helpless = printHelp(o, k)
		return helpless
	}
	parser, err := kong.New(grammar(args), kong.Name("busbar"), kong.Description(description),
		kong.Writers(stdout, stderr),
		kong.Exit(func(c int) { panic(exited(c)) }), kong.UsageOnError(), kong.Help(help),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		fmt.Fprintln(stderr, "busbar:", err)
		return exitCannot
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case exited:
			code = int(r)
		default:
			panic(r)
		}
	}()
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help":
		args = append(args[1:len(args):len(args)], "--help")
	}
	k, err := parser.Parse(spelled(args))
	switch {
	case errors.Is(helpless, syscall.EPIPE):
		return exitDone
	case helpless != nil:
		fmt.Fprintln(stderr, "busbar: standard output:", helpless)
		return exitCannot
	case err != nil:
		fmt.Fprintf(stderr, "busbar: %s\n%s\n", unreadable(err), usageHint(err))
		return exitBad
	}
	if err := errors.Join(misplaced(k), repeated(k), empty(k), outOfBounds(k)); err != nil {
		fmt.Fprintf(stderr, "busbar: %v\nsee: busbar %s --help\n", err, commandWords(k.Selected()))
		return exitBad
	}
	out := &stdoutStream{w: stdout}
	if err := out.tables(k); err != nil {
		fmt.Fprintf(stderr, "busbar: %v\nsee: busbar %s --help\n", err, commandWords(k.Selected()))
		return exitBad
	}
	e := &env{ctx: ctx, args: args, stdin: stdin, stdout: out, stderr: stderr, model: parser.Model}
	if f, ok := stdout.(*os.File); ok {
		e.terminal = f
	}
	err = e.untilDone(func() error { return k.Run(e) })
	if code, ok := interruptedCode(stderr, err); ok {
		return code
	}
	if left := out.left(); left != nil && (err == nil || errors.Is(err, errWrong)) {
		err = left
	}
	if out.err != nil && !errors.Is(out.err, syscall.EPIPE) {
		err = failure.Cannot(fmt.Errorf("standard output: %w", out.err))
	}
	return exitCode(stderr, err)
}

// stdoutStream remembers that standard output could not be written: that is not the input's fault, whatever the command
// makes of it. Names out of files appear there: what they could do to a terminal beyond being read is left out, but for
// the colours that report itself writes.
type stdoutStream struct {
	w   io.Writer
	err error

	format  string          // of tables, which are then printed alone
	columns []string        // of tables that are printed; none is all
	used    map[string]bool // of these
	heads   []string        // of all tables
	written int             // tables
	inside  bool            // a table is being written
	passed  bool            // another rank of the job may be the one that prints
}

func (o *stdoutStream) Write(p []byte) (int, error) {
	if !o.inside && o.alone() {
		return len(p), nil
	}
	return o.through(p)
}

// through writes p whatever is printed alone.
func (o *stdoutStream) through(p []byte) (int, error) {
	_, err := o.w.Write(texttab.Harmless(p))
	if err != nil {
		if o.err == nil {
			o.err = err
		}
		return 0, err
	}
	return len(p), nil
}

func usageHint(err error) string {
	var p *kong.ParseError
	if errors.As(err, &p) && p.Context != nil {
		if words := commandWords(p.Context.Selected()); words != "" {
			return "see: busbar " + words + " --help"
		}
	}
	return "see: busbar --help"
}

func exitCode(stderr io.Writer, err error) int {
	var other exitedWith
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &other):
		return int(other)
	case errors.Is(err, errWrong):
		return exitWrong
	}
	fmt.Fprintln(stderr, "busbar:", err)
	switch {
	case errors.Is(err, failure.ErrWrong):
		return exitWrong
	case failure.Is(err):
		return exitCannot
	}
	return exitBad
}
