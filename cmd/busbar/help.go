package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"busbar.dev/internal/texttab"
)

// settings is --set of commands whose question has none of its own.
type settings struct {
	Set []string `placeholder:"KEY=VALUE" sep:"none" help:"Rarely needed setting; the keys are listed below. Repeatable."`
}

// Validate refuses what is no key: keys that are became flags before the flags were read.
func (s settings) Validate() error {
	if len(s.Set) > 0 {
		return fmt.Errorf("--set %s: no such key; --help lists the keys", s.Set[0])
	}
	return nil
}

// flagGroups are the titles that flags stand under in --help, in this order. Those that stand nowhere are "Flags:".
var flagGroups = []struct{ title, names string }{
	{"Where it runs:", "cluster layout nodes nic gpu set hosts devices nccl env gpus free"},
	{"The job:", "model parallel framework global-batch micro-batch seq precision recompute lora"},
	{"Measurement:", "op size minbytes maxbytes stepfactor dtype algo proto iters warmup"},
	{"Flags:", ""},
	{"Ranks:", "ranks rank meet transport bind timeout ssh by"},
	{"The server:", "server token-file data"},
	{"Output:", "json output csv markdown columns quiet verbose help"},
}

// keys are the settings that people seldom need, by the first word of their command: they are keys of --set. As flags
// they are taken too, because messages name them so.
var keys = map[string]string{
	"": "graphs kernels unfused padded sync schedule order bucket context offload compress channels-first packed method " +
		"mtp tuner conns meet-timeout busbar-gpu perftest",
	"step":   "advise loader sample-size read-rate every mfu gpus",
	"doctor": "comm size op compare env devices",
	"predict": "hosts links root launch ranks channels pieces groups inner outer hidden topk experts mode sms " +
		"node-limit",
	"goodput": "checkpoint-time checkpoint-interval restart-time async-checkpoint spares elastic repair-time node-loss " +
		"compare",
	"plan": "files keep-order detected reserve host-memory max-nodes max-step avoid pick",
	"bench": "tls-cert tls-key tls-ca redop root groups small repeat nccl-tests shapes qps gid-index batch speed " +
		"first-bucket bucket-cap",
	"check":     "tls-cert tls-key tls-ca no-load",
	"calibrate": "class max-median max-p90",
	"diff":      "alpha",
	"lab":       "inside spines mtu staging staging-local rootless",
	"hang":      "trigger gap",
	"serve":     "nats-ca nats-creds bus-plain keep webhook-secret-file no-fleet no-agent host expires",
	"agent":     "meet-port max-memory look",
	"fleet":     "busy at-once small within server-ca rounds",
}

// arrange makes keys of --set of the flags that are seldom needed.
func arrange(nodes []*kong.Node, command string) {
	for _, n := range nodes {
		top := cmp.Or(command, n.Name)
		rare := strings.Fields(keys[""] + " " + keys[top])
		for _, f := range n.Flags {
			if slices.Contains(rare, f.Name) {
				f.Hidden, f.Group = true, keyGroup
			}
		}
		arrange(n.Children, top)
	}
}

var keyGroup = &kong.Group{Key: "keys", Title: "Keys of --set KEY=VALUE:"}

// isKey reports a key of --set.
func isKey(f *kong.Flag) bool { return f.Group == keyGroup }

// called are the arguments with what people write for commands: nothing, --version, help COMMAND.
func called(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"here"}
	case args[0] == "--version" || args[0] == "-V":
		return append([]string{"version"}, args[1:]...)
	case args[0] == "help" && (len(args) == 1 || helpSection("help "+args[1]) == ""):
		return append(slices.Clone(args[1:]), "--help")
	}
	return args
}

// renamedTo is what an old or guessed name of a command is called now; "" where it is none.
func renamedTo(args []string) (old, now string) {
	for line := range strings.SplitSeq(helpSection("names"), "\n") {
		names, now, _ := strings.Cut(line, ": ")
		for name := range strings.SplitSeq(names, ", ") {
			if strings.HasPrefix(strings.Join(args, " ")+" ", name+" ") {
				return name, now
			}
		}
	}
	return "", ""
}

// helpAsked is the command that -h or --help asks about; nil where neither is there, or the command is unknown.
func helpAsked(app *kong.Application, args []string) (n *kong.Node, short bool) {
	n, rest := named(app, args)
	if n == app.Node && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return nil, false
	}
	if p := n.Positional; len(p) > 0 && p[len(p)-1].Passthrough { // what follows is another program's
		rest = rest[:min(1, len(rest))]
	}
	for _, a := range rest {
		switch a {
		case "--":
			return nil, false
		case "-h", "--help":
			return n, a == "-h"
		}
	}
	return nil, false
}

// named is the command that arguments begin with, and what follows it.
func named(app *kong.Application, args []string) (n *kong.Node, rest []string) {
	n = app.Node
	for i, a := range args {
		at := slices.IndexFunc(n.Children, func(c *kong.Node) bool { return c.Name == a })
		if at < 0 {
			return n, args[i:]
		}
		n = n.Children[at]
	}
	return n, nil
}

// helpWidth is how wide help is; behind flags and commands what they are begins at a column.
const helpWidth, flagColumn, commandColumn = 80, 28, 14

// What -h shows at most: flags, of them those of a group, and examples.
const shortFlags, shortOfGroup, shortExamples = 15, 5, 3

