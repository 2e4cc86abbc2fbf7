package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// allFlags are a command's, and those of what it does by itself.
func allFlags(n *kong.Node) []*kong.Flag {
	if n.DefaultCmd == nil {
		return n.Flags
	}
	return slices.Concat(n.Flags, n.DefaultCmd.Flags)
}

// misplaced reports a flag that stands before a subcommand and belongs to the command itself:
// it would be read and forgotten.
func misplaced(k *kong.Context) error {
	n := k.Selected()
	if n == nil || n.Parent == nil || n.Parent.DefaultCmd == nil || n.Parent.DefaultCmd == n {
		return nil
	}
	for _, p := range k.Path {
		if p.Flag != nil && slices.Contains(n.Parent.DefaultCmd.Flags, p.Flag) {
			name := n.Parent.Name + " " + n.Name
			return fmt.Errorf("--%s stands before %s; flags of a subcommand follow its name: busbar %s … (see busbar %s "+
				"--help)", p.Flag.Name, n.Name, name, name)
		}
	}
	return nil
}

// repeated reports a flag for one value that was given twice: the last would count and nobody would say so.
func repeated(k *kong.Context) error {
	seen := map[*kong.Flag]bool{}
	for _, p := range k.Path {
		if f := p.Flag; f != nil && !f.IsCumulative() && !f.IsCounter() && !f.IsBool() {
			if seen[f] {
				return fmt.Errorf("--%s is given twice and takes one value; leave one out", f.Name)
			}
			seen[f] = true
		}
	}
	return nil
}

// empty reports a flag or word that was given and is empty, as an unset variable of a script
// makes it: what it was meant to say is not what leaving it out says.
func empty(k *kong.Context) error {
	for _, p := range k.Path {
		switch {
		case p.Flag != nil && nothing(p.Flag.Target):
			return fmt.Errorf("--%s is empty; expected %s, or leave it out", p.Flag.Name, p.Flag.FormatPlaceHolder())
		case p.Positional != nil && nothing(p.Positional.Target):
			return fmt.Errorf("%s is empty; expected a value, or leave it out", p.Positional.Name)
		}
	}
	return nil
}

// nothing reports an empty text or list.
func nothing(v reflect.Value) bool {
	return (v.Kind() == reflect.String || v.Kind() == reflect.Slice) && v.Len() == 0
}

// commandWords are the words that a node is called by, without the program's name and those of
// commands that need not be named.
func commandWords(n *kong.Node) string {
	var list []string
	for ; n != nil && n.Type != kong.ApplicationNode; n = n.Parent {
		if n.Parent == nil || n.Parent.DefaultCmd != n {
			list = append([]string{n.Name}, list...)
		}
	}
	return strings.Join(list, " ")
}

// callable are the commands that can be called, a command before its subcommands.
func callable(nodes []*kong.Node) []*kong.Node {
	var list []*kong.Node
	for _, n := range nodes {
		if n.Hidden {
			continue
		}
		list = append(list, n)
		list = append(list, callable(n.Children)...)
	}
	return list
}
