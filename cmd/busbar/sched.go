package main

import (
	"cmp"
	"fmt"
	"io"

	"busbar.dev/query"
	"busbar.dev/report"
)

type schedCmd struct {
	common
	query.Sched
	List   bool   `help:"List the algorithms with their collectives and requirements."`
	Output string `short:"o" placeholder:"FORMAT" help:"Output: text (default) or json on standard output; FORMAT=FILE, or a name ending in .txt or .json, writes a file. With --json both happen."`
}

// Help ends with examples.
func (schedCmd) Help() string {
	return "Prints the program of a collective, every op of every rank and lane, or proves it.\n\n" +
		"Examples:\n" +
		"  busbar sched --list\n" +
		"  busbar sched --op all_reduce --algo ring -n 4\n" +
		"  busbar sched --op all_reduce --algo hierarchical -n 16 --groups 8 --check"
}

// Run lists, shows or proves.
func (c *schedCmd) Run(e *env) error {
	t, err := c.target()
	if err != nil {
		return err
	}
	if c.List {
		doc, err := query.Algorithms{}.Run(e.ctx, e.query(c.common))
		if err != nil {
			return err
		}
		return c.write(e, t, textAndJSON(e, c.common, report.Algorithms, doc))
	}
	doc, err := c.Sched.Run(e.ctx, e.query(c.common))
	if err != nil {
		return err
	}
	return wrong(doc, c.write(e, t, textAndJSON(e, c.common, report.Sched, doc)))
}

// target is what to write and where, and refuses flags that contradict each other.
func (c *schedCmd) target() (target, error) {
	t, err := textAndJSON(nil, c.common, report.Sched, nil).find(cmp.Or(c.Output, "-"))
	if err != nil {
		return t, err
	}
	if c.JSON && (c.Output == "" || c.Output == "-") {
		t.form = "json"
	}
	if c.JSON && t.stdout() && t.form != "json" {
		return t, fmt.Errorf("--json and -o %s both want standard output; take one of them, or write to a file: -o %s=FILE",
			c.Output, t.form)
	}
	return t, nil
}

// textAndJSON are the forms of a document that nobody draws.
func textAndJSON[D any](e *env, o common, text func(*report.Page, *D), doc *D) forms {
	return forms{list: []form{
		{"text", []string{".txt"}, func(w io.Writer) error { return report.Print(w, e.text(w, o), text, doc) }},
		jsonForm(doc),
	}}
}

// write writes the target, and with --json also the document where that is a file.
func (c *schedCmd) write(e *env, t target, f forms) error {
	if err := f.write(e, t); err != nil || !c.JSON || t.stdout() {
		return err
	}
	return f.write(e, target{form: "json"})
}
