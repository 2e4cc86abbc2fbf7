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
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/alecthomas/kong"

	"busbar.dev/ask"
	"busbar.dev/fleet"
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
	description = "busbar says how fast a training job will go on a cluster, what limits it, and why it is slow."
)

// errWrong makes a command that did its work exit with 1.
var errWrong = errors.New("something is wrong")

// command is the commands, with those of questions that ask has as such. Those that are hidden stand on one line below
// the others.
type command struct {
	Map       mapCmd       `cmd:"" group:"Look" help:"Read the topology of a machine or a cluster, convert and audit it."`
	Check     checkCmd     `cmd:"" group:"Look" help:"Check nodes before a job: each, every pair, all together."`
	List      listCmd      `cmd:"" group:"Look" help:"List presets, models, hardware, frameworks, causes, commands."`
	Bench     benchCmd     `cmd:"" group:"Measure" help:"Measure collectives, pairs of nodes, steps, GPUs, RDMA."`
	Calibrate calibrateCmd `cmd:"" group:"Measure" help:"Fit the model to measurements, or check it against them."`
	Lab       labCmd       `cmd:"" group:"Measure" help:"Run a small cluster in network namespaces on this machine."`
	Predict   predictCmd   `cmd:"" group:"Predict" help:"Predict a collective: its time, what limits it, what would help."`
	Step      stepCmd      `cmd:"" group:"Predict" help:"Predict a training step: its time, what limits it, its memory."`
	Plan      planCmd      `cmd:"" group:"Plan" help:"Find the best way to run a model, and write the launch files."`
	Place     placeCmd     `cmd:"" group:"Plan" help:"Find which of the free nodes a job should take."`
	Goodput   goodputCmd   `cmd:"" group:"Plan" help:"Predict a whole run: failures, checkpoints, cost."`
	Exec      execCmd      `cmd:"" group:"Plan" help:"Start a rank of a job, bound to the cores near its GPU."`
	Doctor    doctorCmd    `cmd:"" group:"Diagnose" help:"Say why a job is slow or broken, from logs, tables, traces, words."`
	Diff      diffCmd      `cmd:"" group:"Diagnose" help:"Compare two measured results and tell change from noise."`
	Hang      hangCmd      `cmd:"" group:"Diagnose" help:"Say which ranks hold a running job up, and why."`
	Jobs      jobsCmd      `cmd:"" group:"Diagnose" help:"Show the rates of running jobs against what is expected."`
	Serve     serveCmd     `cmd:"" group:"Watch" help:"Serve the web page, the fleet's bus and its API."`
	Agent     agentCmd     `cmd:"" group:"Watch" help:"Run a node's agent: report its state, measure when asked."`
	Fleet     fleetCmd     `cmd:"" group:"Watch" help:"List the nodes of a fleet, order measurements, show links."`

	Completion completionCmd `cmd:"" hidden:"" help:"Print a completion script for bash, zsh or fish."`
	Man        manCmd        `cmd:"" hidden:"" help:"Print manual pages in the format of man, or write them into a folder."`
	Here       hereCmd       `cmd:"" hidden:"" help:"Show this machine in a few lines."`
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
	given    map[string]bool   // flags that were typed
	server   fleet.Server      // that questions about a fleet are asked of
	files    outfile.Writer
	answers  atomic.Bool // what it has when it is told to stop is worth waiting for
	lasting  atomic.Bool // it runs until it is told to stop, which is how it should end
}

func main() {
	measurePart()
	asPlugin(os.Args[0])
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

// run is the program as a function of its arguments and streams.
func run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, args []string) (code int) {
	stderr = messages{stderr}
	if args = called(args); len(args) > 0 {
		if old, now := renamedTo(args); now != "" {
			fmt.Fprintf(stderr, "busbar: %s is now: busbar %s\nsee: busbar --help\n", old, now)
			return exitBad
		}
		if args[0] == "help" {
			return exitCode(stderr, helped(io.WriteString(stdout, helpSection("help "+args[1])+"\n")))
		}
	}
	parser, err := newParser(args)
	if err != nil {
		fmt.Fprintln(stderr, "busbar:", err)
		return exitCannot
	}
	if n, short := helpAsked(parser.Model, args); n != nil {
		return exitCode(stderr, helped(io.WriteString(stdout, helpText(n, short))))
	}
	k, err := parser.Parse(spelled(args, parser.Model))
	if err != nil {
		fmt.Fprintf(stderr, "busbar: %s\n%s\n", unreadable(err), usageHint(err))
		return exitBad
	}
	out := &stdoutStream{w: stdout}
	if err := errors.Join(misplaced(k), repeated(k), empty(k), outOfBounds(k), out.tables(k)); err != nil {
		fmt.Fprintf(stderr, "busbar: %v\nsee: busbar %s --help\n", err, commandWords(k.Selected()))
		return exitBad
	}
	e := &env{
		ctx: ctx, args: args, stdin: stdin, stdout: out, stderr: stderr, model: parser.Model, given: map[string]bool{},
	}
	for _, p := range k.Path {
		if p.Flag != nil {
			e.given[p.Flag.Name] = true
		}
	}
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

// newParser reads the arguments of a command; help is our own.
func newParser(args []string) (*kong.Kong, error) {
	options := []kong.Option{kong.Name("busbar"), kong.Description(description), kong.NoDefaultHelp()}
	commands, whole := grammar(args)
	for _, q := range ask.Questions {
		if q.Help != "" && (whole || q.Name == args[0]) {
			tag := map[bool]string{true: `hidden:""`}[q.Group == ""]
			options = append(options, kong.DynamicCommand(q.Name, q.Help, q.Group, &questionCmd{q.New(), q, common{}}, tag))
		}
	}
	parser, err := kong.New(commands, options...)
	if err == nil {
		slices.SortStableFunc(parser.Model.Children, func(a, b *kong.Node) int { return groupAt(a) - groupAt(b) })
		arrange(parser.Model.Children, "")
	}
	return parser, err
}

// groupAt is where the group of a command stands in the list of commands.
func groupAt(n *kong.Node) int {
	if n.Group == nil {
		return math.MaxInt
	}
	return strings.Index("Look Measure Predict Plan Diagnose Watch", n.Group.Title)
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

// helped is the end of a run that only printed: who closes a pipe has read enough.
func helped(_ int, err error) error {
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return failure.Cannot(fmt.Errorf("standard output: %w", err))
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
