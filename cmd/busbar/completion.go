package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"busbar/coll"
	"busbar/hardware"
	"busbar/nccl"
	"busbar/predict"
	"busbar/schedule"
)

type completionCmd struct {
	common
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help ends with an example.
func (completionCmd) Help() string {
	return "Examples:\n  source <(busbar completion bash)\n  busbar completion fish > ~/.config/fish/completions/busbar.fish"
}

// word is something that can be completed after a command.
type word struct{ text, help string }

// Run prints a static script made from the command line's own model.
func (c completionCmd) Run(e *env) error {
	var b strings.Builder
	var names []string
	words := map[string][]word{}
	for _, n := range e.model.Children {
		if n.Hidden {
			continue
		}
		names = append(names, n.Name)
		words[n.Name] = flagWords(n)
		if n.Name == "map" || n.Name == "predict" {
			for _, p := range hardware.Presets() {
				words[n.Name] = append(words[n.Name], word{p.Name, p.Summary})
			}
		}
	}
	switch c.Shell {
	case "bash", "zsh":
		bashScript(&b, c.Shell, names, words)
	case "fish":
		fishScript(&b, e.model.Children, words)
	}
	_, err := e.stdout.Write([]byte(b.String()))
	return err
}

func flagWords(n *kong.Node) []word {
	var w []word
	for _, f := range n.Flags {
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

func presetNames() []string {
	var list []string
	for _, p := range hardware.Presets() {
		list = append(list, p.Name)
	}
	return list
}

func kindNames() []string {
	var list []string
	for _, k := range coll.Kinds() {
		list = append(list, k.String())
	}
	return list
}

// algoNames are the words of --algo, which commands have different ones of beside
// the names of algorithms.
func algoNames(command string) []string {
	var list []string
	switch command {
	case "predict":
		list = []string{predict.Auto, predict.Best, predict.Each, predict.All}
	case "bench":
		list = []string{predict.Auto}
	}
	for _, b := range schedule.Builders() {
		list = append(list, b.Name)
	}
	return list
}

func dtypeNames() []string {
	var list []string
	for d := range coll.Dtype(255) {
		if d.String() == fmt.Sprintf("type(%d)", d) {
			break
		}
		list = append(list, d.String())
	}
	return list
}

// releases are those of NCCL whose rules are known, the newest first.
func releases() []string {
	var list []string
	for minor := nccl.Newest.Minor; minor >= nccl.Oldest.Minor; minor-- {
		list = append(list, fmt.Sprintf("%d.%d", nccl.Newest.Major, minor))
	}
	return list
}

// bashScript writes a completion function; zsh runs it through bashcompinit.
// Files are offered only where a command takes them; a preset is completed
// without a space, so that :COUNT can follow.
func bashScript(b *strings.Builder, shell string, names []string, words map[string][]word) {
	if shell == "zsh" {
		b.WriteString("#compdef busbar\nautoload -U +X bashcompinit && bashcompinit\n")
	}
	b.WriteString("_busbar() {\n  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words files\n  if [ \"$COMP_CWORD\" -eq 1 ]; then\n")
	fmt.Fprintf(b, "    COMPREPLY=($(compgen -W %q -- \"$cur\"))\n    return\n  fi\n", strings.Join(names, " "))
	b.WriteString("  case $prev in\n    -o|--output)\n      case ${COMP_WORDS[1]} in\n")
	fmt.Fprintf(b, "        map) COMPREPLY=($(compgen -W %q -- \"$cur\")); return ;;\n", strings.Join(slices.Sorted(maps.Keys(outputs)), " "))
	b.WriteString("      esac\n      COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n")
	fmt.Fprintf(b, "    -c|--cluster) COMPREPLY=($(compgen -W %q -- \"$cur\") $(compgen -f -- \"$cur\")); compopt -o nospace 2>/dev/null; return ;;\n", strings.Join(presetNames(), " "))
	fmt.Fprintf(b, "    --op) COMPREPLY=($(compgen -W %q -- \"$cur\")); return ;;\n", strings.Join(kindNames(), " "))
	fmt.Fprintf(b, "    -d|--dtype) COMPREPLY=($(compgen -W %q -- \"$cur\")); return ;;\n", strings.Join(dtypeNames(), " "))
	fmt.Fprintf(b, "    --nccl) COMPREPLY=($(compgen -W %q -- \"$cur\")); return ;;\n", strings.Join(releases(), " "))
	b.WriteString("    --algo)\n      case ${COMP_WORDS[1]} in\n")
	for _, n := range []string{"predict", "bench", "*"} {
		fmt.Fprintf(b, "        %s) COMPREPLY=($(compgen -W %q -- \"$cur\")); return ;;\n", n, strings.Join(algoNames(n), " "))
	}
	b.WriteString("      esac ;;\n    --proto) COMPREPLY=($(compgen -W \"auto ll ll128 simple\" -- \"$cur\")); return ;;\n    --path) return ;;\n  esac\n")
	b.WriteString("  case ${COMP_WORDS[1]} in\n")
	for _, n := range names {
		var list []string
		for _, w := range words[n] {
			list = append(list, w.text)
		}
		files := ""
		if n == "map" || n == "predict" {
			files = " files=1"
		}
		fmt.Fprintf(b, "    %s) words=%q%s ;;\n", n, strings.Join(list, " "), files)
	}
	b.WriteString("  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n")
	b.WriteString("  case ${COMPREPLY[0]} in -*|\"\") ;; *) [ -n \"$files\" ] && compopt -o nospace 2>/dev/null ;; esac\n")
	b.WriteString("  [ -n \"$files\" ] && COMPREPLY+=($(compgen -f -- \"$cur\"))\n}\n")
	b.WriteString("complete -o filenames -F _busbar busbar\n")
}

func fishScript(b *strings.Builder, nodes []*kong.Node, words map[string][]word) {
	for _, n := range nodes {
		if n.Hidden {
			continue
		}
		fmt.Fprintf(b, "complete -c busbar -n __fish_use_subcommand -a %s -d '%s'\n", n.Name, fishQuote(n.Help))
		for _, w := range words[n.Name] {
			if long, ok := strings.CutPrefix(w.text, "--"); ok {
				if list := valuesOf(n.Name, long); list != nil {
					fmt.Fprintf(b, "complete -c busbar -n '__fish_seen_subcommand_from %s' -l %s -x -a '%s' -d '%s'\n", n.Name, long, strings.Join(list, " "), fishQuote(w.help))
					continue
				}
				fmt.Fprintf(b, "complete -c busbar -n '__fish_seen_subcommand_from %s' -l %s -d '%s'\n", n.Name, long, fishQuote(w.help))
				continue
			}
			fmt.Fprintf(b, "complete -c busbar -n '__fish_seen_subcommand_from %s' -a %s -d '%s'\n", n.Name, w.text, fishQuote(w.help))
		}
	}
}

// valuesOf are the words that can stand behind a flag, where they are few.
func valuesOf(command, flag string) []string {
	switch flag {
	case "op":
		return kindNames()
	case "algo":
		return algoNames(command)
	case "dtype":
		return dtypeNames()
	case "nccl":
		return releases()
	case "proto":
		return []string{"auto", "ll", "ll128", "simple"}
	}
	return nil
}

func fishQuote(s string) string { return strings.ReplaceAll(s, "'", `\'`) }
