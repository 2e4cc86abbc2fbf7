package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/internal/texttab"
)

type nodesCmd struct {
	common
	clientFlags
	Forget string `placeholder:"HOSTLIST" help:"Take nodes out that are gone for good; one that is up is refused: stop its agent first. They come back when they join again."`
	Bad    bool   `help:"Print the nodes to keep jobs off as a hostlist, and exit 1 when there are any."`
}

// Help ends with examples.
func (nodesCmd) Help() string {
	return "Lists the nodes of a fleet as busbar serve knows them: whether they are up, what they do, what is wrong. " +
		"With --bad the output is a Slurm hostlist of nodes that have a fault of their own that is certain and not getting better; slow paths between nodes accuse nobody. The reasons go to standard error.\n\n" +
		"Examples:\n" +
		"  busbar nodes\n" +
		"  busbar nodes --bad --json --server https://head:7641 --token-file token\n" +
		"  bad=$(busbar nodes --bad) || [ -z \"$bad\" ] || scontrol update state=drain reason=busbar nodename=\"$bad\""
}

// Run asks and prints.
func (c *nodesCmd) Run(e *env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	if c.Forget != "" {
		return c.forget(e, cl)
	}
	var got fleet.NodesReply
	if err := cl.call(e.ctx, "GET", "/api/fleet/nodes?brief=1", nil, &got); err != nil {
		return err
	}
	var found struct {
		Findings []finding.Finding `json:"findings"`
	}
	if err := cl.call(e.ctx, "GET", "/api/fleet/findings", nil, &found); err != nil {
		return err
	}
	if c.Bad {
		return c.bad(e, got.Nodes, found.Findings)
	}
	if c.JSON {
		return writeIndented(e.stdout, map[string]any{"nodes": orEmpty(got.Nodes), "findings": orEmpty(found.Findings), "hostlist": hostlist(got.Nodes)})
	}
	return c.print(e.stdout, got.Nodes, found.Findings)
}

// forget takes nodes out.
func (c *nodesCmd) forget(e *env, cl *client) error {
	names, err := cluster.ParseHosts(c.Forget)
	if err != nil {
		return fmt.Errorf("--forget: %w", err)
	}
	done := []string{}
	var failed error
	for _, n := range names {
		if err := cl.call(e.ctx, "DELETE", "/api/fleet/nodes/"+url.PathEscape(n), nil, new(any)); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", n, err))
			continue
		}
		done = append(done, n)
	}
	switch {
	case c.JSON:
		return errors.Join(writeIndented(e.stdout, map[string]any{"forgotten": done}), failed)
	case len(done) == 1 && !c.Quiet:
		fmt.Fprintf(e.stderr, "%s is forgotten\n", done[0])
	case len(done) > 1 && !c.Quiet:
		fmt.Fprintf(e.stderr, "%s are forgotten\n", cluster.FormatSlurmHosts(done))
	}
	return failed
}

func hostlist(nodes []fleet.NodeState) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = string(n.Name)
	}
	return cluster.FormatSlurmHosts(names)
}

// bad prints who to keep jobs off.
func (c *nodesCmd) bad(e *env, nodes []fleet.NodeState, found []finding.Finding) error {
	bad := []fleet.NodeState{}
	for _, n := range nodes {
		if n.Bad {
			bad = append(bad, n)
		}
	}
	var err error
	switch {
	case c.JSON:
		err = writeIndented(e.stdout, map[string]any{"bad": bad, "hostlist": hostlist(bad), "findings": orEmpty(found)})
	case len(bad) > 0:
		_, err = fmt.Fprintln(e.stdout, hostlist(bad))
	}
	if err != nil || len(bad) == 0 {
		return err
	}
	if !c.Quiet && !c.JSON {
		for _, f := range found {
			for _, n := range bad {
				if len(f.Nodes) == 1 && f.Nodes[0] == string(n.Name) {
					fmt.Fprintf(e.stderr, "%s: %s\n", f.Severity, f.Text)
				}
			}
		}
	}
	return errWrong
}

// print writes the table and what is wrong.
func (c *nodesCmd) print(w io.Writer, nodes []fleet.NodeState, found []finding.Finding) error {
	if len(nodes) == 0 {
		_, err := fmt.Fprintln(w, "no nodes have joined")
		return err
	}
	t := texttab.Table{Columns: []texttab.Column{
		{Head: "node"}, {Head: "state"}, {Head: "last beat", Align: texttab.Right}, {Head: "load", Align: texttab.Right}, {Head: "doing"}, {Head: "version"}, {Head: "wrong"},
	}}
	for _, n := range nodes {
		age, load, doing := "-", "-", "-"
		if n.AgeS >= 0 {
			age = (time.Duration(n.AgeS*10) * 100 * time.Millisecond).String()
		}
		if n.State == fleet.NodeUp {
			load, doing = fmt.Sprintf("%.1f", n.Load), "nothing"
			if n.Doing != nil {
				doing = texttab.Clean(n.Doing.Part)
			}
		}
		wrong := strings.Join(n.Findings, ", ")
		if n.Bad {
			wrong = "BAD: " + wrong
		}
		t.Row(string(n.Name), string(n.State), age, load, doing, texttab.Clean(n.Version), texttab.Clean(wrong))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	for _, f := range found {
		fmt.Fprintf(w, "\n%s: %s\n", f.Severity, texttab.Clean(f.Text))
		if f.Fix != "" {
			fmt.Fprintf(w, "  fix: %s\n", texttab.Clean(f.Fix))
		}
	}
	return nil
}
