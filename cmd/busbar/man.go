package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"
)

type manCmd struct {
	common
	Command string `arg:"" optional:"" help:"A command, such as map (default: the page of busbar itself)."`
	Dir     string `placeholder:"DIR" help:"Write the pages of all commands into this folder, which must exist, instead of printing one."`
}

// Help ends with examples.
func (manCmd) Help() string {
	return "Examples:\n  busbar man predict | man -l -\n  busbar man --dir /usr/local/share/man/man1"
}

// Run prints pages made from the command line's own model, as --help is.
func (c manCmd) Run(e *env) error {
	switch {
	case c.JSON:
		return errors.New("--json: a manual page has no document; busbar COMMAND --help has the same text")
	case c.Dir != "" && c.Command != "":
		return errors.New("--dir writes the pages of all commands; give a command or --dir")
	case c.Dir != "":
		return writePages(e.model, c.Dir)
	}
	if c.Command == "" {
		_, err := io.WriteString(e.stdout, manPage(e.model.Node))
		return err
	}
	for _, n := range e.model.Children {
		if n.Name == c.Command && !n.Hidden {
			_, err := io.WriteString(e.stdout, manPage(n))
			return err
		}
	}
	return fmt.Errorf("%s: no such command; busbar --help lists them", c.Command)
}

// writePages writes busbar.1 and busbar-COMMAND.1.
func writePages(app *kong.Application, dir string) error {
	pages := map[string]*kong.Node{"busbar.1": app.Node}
	for _, n := range app.Children {
		if !n.Hidden {
			pages["busbar-"+n.Name+".1"] = n
		}
	}
	for name, n := range pages {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(manPage(n)), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// manPage is one page. It has no date, so that two builds of one commit are equal.
func manPage(n *kong.Node) string {
	var b strings.Builder
	title := strings.ReplaceAll(manName(n), " ", "-")
	fmt.Fprintf(&b, ".TH %s 1 \"\" busbar \"busbar manual\"\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n",
		strings.ToUpper(manText(title)), manText(title), manText(firstSentence(n.Help)))
	if n.Type == kong.ApplicationNode {
		b.WriteString(".B busbar\nCOMMAND [FLAGS]\n.SH DESCRIPTION\n" + manText(n.Help) + "\n.SH COMMANDS\n")
		for _, c := range n.Children {
			if !c.Hidden {
				fmt.Fprintf(&b, ".TP\n.BR busbar\\-%s (1)\n%s\n", manText(c.Name), manText(c.Help))
			}
		}
		return b.String()
	}
	manCommand(&b, n)
	b.WriteString(".SH SEE ALSO\n.BR busbar (1)\n")
	return b.String()
}

// manCommand writes a command and, below their own headings, its subcommands.
func manCommand(b *strings.Builder, n *kong.Node) {
	detail := n.Detail
	if d := n.DefaultCmd; d != nil {
		detail = d.Detail
	}
	words, _, _ := strings.Cut(strings.TrimPrefix(n.Summary(), commandWords(n)), " [flags]")
	fmt.Fprintf(b, ".B busbar %s\n%s [FLAGS]\n", manText(commandWords(n)), manText(strings.TrimSpace(words)))
	text, examples, _ := strings.Cut(detail, "Example")
	if n.Type == kong.CommandNode && n.Parent.Type == kong.ApplicationNode {
		b.WriteString(".SH DESCRIPTION\n")
	} else {
		b.WriteString(".PP\n")
	}
	fmt.Fprintf(b, "%s\n", manText(strings.TrimSpace(n.Help+"\n"+text)))
	for _, p := range n.Positional {
		fmt.Fprintf(b, ".TP\n.I %s\n%s\n", manText(p.Summary()), manText(p.Help))
	}
	for _, f := range allFlags(n) {
		if f.Hidden {
			continue
		}
		name := "--" + f.Name
		if f.Short != 0 {
			name = fmt.Sprintf("-%c, %s", f.Short, name)
		}
		if !f.IsBool() {
			name += "=" + f.FormatPlaceHolder()
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", manText(name), manText(f.Help))
	}
	if _, lines, ok := strings.Cut(examples, "\n"); ok {
		fmt.Fprintf(b, ".PP\nExamples:\n.PP\n.nf\n%s\n.fi\n", manText(strings.TrimRight(lines, "\n")))
	}
	for _, c := range n.Children {
		if !c.Hidden && c != n.DefaultCmd {
			fmt.Fprintf(b, ".SH SUBCOMMAND %s\n", strings.ToUpper(manText(c.Name)))
			manCommand(b, c)
		}
	}
}

func manName(n *kong.Node) string {
	if n.Type == kong.ApplicationNode {
		return "busbar"
	}
	return "busbar " + commandWords(n)
}

func firstSentence(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return strings.TrimSuffix(text, ".")
}

// manText is text as troff takes it literally.
func manText(s string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
