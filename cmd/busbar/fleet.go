package main

import (
	"errors"
	"fmt"

	"busbar.dev/fleet/client"
	"busbar.dev/query"
	"busbar.dev/report"
)

// fleetCmd asks and orders what busbar serve knows and runs.
type fleetCmd struct {
	Nodes nodesCmd `cmd:"" help:"List the nodes of a fleet, and the unhealthy ones."`
	Order orderCmd `cmd:"" help:"Order measurements of a fleet, watch and cancel them."`
	Links linksCmd `cmd:"" help:"Print what was measured between two nodes over time."`
}

type linksCmd struct {
	common
	settings
	client.Options
	Nodes string `arg:"" placeholder:"NODE,NODE" help:"Two nodes, with a comma."`
}

// Run asks and prints.
func (c *linksCmd) Run(e *env) error {
	return shown(e, c.common, report.Link)(query.Link{Nodes: c.Nodes}.Run(e.ctx, e.fleet(c.common, c.Options)))
}

type nodesCmd struct {
	common
	settings
	client.Options
	query.Nodes
	Forget string `placeholder:"HOSTLIST" help:"Remove nodes that are gone for good. A node that is up is refused: stop its agent first. A node returns when it joins again."`
	Bad    bool   `help:"Print unhealthy nodes as a hostlist, and exit 1 when there are any."`
}

// Run answers one of its three questions.
func (c *nodesCmd) Run(e *env) error {
	env := e.fleet(c.common, c.Options)
	switch {
	case c.Forget != "":
		doc, err := query.ForgetNodes{Nodes: c.Forget}.Run(e.ctx, env)
		if doc == nil {
			return err
		}
		if c.JSON {
			return errors.Join(report.JSON(e.stdout, doc), err)
		}
		switch len(doc.Forgotten) {
		case 0:
		case 1:
			c.say(e, "%s is forgotten", doc.Hostlist())
		default:
			c.say(e, "%s are forgotten", doc.Hostlist())
		}
		return err
	case c.Bad:
		doc, err := query.Nodes{Bad: true}.Run(e.ctx, env)
		if err != nil {
			return err
		}
		return wrong(doc, e.hostlist(c.common, doc, doc.Hostlist, func() {
			for _, f := range doc.Reasons() {
				c.say(e, "%s: %s", f.Severity, f.Text)
			}
		}))
	}
	return shown(e, c.common, report.Nodes)(c.Nodes.Run(e.ctx, env))
}

// fleet is what a question about a fleet may touch.
func (e *env) fleet(o common, server client.Options) query.Env {
	q := e.query(o)
	server.Exec = e.kubectl
	q.Fleet = client.New(server)
	return q
}

// told is the end of what a command did: its document, or a line that says it.
func (o common) told(e *env, document any, format string, args ...any) error {
	if o.JSON {
		return report.JSON(e.stdout, document)
	}
	o.say(e, format, args...)
	return nil
}

// say writes a line beside the answer.
func (o common) say(e *env, format string, args ...any) {
	if !o.Quiet {
		fmt.Fprintf(e.stderr, format+"\n", args...)
	}
}

// hostlist prints a document whose text is a hostlist, with what is told beside it.
func (e *env) hostlist(o common, document any, hosts string, tell func()) error {
	if o.JSON {
		return report.JSON(e.stdout, document)
	}
	tell()
	return line(e, hosts)
}

// line is an answer of one line, or none.
func line(e *env, text string) error {
	if text == "" {
		return nil
	}
	_, err := fmt.Fprintln(e.stdout, text)
	return err
}
