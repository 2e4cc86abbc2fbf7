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
	Output string `short:"o" placeholder:"FORMAT" help:"Output: text (default), msccl or json on standard output; FORMAT=FILE, or a name ending in .txt, .xml or .json, writes a file. With --json both happen."`
}

// Help says who reads the files and ends with examples.
func (schedCmd) Help() string {
	return "Prints the program of a collective, every op of every rank and lane; proves it; or writes it as MSCCL algorithm XML. " +
		"NCCL itself reads no such XML: Microsoft's MSCCL does (from the folder in MSCCL_ALGO_DIR), and RCCL did up to ROCm 7.12. " +
		"The reader has limits (64 steps per thread block, 64 thread blocks per GPU); a schedule that does not fit is refused with its rank and lane (exit 3). " +
		"With a FILE, shows or verifies that algorithm.\n\n" +
		"Examples:\n" +
		"  busbar sched --list\n" +
		"  busbar sched --op all_reduce --algo ring -n 4\n" +
		"  busbar sched --op all_reduce --algo hierarchical -n 16 --groups 8 --check\n" +
		"  busbar sched --op all_gather --algo bruck -n 8 -o msccl=allgather.xml\n" +
		"  busbar sched allgather.xml --check\n" +
		"  busbar sched docs/examples/allgather2.xml"
}

// Run lists, shows, proves or writes.
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
		text := func(w io.Writer) error { return report.Algorithms(w, doc, e.text(w, c.common)) }
		return c.write(e, t, forms{list: []form{{"text", nil, text}, jsonForm(doc)}})
	}
	doc, err := c.Sched.Run(e.ctx, e.query(c.common))
	if err != nil {
		return err
	}
	return wrong(doc, c.write(e, t, c.forms(doc)))
}

// target is what to write and where, and refuses flags that contradict each other.
func (c *schedCmd) target() (target, error) {
	t, err := c.forms(nil).find(cmp.Or(c.Output, "-"))
	if err != nil {
		return t, err
	}
	if c.JSON && (c.Output == "" || c.Output == "-") {
		t.form = "json"
	}
	switch {
	case c.JSON && t.stdout() && t.form != "json":
		return t, fmt.Errorf("--json and -o %s both want standard output; take one of them, or write to a file: -o %s=FILE", c.Output, t.form)
	case t.form != "msccl":
		return t, nil
	case c.List:
		return t, fmt.Errorf("--list and -o %s: a list is text or json", c.Output)
	case c.File != "":
		return t, fmt.Errorf("-o msccl: %s is such a file already; expected text or json", c.File)
	case c.Check:
		return t, fmt.Errorf("-o msccl writes what has been proven; run it without --check")
	}
	return t, nil
}

// forms are how a schedule can be written.
func (c *schedCmd) forms(doc *query.SchedDoc) forms {
	return forms{list: []form{
		{"text", []string{".txt"}, func(w io.Writer) error { return report.Sched(w, doc) }},
		{"msccl", []string{".xml"}, func(w io.Writer) error {
			a, err := doc.MSCCL()
			if err != nil {
				return err
			}
			return a.Write(w)
		}},
		{"json", []string{".json"}, func(w io.Writer) error {
			if err := doc.AddPrograms(); err != nil {
				return err
			}
			return report.JSON(w, doc)
		}},
	}}
}

// write writes the target, and with --json also the document where that is a file.
func (c *schedCmd) write(e *env, t target, f forms) error {
	if err := f.write(e, t); err != nil || !c.JSON || t.stdout() {
		return err
	}
	return f.write(e, target{form: "json"})
}
