package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"busbar.dev/ask"
	"busbar.dev/internal/failure"
	"busbar.dev/query"
	"busbar.dev/report"
)

// doctorCmd says why a job is slow, broken or hung.
type doctorCmd struct {
	Examine doctorRunCmd     `cmd:"" name:"run" default:"withargs" hidden:"" help:"Diagnose why a job is slow, broken or hung, from logs and tool output."`
	Explain doctorExplainCmd `cmd:"" help:"Draw the rings, trees and channels of a run from its NCCL log, and what passes each NIC."`
	Bench   doctorBenchCmd   `cmd:"" help:"Compare a measured sweep with what the hardware should reach at each size."`
}

type doctorRunCmd struct {
	common
	query.Doctor
	Ask    bool   `help:"Ask the questions that tell the leading causes apart, one after another, and weigh the answers: y, n, or an empty line for unknown."`
	Output string `short:"o" name:"output" aliases:"format" placeholder:"FORMAT" default:"text" help:"Output: text, json, markdown, sarif or junit; FORMAT=FILE writes to a file (default text)."`
	Width  int    `default:"0" hidden:""`
}

// Help says what can be read and ends with examples.
func (doctorRunCmd) Help() string {
	return "Reads NCCL and RCCL logs (any release, inside logs of Slurm, torchrun, mpirun, Kubernetes or Docker), " +
		"outputs of nccl-tests, nvidia-smi, lspci, ibstat, ethtool, perfquery, show_gids, dmesg, lsmod, ulimit and df, " +
		"topology XML, environments, launch scripts and manifests, Python tracebacks, and sentences about what was seen. " +
		"All inputs are treated as one job.\n\n" +
		"Each finding has the cause, the fix, the confidence and the lines of evidence. Root causes come first, their " +
		"consequences after. docs/doctor.md lists all rules. " +
		"Exit code 1: something above a note was found, or the cause of a described problem is unknown. 3: nothing in the " +
		"inputs is known, so nothing was examined. Secrets in quoted lines are hidden.\n\n" +
		"Examples:\n" +
		"  busbar doctor docs/examples/job.log\n" +
		"  busbar doctor \"all_reduce drops at three nodes\"\n" +
		"  busbar doctor --ask \"training hangs in the first step\"\n" +
		"  busbar doctor docs/examples/job.log docs/examples/topo.txt --mask addresses -o markdown\n" +
		"  busbar doctor docs/examples/ -o sarif=findings.sarif\n" +
		"  busbar doctor --live --fail-on error\n" +
		"  ssh head busbar nodes --json | busbar doctor docs/examples/job.log -\n" +
		"  srun ./train.sh 2>&1 | busbar doctor -"
}

// Run reads, examines, reports.
func (c *doctorRunCmd) Run(e *env) error {
	var a ask.Answer
	f := e.forms(ask.Named("doctor"), &a, c.common)
	t, err := f.one(markdownWord(c.Output), c.JSON)
	if err != nil {
		return err
	}
	run := c.Doctor.Run
	if c.Ask {
		run = func(ctx context.Context, env query.Env) (*query.DoctorDoc, error) { return c.walk(ctx, e, env) }
	}
	doc, err := run(e.ctx, e.query(c.common))
	if err != nil {
		return err
	}
	a.Document = doc
	if err := wrong(doc, f.write(e, t)); err != nil || !doc.Unexamined() {
		return err
	}
	return failure.Cannot(errors.New("no verdict: nothing that was given could be examined"))
}

// markdownWord takes the short name of a format that people know by it.
func markdownWord(output string) string {
	if name, file, ok := strings.Cut(output, "="); name == "md" {
		if output = "markdown"; ok {
			output += "=" + file
		}
	}
	return output
}

// maxAsked is how many questions a walk has.
const maxAsked = 12

// walk asks the most telling question and weighs anew, until a cause is sure or no question is left. A question that
// nobody can answer makes room for another, and is shown again at the end.
func (c *doctorRunCmd) walk(ctx context.Context, e *env, env query.Env) (*query.DoctorDoc, error) {
	set, err := c.Doctor.Read(ctx, env)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReader(e.stdin)
	c.Answers = map[string]bool{}
	for range maxAsked {
		doc, err := c.Weigh(env, set)
		if err != nil || len(doc.Questions) == 0 {
			return doc, err
		}
		q := doc.Questions[0]
		fmt.Fprintf(e.stderr, "%s\n    %s\n[y/n/?] ", q.Ask, q.Command)
		answer, err := readAnswer(in)
		if err != nil {
			fmt.Fprintln(e.stderr)
			if err == io.EOF {
				break
			}
			return nil, err
		}
		yes, known := yesOrNo(answer)
		if known {
			c.Answers[q.Name] = yes
			continue
		}
		c.Skip = append(c.Skip, q.Name)
		if answer = strings.TrimSpace(answer); answer != "" && answer != "?" {
			fmt.Fprintln(e.stderr, "    taken as not known; expected y, n or ?")
		}
	}
	c.Skip = nil
	return c.Weigh(env, set)
}

// maxAnswer is how much of an answer is kept; nobody answers at such length.
const maxAnswer = 1 << 10

