package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"busbar.dev/ask"
	"busbar.dev/query"
)

// doctorCmd says why a job is slow, broken or hung.
type doctorCmd struct {
	common
	query.Doctor
	query.Job
	Explain bool       `help:"Draw the rings, trees and channels that NCCL set up in a run, from its log, and what passes each NIC."`
	Comm    string     `placeholder:"ID" help:"With --explain: communicator, its id, or its index in the log from 0 (default: the largest)."`
	Size    query.Size `default:"1G" placeholder:"SIZE" help:"With --explain: size of the all-reduce to count bytes for (default 1G)."`
	Op      query.Op   `placeholder:"OP" help:"Of a table: the collective, when the output does not name it."`
	Ask     bool       `help:"Ask the questions that tell the leading causes apart, one after another, and weigh the answers: y, n, or an empty line for unknown."`
	Output  []string   `short:"o" name:"output" aliases:"format" placeholder:"FILE" sep:"none" help:"Write findings to a file by its ending: .md, .sarif, .xml (JUnit), .json, .txt; .svg draws a table's curve or what --explain found. FORMAT, or FORMAT=FILE, names text, json, markdown, sarif, junit or svg. Repeatable."`
	Width   int        `default:"0" hidden:""`
}

// Run recognises what it gets, examines it and reports.
func (c *doctorCmd) Run(e *env) error {
	stdin := bufio.NewReaderSize(e.stdin, 1<<16) // so that it can be looked at first
	e.stdin = stdin
	kind := c.Kind(e.ctx, e.query(c.common), c.Cluster)
	switch {
	case c.Explain:
		question := &query.Explain{Logs: c.Sources, Comm: c.Comm, Size: c.Size}
		return e.answer(ask.Named("explain"), question, c.common, c.Output, "explain")
	case kind == "trace":
		question := &query.Trace{Sources: c.Sources, Job: c.Job, FailOn: c.FailOn}
		return e.answer(ask.Named(kind), question, c.common, c.Output)
	case kind == "measured":
		return e.answer(ask.Named(kind), &query.DoctorBench{
			Result: c.Sources[0], Cluster: c.Cluster, Layout: c.Layout, Op: c.Op, NCCL: c.NCCL, FailOn: c.FailOn,
		}, c.common, c.Output)
	}
	c.Against = &c.Job
	q := *ask.Named(kind)
	if c.Ask {
		q.Run = func(ctx context.Context, _ any, env query.Env) (any, error) { return c.walk(ctx, e, env) }
	}
	known := []string{"ask"}
	for _, p := range query.Params(&c.Job) { // without use for any input they are refused there
		known = append(known, p.Name)
	}
	return e.answer(&q, &c.Doctor, c.common, c.Output, known...)
}

// maxAsked is how many questions a walk has.
const maxAsked = 12

// walk asks the most telling question and weighs anew, until a cause is sure or no question is left. A question that
// nobody can answer makes room for another, and is shown again at the end.
func (c *doctorCmd) walk(ctx context.Context, e *env, env query.Env) (*query.DoctorDoc, error) {
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

// yesOrNo is what an answer says. Whatever else somebody says is no answer: either would weigh in full.
func yesOrNo(answer string) (yes, known bool) {
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, true
	case "n", "no":
		return false, true
	}
	return false, false
}