// helpText is what a command does and takes: on one screen for -h, all of it for --help.
func helpText(n *kong.Node, short bool) string {
	var b strings.Builder
	own := n
	if n.DefaultCmd != nil {
		own = n.DefaultCmd
	}
	about, examples, _ := strings.Cut(helpSection(commandWords(n)), "Examples:\n")
	if n.Type == kong.ApplicationNode {
		short = false
		fmt.Fprintln(&b, "Usage: busbar COMMAND [FLAGS]; busbar COMMAND -h, or --help for all flags")
	} else {
		fmt.Fprintln(&b, usageOf(n, own))
	}
	text := n.Help
	if about = strings.TrimSpace(about); !short && about != "" {
		text += "\n\n" + about
	}
	for part := range strings.SplitSeq(text, "\n\n") {
		part = strings.ReplaceAll(part, "\n", " ")
		fmt.Fprintf(&b, "\n%s\n", strings.Join(texttab.Wrap(part, helpWidth), "\n"))
	}
	for i, p := range own.Positional {
		if i == 0 {
			fmt.Fprintln(&b)
		}
		writeEntry(&b, flagColumn, p.Summary(), p.Help, short)
	}
	writeFlags(&b, n, short)
	writeCommands(&b, n)
	if examples != "" {
		lines := strings.Split(examples, "\n")
		if short {
			lines = slices.DeleteFunc(lines, func(l string) bool { return len(l) > helpWidth })
			lines = lines[:min(len(lines), shortExamples)]
		}
		fmt.Fprintf(&b, "\nExamples:\n%s\n", strings.Join(lines, "\n"))
	}
	if short {
		fmt.Fprintf(&b, "\nAll of it: busbar %s --help\n", commandWords(n))
	}
	return b.String()
}

// usageOf is how a command is called, by itself and with those below it.
func usageOf(n, own *kong.Node) string {
	words := commandWords(n)
	var lines []string
	if own.Leaf() {
		line := "busbar " + words
		for _, p := range own.Positional {
			line += " " + p.Summary()
		}
		lines = append(lines, line+" [FLAGS]")
	}
	if len(callable(n.Children)) > 0 {
		lines = append(lines, "busbar "+words+" COMMAND [FLAGS]")
	}
	return "Usage: " + strings.Join(lines, "\n       ")
}

// writeFlags writes flags under their titles; for -h the first of each, for --help also the keys of --set.
func writeFlags(b *strings.Builder, n *kong.Node, short bool) {
	flags, left := allFlags(n), shortFlags
	write := func(title string, list []*kong.Flag) {
		if short {
			list = list[:min(len(list), shortOfGroup, left)]
			left -= len(list)
		} else if len(list) > 0 {
			fmt.Fprintf(b, "\n%s\n", title)
		}
		for _, f := range list {
			writeEntry(b, flagColumn, flagName(f), f.Help, short)
		}
	}
	if short && len(flags) > 0 {
		fmt.Fprintln(b)
	}
	for _, g := range flagGroups {
		write(g.title, ofGroup(flags, g.names))
	}
	if !short {
		write(keyGroup.Title, slices.DeleteFunc(slices.Clone(flags), func(f *kong.Flag) bool { return !isKey(f) }))
	}
}

// ofGroup are the flags of these names in their order; without names those that no group has.
func ofGroup(flags []*kong.Flag, names string) (list []*kong.Flag) {
	for _, f := range flags {
		in := func(names string) bool { return slices.Contains(strings.Fields(names), f.Name) }
		if !f.Hidden && (in(names) || names == "" &&
			!slices.ContainsFunc(flagGroups, func(g struct{ title, names string }) bool { return in(g.names) })) {
			list = append(list, f)
		}
	}
	if order := strings.Fields(names); len(order) > 0 {
		slices.SortStableFunc(list, func(a, b *kong.Flag) int {
			return slices.Index(order, a.Name) - slices.Index(order, b.Name)
		})
	}
	return list
}

// flagName is a flag as help has it.
func flagName(f *kong.Flag) string {
	value := ""
	if !f.IsBool() {
		value = "=" + strings.Trim(f.FormatPlaceHolder(), `"`)
	}
	switch {
	case isKey(f) && value == "":
		return f.Name + "=1"
	case isKey(f):
		return f.Name + value
	case f.Short != 0:
		return fmt.Sprintf("-%c, --%s%s", f.Short, f.Name, value)
	}
	return "--" + f.Name + value
}

// writeEntry writes a name and, from a column on, what it is; for -h on one line, cut where that is full.
func writeEntry(b *strings.Builder, column int, name, text string, short bool) {
	lines := texttab.Wrap(text, helpWidth-column)
	if short {
		first, _, _ := strings.Cut(strings.TrimSuffix(text, "."), ". ")
		if lines = texttab.Wrap(first, helpWidth-column-2); len(lines) > 1 {
			lines = []string{lines[0] + " …"}
		}
		if flag, _, ok := strings.Cut(name, "="); ok && len(name) > column-4 {
			name = flag + "=…"
		}
	}
	if len(name) > column-4 {
		fmt.Fprintf(b, "  %s\n", name)
		name = ""
	}
	for _, l := range lines {
		fmt.Fprintf(b, "  %-*s%s\n", column-2, name, l)
		name = ""
	}
}

// writeCommands writes the commands below a command, those of the program by their groups.
func writeCommands(b *strings.Builder, n *kong.Node) {
	group := ""
	for _, c := range n.Children {
		if c.Hidden {
			continue
		}
		title := "Commands"
		if c.Group != nil {
			title = c.Group.Title
		}
		if title != group {
			fmt.Fprintf(b, "\n%s:\n", title)
			group = title
		}
		writeEntry(b, commandColumn, c.Name, c.Help, n.Type != kong.ApplicationNode)
	}
	if n.Type == kong.ApplicationNode {
		fmt.Fprintln(b, "\nAlso: help clusters|exit-codes|models|units; version, completion, man, self-test")
	}
}
