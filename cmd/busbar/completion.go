package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"busbar.dev/query"
)

type completionCmd struct {
	common
	Shell string   `arg:"" enum:"bash,zsh,fish,words" help:"bash, zsh or fish; words prints what can follow the words of a command line, as the scripts ask."`
	Words []string `arg:"" optional:"" passthrough:"" help:"The words after busbar, the last of them unfinished."`
}

// completionScripts ask this program what can follow; where nothing can, the shell offers files.
var completionScripts = map[string]string{
	"bash": `_busbar() {
  COMPREPLY=($(busbar completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  case ${COMPREPLY[0]} in *[:=]) compopt -o nospace 2>/dev/null ;; esac
}
complete -o default -F _busbar busbar
`,
	"fish": "complete -c busbar -a '(busbar completion words -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'\n",
}

// Run prints a script, or the words for one.
func (c completionCmd) Run(e *env) error {
	text := completionScripts[c.Shell]
	switch c.Shell {
	case "zsh":
		text = "#compdef busbar\nautoload -U +X bashcompinit && bashcompinit\n" + completionScripts["bash"]
	case "words":
		words := append([]string{""}, c.Words[min(1, len(c.Words)):]...) // without --
		text = strings.Join(candidates(e.model, words[1:len(words)-1], words[len(words)-1]), "\n") + "\n"
	}
	_, err := fmt.Fprint(e.stdout, text)
	return err
}

// candidates are what a word that begins so can be after others.
func candidates(app *kong.Application, before []string, begun string) []string {
	n, rest := named(app, before)
	list := values(n, rest)
	if list == nil {
		list = following(n, rest)
	}
	return slices.DeleteFunc(list, func(w string) bool { return w == "" || !strings.HasPrefix(w, begun) })
}

// values are what can stand behind the flag that the words end in; nil where they end in none.
func values(n *kong.Node, words []string) []string {
	if len(words) == 0 {
		return nil
	}
	last := words[len(words)-1]
	for _, f := range allFlags(n) {
		switch {
		case f.IsBool() || last != "--"+f.Name && last != "-"+string(f.Short):
		case f.Name == "set":
			return keyNames(n)
		default:
			return append(query.Values(n.Name, f.Name), strings.Split(f.Enum, ",")...)
		}
	}
	return nil
}

// following are commands, what arguments can be, and flags.
func following(n *kong.Node, words []string) (list []string) {
	for _, sub := range n.Children {
		if !sub.Hidden && len(words) == 0 {
			list = append(list, sub.Name)
		}
	}
	for _, p := range n.Positional {
		list = append(list, strings.Split(p.Enum, ",")...)
	}
	for _, f := range allFlags(n) {
		if !f.Hidden {
			list = append(list, "--"+f.Name)
		}
	}
	if n.Name == "map" || n.Name == "predict" {
		list = append(list, query.Values("", "cluster")...)
	}
	return list
}

// keyNames are the keys of a command's --set.
func keyNames(n *kong.Node) (list []string) {
	for _, f := range allFlags(n) {
		if isKey(f) {
			list = append(list, f.Name+"=")
		}
	}
	return list
}
