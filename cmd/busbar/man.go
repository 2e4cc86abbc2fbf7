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

// Run prints pages made from the help.
func (c manCmd) Run(e *env) error {
	switch {
	case c.JSON:
		return errors.New("--json: a manual page has no document; busbar COMMAND --help has the same text")
	case c.Dir != "" && c.Command != "":
		return errors.New("--dir writes the pages of all commands; give a command or --dir")
	}
	pages := map[string]*kong.Node{"": e.model.Node}
	for _, n := range e.model.Children {
		pages[n.Name] = n
	}
	if c.Dir == "" {
		n := pages[c.Command]
		if n == nil {
			return fmt.Errorf("%s: no such command; busbar --help lists them", c.Command)
		}
		_, err := io.WriteString(e.stdout, manPage(n))
		return err
	}
	for name, n := range pages {
		file := strings.TrimSuffix("busbar-"+name, "-") + ".1"
		if err := os.WriteFile(filepath.Join(c.Dir, file), []byte(manPage(n)), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// manPage is the help of a command and of those below it as a page. It has no date, so that two builds of one commit
// are equal.
func manPage(n *kong.Node) string {
	name := strings.TrimSuffix("busbar-"+strings.ReplaceAll(commandWords(n), " ", "-"), "-")
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" busbar \"busbar manual\"\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.nf\n",
		manText(strings.ToUpper(name)), manText(name), manText(strings.TrimSuffix(n.Help, ".")))
	usage, text, _ := strings.Cut(helpText(n, false), "\n\n")
	fmt.Fprintf(&b, "%s\n.SH DESCRIPTION\n%s", manText(usage), manText(text))
	if n.Type == kong.CommandNode {
		for _, sub := range callable(n.Children) {
			fmt.Fprintf(&b, ".SH %s\n%s", manText(strings.ToUpper(commandWords(sub))), manText(helpText(sub, false)))
		}
	}
	return b.String()
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
