package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"busbar.dev/ask"
	"busbar.dev/input/clusterfile"
	"busbar.dev/internal/texttab"
	"busbar.dev/query"
	"busbar.dev/report"
)

// listCmd lists what is known by name.
type listCmd struct {
	common
	What  string   `arg:"" enum:"presets,models,hardware,frameworks,causes,algorithms,commands,schema" help:"presets, models, hardware, frameworks, causes, algorithms, commands, or schema (of cluster files)."`
	Atoms bool     `help:"Of causes: what the condition of a cause's file may ask for (docs/doctor.md)."`
	Words []string `arg:"" optional:"" help:"Only what has all these words. Of hardware also a table: links, gpu, nic, switch. A model's whole name, or a config.json, lists its tensors."`
}

// Run lists.
func (c *listCmd) Run(e *env) error {
	switch c.What {
	case "schema":
		_, err := e.stdout.Write(clusterfile.Schema)
		return err
	case "commands":
		d := newCommandsDoc(e.model, c.Words)
		if c.JSON {
			return report.JSON(e.stdout, d)
		}
		return d.table().Write(e.stdout)
	}
	if c.Atoms && c.What != "causes" {
		return errors.New("--atoms has no effect here: it lists what the files of causes may ask for; busbar list causes " +
			"--atoms")
	}
	q := ask.Named(c.What)
	question := q.New().(*query.List)
	question.Words, question.Atoms = c.Words, c.Atoms
	return e.ask(q, question, c.common)
}

// commandsDoc are the commands with their flags.
type commandsDoc struct {
	Commands []listedCommand `json:"commands"`
}

// listedCommand is a command, with those below it. Keys are what its --set takes.
type listedCommand struct {
	Name     string          `json:"name"`
	Group    string          `json:"group,omitempty"`
	Help     string          `json:"help"`
	Flags    []listedFlag    `json:"flags,omitempty"`
	Keys     []listedFlag    `json:"keys,omitempty"`
	Commands []listedCommand `json:"commands,omitempty"`
}

// listedFlag is a flag or a key of --set.
type listedFlag struct {
	Name  string `json:"name"`
	Short string `json:"short,omitempty"`
	Value string `json:"value,omitempty"` // what stands for its value
	Help  string `json:"help"`
}

// newCommandsDoc lists the commands whose name or help has all words.
func newCommandsDoc(app *kong.Application, words []string) *commandsDoc {
	d := &commandsDoc{Commands: listedCommands(app.Children)}
	d.Commands = slices.DeleteFunc(d.Commands, func(c listedCommand) bool {
		return slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(c.Name+" "+c.Help, w) })
	})
	return d
}

func listedCommands(nodes []*kong.Node) (list []listedCommand) {
	for _, n := range nodes {
		if n.Hidden {
			continue
		}
		c := listedCommand{Name: commandWords(n), Help: n.Help, Commands: listedCommands(n.Children)}
		if n.Group != nil {
			c.Group = n.Group.Title
		}
		for _, f := range allFlags(n) {
			x := listedFlag{Name: f.Name, Help: f.Help}
			if f.Short != 0 {
				x.Short = string(f.Short)
			}
			if !f.IsBool() {
				x.Value = f.FormatPlaceHolder()
			}
			switch {
			case isKey(f):
				c.Keys = append(c.Keys, x)
			case !f.Hidden:
				c.Flags = append(c.Flags, x)
			}
		}
		list = append(list, c)
	}
	return list
}

// table has a line for each command.
func (d *commandsDoc) table() *texttab.Table {
	t := texttab.New("command", "group", ">flags", "what it does")
	for _, c := range d.Commands {
		t.Add(c.Name, c.Group, len(c.Flags), c.Help)
		for _, sub := range c.Commands {
			t.Add("  "+sub.Name, "", len(sub.Flags), sub.Help)
		}
	}
	return t
}
