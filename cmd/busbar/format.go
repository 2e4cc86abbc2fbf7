package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"busbar.dev/internal/texttab"
)

// tableFlags choose how tables are written. Every command has them.
type tableFlags struct {
	CSV      bool     `name:"csv" help:"Print the tables alone, as CSV."`
	Markdown bool     `help:"Print the tables alone, as Markdown."`
	Columns  []string `placeholder:"NAME,…" help:"Print the tables alone, with these columns in this order, named by their headings without units (default: all)."`
}

// tables reads the flags for a stream.
func (o *stdoutStream) tables(k *kong.Context) error {
	asJSON := false
	for _, f := range k.Flags() {
		switch f.Name {
		case "csv", "markdown":
			if f.Target.Bool() {
				o.format = f.Name
			}
		case "columns":
			if list, ok := f.Target.Interface().([]string); ok {
				o.columns = list
			}
		case "json":
			asJSON = f.Target.Bool()
		}
	}
	if asJSON && o.alone() {
		return errors.New("--json prints all fields; --csv, --markdown and --columns print tables: give one of them")
	}
	o.used = map[string]bool{}
	return nil
}

// alone says that tables are printed and nothing else.
func (o *stdoutStream) alone() bool {
	return o.format != "" || len(o.columns) > 0
}

// Table writes a table in another format than text, or its chosen columns.
func (o *stdoutStream) Table(t *texttab.Table) (taken bool, err error) {
	if !o.alone() || o.inside {
		return false, nil
	}
	t, o.passed = t.Titled(), false
	o.heads = append(o.heads, t.Heads()...)
	if len(o.columns) > 0 {
		if t = t.Select(o.columns, o.used); t == nil {
			return true, nil
		}
	}
	o.inside = true
	defer func() { o.inside = false }()
	if o.written++; o.written > 1 {
		if _, err := o.Write([]byte("\n")); err != nil {
			return true, err
		}
	}
	switch o.format {
	case "csv":
		return true, t.CSV(o)
	case "markdown":
		return true, t.Markdown(o)
	}
	return true, t.Write(o)
}

// passed is standard output for ranks that this process starts: they are this program with the same flags, so that what
// comes from them is written as it is, and they say themselves what could not be printed.
type passed struct{ to *stdoutStream }

func (p passed) Write(b []byte) (int, error) {
	return p.to.through(b)
}

// left reports that what was asked for could not be printed: a document without a table, a column that no table has.
func (o *stdoutStream) left() error {
	if o.passed {
		return nil
	}
	for _, name := range o.columns {
		if !o.used[name] {
			heads := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(o.heads))),
				func(h string) bool { return h == "" })
			return fmt.Errorf("--columns %s: no such column; expected one of %s", name, strings.Join(heads, ", "))
		}
	}
	if o.alone() && o.written == 0 {
		return errors.New("this output has no table; --json prints all of it")
	}
	return nil
}

// Columns is the width of the terminal, for text that does not fit; 0 where there is none. COLUMNS in the environment
// is another width, also for a file.
func (o *stdoutStream) Columns() int {
	f, ok := o.w.(*os.File)
	if !ok {
		return 0
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if term.IsTerminal(int(f.Fd())) {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return width
		}
	}
	return 0
}