// readAnswer reads one line, of whatever length, and keeps its beginning. io.EOF: there is none.
func readAnswer(in *bufio.Reader) (string, error) {
	var kept []byte
	for some := false; ; some = true {
		part, more, err := in.ReadLine()
		if err == io.EOF && some {
			return string(kept), nil
		}
		if err != nil {
			return "", err
		}
		if kept = append(kept, part[:min(len(part), maxAnswer-len(kept))]...); !more {
			return string(kept), nil
		}
	}
}

// yesOrNo is what an answer says. What is unsure ("not sure", "no idea", "yes, but only sometimes") is no answer:
// either would weigh in full.
func yesOrNo(answer string) (yes, known bool) {
	words := strings.FieldsFunc(strings.ToLower(answer), func(r rune) bool { return !unicode.IsLetter(r) })
	if len(words) == 0 {
		return false, false
	}
	unsure := func(w string) bool {
		return slices.Contains([]string{
			"sure", "idea", "know", "maybe", "perhaps", "sometimes", "partly", "but", "unsure", "clue", "unknown", "depends",
			"think", "probably", "possibly", "mostly", "tell", "or", "if", "except", "unless",
		}, w)
	}
	switch first := words[0]; {
	case slices.ContainsFunc(words[1:], unsure):
		return false, false
	case slices.Contains([]string{"y", "yes", "yep", "yeah", "ye", "ja", "true"}, first):
		return true, true
	case slices.Contains([]string{"n", "no", "nope", "nein", "false", "never", "nah"}, first):
		return false, true
	}
	return false, false
}

// doctorBenchCmd holds a measured sweep against what should come.
type doctorBenchCmd struct {
	common
	query.DoctorBench
	SVG    string `name:"svg" placeholder:"FILE" help:"Draw the measured curve over the predicted band, as SVG."`
	Output string `short:"o" name:"output" aliases:"format" placeholder:"FORMAT" default:"text" help:"Output: text, json, markdown, sarif or junit; FORMAT=FILE writes to a file (default text)."`
}

// Help ends with examples.
func (doctorBenchCmd) Help() string {
	return "Compares every size of a measured sweep with the time predicted for this hardware, with its error bar, and " +
		"with the thresholds that cloud operators publish for the machine (docs/doctor.md lists them with their sources). " +
		"Says which part of the curve is wrong and what that pattern means: small sizes only (latency), medium sizes " +
		"(protocol), large sizes (one NIC of several, half of the links, sockets, host memory). " +
		"Exit code 1: a finding above a note. Results of busbar bench are judged by the shape of the curve and, with -c, " +
		"by the rate of the NICs, because predictions are for NCCL.\n\n" +
		"Examples:\n" +
		"  busbar doctor bench docs/examples/allreduce.txt -c dgx-h100:2\n" +
		"  busbar doctor bench docs/examples/allreduce.txt -c dgx-h100:2 --svg curve.svg -o markdown\n" +
		"  all_reduce_perf -b 8 -e 8G -f 2 -g 8 | busbar doctor bench - -c azure-ndv5"
}

// Run reads, predicts, judges, reports.
func (c *doctorBenchCmd) Run(e *env) error {
	var a ask.Answer
	f := e.forms(ask.Named("doctor bench"), &a, c.common)
	t, err := f.one(markdownWord(c.Output), c.JSON)
	if err != nil {
		return err
	}
	if err := e.drawable(c.SVG); err != nil {
		return err
	}
	doc, err := c.DoctorBench.Run(e.ctx, e.query(c.common))
	if err != nil {
		return err
	}
	a.Document = doc
	err = f.write(e, t)
	if err == nil && c.SVG != "" {
		err = e.writeFile(c.SVG, pictured(func() (*report.Picture, error) { return report.MeasuredCurve(doc) }))
	}
	return wrong(doc, err)
}

// doctorExplainCmd draws what a run of NCCL set up.
type doctorExplainCmd struct {
	common
	query.Explain
	Output []string `short:"o" placeholder:"FILE" sep:"none" help:"Also write a file by its ending: .svg (picture), .json (as --json), .txt (text). FORMAT=FILE names svg, json or text explicitly; FORMAT=- replaces the text. Repeatable."`
}

// Help ends with examples.
func (doctorExplainCmd) Help() string {
	return "Shows what NCCL set up, from its log: rings, trees and channels on hosts, GPUs and NICs, which hosts talk " +
		"through which NIC, and how much of an all-reduce passes each NIC. It also shows " +
		"how GPUs are connected (P2P, SHM, NET, with GPUDirect RDMA or not), and what is odd: a NIC with two channels " +
		"while another idles, a pair through host memory where others talk directly. " +
		"Logs of a part of the ranks give a part of it. NCCL prints these lines while it sets up, at NCCL_DEBUG=INFO " +
		"(subsystem INIT; GRAPH adds the links of long rings).\n\n" +
		"Examples:\n" +
		"  busbar doctor explain docs/examples/rings.log\n" +
		"  busbar doctor explain docs/examples/rings.log -o traffic.svg\n" +
		"  busbar doctor explain docs/examples/rings.log --comm 0 --size 256M --json"
}

// Run reads the logs and writes what was asked for.
func (c *doctorExplainCmd) Run(e *env) error {
	return e.writeAnswer(ask.Named("doctor explain"), &c.Explain, c.common, c.Output)
}
