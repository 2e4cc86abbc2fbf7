package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"busbar.dev/ask"
	"busbar.dev/query"
)

type completionCmd struct {
	common
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help ends with an example.
func (completionCmd) Help() string {
	return "Examples:\n  source <(busbar completion bash)\n  busbar completion fish > " +
		"~/.config/fish/completions/busbar.fish"
}

// word is something that can be completed after a command.
type word struct{ text, help string }

// Run prints a static script made from the command line's own model.
func (c completionCmd) Run(e *env) error {
	var b strings.Builder
	nodes := callable(e.model.Children)
	presets, err := query.Presets{}.Run(e.ctx, query.Env{})
	if err != nil {
		return err
	}
	words := map[string][]word{}
	for _, n := range nodes {
		name := commandWords(n)
		words[name] = flagWords(n)
		if n.Name == "map" || n.Name == "predict" {
			for _, p := range presets.Presets {
				words[name] = append(words[name], word{p.Name, p.Summary})
			}
		}
	}
	switch c.Shell {
	case "bash", "zsh":
		bashScript(&b, c.Shell, nodes, words)
	case "fish":
		fishScript(&b, nodes, words)
	}
	_, err = e.stdout.Write([]byte(b.String()))
	return err
}

// flagWords are what can follow a command: its subcommands, its flags and those of what it
// does by itself, and the words that its arguments can be.
func flagWords(n *kong.Node) []word {
	var w []word
	for _, sub := range n.Children {
		if !sub.Hidden {
			w = append(w, word{sub.Name, sub.Help})
		}
	}
	for _, f := range allFlags(n) {
		if !f.Hidden {
			w = append(w, word{"--" + f.Name, f.Help})
		}
	}
	for _, p := range n.Positional {
		for _, v := range strings.Split(p.Enum, ",") {
			if v != "" {
				w = append(w, word{v, ""})
			}
		}
	}
	return w
}

// takesFiles lists commands whose arguments are files.
func takesFiles(command string) bool {
	switch command {
	case "map", "predict", "validate", "calibrate", "bench diff":
		return true
	}
	return false
}

// bashScript writes a completion function; zsh runs it through bashcompinit.
// Files are offered only where a command takes them; a preset is completed
// without a space, so that :COUNT can follow.
func bashScript(b *strings.Builder, shell string, nodes []*kong.Node, words map[string][]word) {
	var names []string
	for _, n := range nodes {
		if n.Parent.Type == kong.ApplicationNode {
			names = append(names, n.Name)
		}
	}
	if shell == "zsh" {
		b.WriteString("#compdef busbar\nautoload -U +X bashcompinit && bashcompinit\n")
	}
	b.WriteString("_busbar() {\n  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words files\n  " +
		"if [ \"$COMP_CWORD\" -eq 1 ]; then\n")
	fmt.Fprintf(b, "    COMPREPLY=($(compgen -W %q -- \"$cur\"))\n    return\n  fi\n", strings.Join(names, " "))
	bashValues(b, nodes)
	b.WriteString("  case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n")
	for _, n := range slices.Backward(nodes) { // a subcommand before its command
		name := commandWords(n)
		var list []string
		for _, w := range words[name] {
			list = append(list, w.text)
		}
		files := ""
		if takesFiles(name) {
			files = " files=1"
		}
		pattern := fmt.Sprintf("%q", name)
		if n.Parent.Type == kong.ApplicationNode {
			pattern = fmt.Sprintf("%q*", name+" ")
		}
		fmt.Fprintf(b, "    %s) words=%q%s ;;\n", pattern, strings.Join(list, " "), files)
	}
	b.WriteString("  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n")
	b.WriteString("  case ${COMPREPLY[0]} in -*|\"\") ;; *) [ -n \"$files\" ] && compopt -o nospace 2>/dev/null ;; esac\n")
	b.WriteString("  [ -n \"$files\" ] && COMPREPLY+=($(compgen -f -- \"$cur\"))\n}\n")
	b.WriteString("complete -o filenames -F _busbar busbar\n")
}

// values are the words that a flag of a command can have.
func values(command, flag string) string { return strings.Join(query.Values(command, flag), " ") }

// enums are the words that can stand behind flags which take no others.
func enums(nodes []*kong.Node) map[string][]string {
	all := map[string][]string{}
	for _, n := range nodes {
		for _, f := range allFlags(n) {
			for _, v := range strings.Split(f.Enum, ",") {
				if v != "" && !f.Hidden && !slices.Contains(all[f.Name], v) {
					all[f.Name] = append(all[f.Name], v)
				}
			}
		}
	}
	return all
}

// bashValues completes what stands behind a flag.
func bashValues(b *strings.Builder, nodes []*kong.Node) {
	b.WriteString("  case $prev in\n    -o|--output)\n      case ${COMP_WORDS[1]} in\n")
	fmt.Fprintf(b, "        map) COMPREPLY=($(compgen -W %q -- \"$cur\")); return ;;\n",
		strings.Join(slices.Sorted(slices.Values((&env{}).forms(ask.Map, nil, common{}).names())), " "))
	b.WriteString("      esac\n      COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n")
	fmt.Fprintf(b, "    -c|--cluster) COMPREPLY=($(compgen -W %q -- \"$cur\") $(compgen -f -- \"$cur\")); compopt -o "+
		"nospace 2>/dev/null; return ;;\n", values("", "cluster"))
	for _, f := range []struct{ words, flag string }{
		{"--op", "op"}, {"-d|--dtype", "dtype"}, {"--nccl", "nccl"}, {"-m|--model", "model"},
	} {
		fmt.Fprintf(b, "    %s) COMPREPLY=($(compgen -W %q -- \"$cur\")); return ;;\n", f.words, values("", f.flag))
	}
	words := enums(nodes)
	for _, name := range sortedKeys(words) {
		if name != "output" {
			fmt.Fprintf(b, "    --%s) COMPREPLY=($(compgen -W %q -- \"$cur\")); return ;;\n", name,
				strings.Join(words[name], " "))
		}
	}
	b.WriteString("    --algo)\n      case ${COMP_WORDS[1]} in\n")
	for _, n := range []string{"predict", "bench", "*"} {
		fmt.Fprintf(b, "        %s) COMPREPLY=($(compgen -W %q -- \"$cur\")); return ;;\n", n, values(n, "algo"))
	}
	b.WriteString("      esac ;;\n    --proto) COMPREPLY=($(compgen -W \"" + values("", "proto") +
		"\" -- \"$cur\")); return ;;\n    --path) return ;;\n  esac\n")
}

// fishSeen is fish's question whether a command and nothing below it was named.
func fishSeen(n *kong.Node) string {
	seen := "__fish_seen_subcommand_from " + n.Name
	if n.Parent.Type != kong.ApplicationNode {
		return fishSeen(n.Parent) + "; and " + seen
	}
	return seen
}

func fishScript(b *strings.Builder, nodes []*kong.Node, words map[string][]word) {
	for _, n := range nodes {
		if n.Parent.Type == kong.ApplicationNode {
			fmt.Fprintf(b, "complete -c busbar -n __fish_use_subcommand -a %s -d '%s'\n", n.Name, fishQuote(n.Help))
		}
		name := commandWords(n)
		for _, w := range words[name] {
			fmt.Fprintf(b, "complete -c busbar -n '%s' ", fishSeen(n))
			long, isFlag := strings.CutPrefix(w.text, "--")
			list := enums(nodes)[long]
			if known := query.Values(n.Name, long); len(known) > 0 && long != "cluster" { // which is more often a file
				list = known
			}
			switch {
			case isFlag && list != nil:
				fmt.Fprintf(b, "-l %s -x -a '%s'", long, strings.Join(list, " "))
			case isFlag:
				fmt.Fprintf(b, "-l %s", long)
			default:
				fmt.Fprintf(b, "-a %s", w.text)
			}
			fmt.Fprintf(b, " -d '%s'\n", fishQuote(w.help))
		}
	}
}

func fishQuote(s string) string { return strings.ReplaceAll(s, "'", `\'`) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
