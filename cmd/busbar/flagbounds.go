package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"busbar.dev/internal/lazyre"
	"busbar.dev/query"
)

// outOfBounds reports a flag whose value is below or above what its tags allow. A zero that was typed is no way to ask
// for the usual.
func outOfBounds(k *kong.Context) error {
	for _, p := range k.Path {
		if p.Flag == nil {
			continue
		}
		if err := query.Bounds(p.Flag.Name, p.Flag.Target, p.Flag.Tag.Get("least"), p.Flag.Tag.Get("most")); err != nil {
			return err
		}
	}
	return nil
}

// unreadable is why flags could not be read, in words for people who do not count in bits. A flag that only a
// subcommand has is answered with that subcommand, because no other spelling of it helps.
func unreadable(err error) string {
	text := strings.ReplaceAll(err.Error(), "a valid 64 bit int", "a whole number of at most 18 digits")
	text = strings.ReplaceAll(text, `must be one of "",`, "must be one of ")
	text = noValue.ReplaceAllString(text, "expected a value after it")
	var p *kong.ParseError
	for _, m := range meant {
		if flag := unknownFlag.FindString(text); flag == "unknown flag "+m[0] {
			return flag + "; " + m[1]
		}
	}
	if flag := unknownFlag.FindString(text); flag != "" && errors.As(err, &p) && p.Context != nil {
		if list := owners(flag, commandWords(p.Context.Selected())); len(list) > 0 {
			return flag + "; it is a flag of " + enumerated(list, "", "and")
		}
	}
	return text
}

// mostOwners are as many commands as are named where a flag is another's.
const mostOwners = 4

// owners are commands that have a flag which a command lacks: those below it, or else any.
func owners(flag, of string) (list []string) {
	all, err := newParser(nil)
	if err != nil {
		return nil
	}
	for _, n := range callable(all.Model.Children) {
		if slices.ContainsFunc(allFlags(n), func(f *kong.Flag) bool {
			return flag == "unknown flag --"+f.Name || flag == "unknown flag -"+string(f.Short)
		}) {
			list = append(list, "busbar "+commandWords(n))
		}
	}
	top, _, _ := strings.Cut(of, " ")
	other := func(words string) bool { return !strings.HasPrefix(words, "busbar "+top+" ") }
	if near := slices.DeleteFunc(slices.Clone(list), other); len(near) > 0 {
		return near
	}
	return list[:min(len(list), mostOwners)]
}

// meant are flags of other programs and what says the same here.
var meant = [][2]string{
	{"--table", "--csv and --markdown print the tables"},
	{"--trace", "-o FILE.trace.json writes a timeline"},
	{"--svg", "-o FILE.svg draws"},
	{"--junit", "-o FILE.xml writes JUnit XML"},
	{"--goodput", "busbar goodput is about whole runs"},
	{"--batch-size", "--micro-batch is per GPU and pass, --global-batch of a whole step"},
	{"--gpus", "-l NODESxGPUS says how many take part, -c 4x4090 how many there are"},
}

// spelled makes of the arguments what kong reads: numbers below zero are joined to the flags before them, which would
// be taken for flags themselves and are refused by what the flag expects, -l=2x8 is -l2x8, --tp 4 is a part of
// --parallel, and --set KEY=VALUE of a key is its flag.
func spelled(args []string, app *kong.Application) []string {
	n, _ := named(app, args)
	flags := allFlags(n)
	has := func(name string) *kong.Flag {
		if i := slices.IndexFunc(flags, func(f *kong.Flag) bool { return f.Name == name }); i >= 0 {
			return flags[i]
		}
		return nil
	}
	var list, degrees []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			list = append(list, args[i:]...)
			break
		}
		if shortEqual.MatchString(a) {
			a = a[:2] + a[3:]
		}
		if i > 0 && belowZero.MatchString(a) && longFlag.MatchString(args[i-1]) {
			list[len(list)-1] += "=" + a
			continue
		}
		name, value, joined := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		next := func() string {
			if !joined && i+1 < len(args) {
				i++
				value = args[i]
			}
			return value
		}
		switch {
		case !strings.HasPrefix(a, "--"):
		case name == "parallel" || has("parallel") != nil && has(name) == nil && slices.Contains(degreeFlags, name):
			if next(); name != "parallel" {
				value = name + "=" + value
			}
			degrees = append(degrees, value)
			continue
		case name == "set":
			key, set, _ := strings.Cut(next(), "=")
			if a = "--set=" + value; has(key) != nil && isKey(has(key)) {
				a = "--" + key + "=" + set
			}
		}
		list = append(list, a)
	}
	if len(degrees) > 0 {
		list = slices.Insert(list, strings.Count(commandWords(n), " ")+1, "--parallel="+strings.Join(degrees, ","))
	}
	return list
}

// degreeFlags are parallel degrees that people write as flags.
var degreeFlags = strings.Fields("dp tp pp vpp cp ep etp zero shard sp")

var (
	shortEqual = lazyre.New(`^-[A-Za-z]=.`)
	belowZero  = lazyre.New(`^-[0-9.]+[A-Za-z]*$`)
	longFlag   = lazyre.New(`^--[a-z][a-z-]*$`)
)

// noValue is how kong says that a flag is the last word.
var noValue = lazyre.New(`expected \S+ value but got "EOL" \(<EOL>\)`)

// unknownFlag is how kong begins to refuse a flag.
var unknownFlag = lazyre.New(`^unknown flag --?[\w-]+`)
