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
	flag, found := strings.CutPrefix(unknownFlag.FindString(text), "unknown flag ")
	if !found {
		return text
	}
	text = "unknown flag " + flag
	here, name := meantBy(flag)
	if !errors.As(err, &p) || p.Context == nil || hasFlag(p.Context.Selected(), name) {
		if here != "" {
			return text + "; " + here
		}
		return err.Error()
	}
	command := commandWords(p.Context.Selected())
	switch others, list := owners(name, command), owners(flag, command); {
	case len(list) > 0:
		return text + "; it is a flag of " + enumerated(list, "", "and")
	case len(others) > 0:
		return text + "; here it is " + here + ", of " + enumerated(others, "", "and")
	case here != "":
		return text + "; " + here
	}
	return err.Error()
}

// hasFlag tells whether a command takes a flag: --name or -n.
func hasFlag(n *kong.Node, flag string) bool {
	return n != nil && slices.ContainsFunc(allFlags(n), func(f *kong.Flag) bool {
		return flag == "--"+f.Name || flag == "-"+string(f.Short)
	})
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
		if hasFlag(n, flag) {
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

// meantBy is what says here what a flag of another program says, however that joins its words, and the flag or word
// that this begins with; "" where none is known.
func meantBy(flag string) (here, name string) {
	flag = strings.ReplaceAll(flag, "_", "-")
	for _, m := range meant {
		if slices.Contains(strings.Fields(m[0]), flag) {
			name, _, _ = strings.Cut(m[1], " ")
			return m[1], name
		}
	}
	return "", ""
}

// meant are flags of other programs and what says the same here, which begins with its flag.
var meant = [][2]string{
	{"--table", "--csv and --markdown print the tables"},
	{"--trace", "busbar step -o FILE.trace.json writes a timeline"},
	{"--svg", "-o FILE.svg draws"},
	{"--junit", "busbar check -o FILE.xml writes JUnit XML"},
	{"--goodput", "busbar goodput is about whole runs"},
	{
		"--batch-size --per-device-train-batch-size --train-micro-batch-size-per-gpu",
		"--micro-batch is per GPU and pass, --global-batch of a whole step",
	},
	{
		"--train-batch-size --gradient-accumulation-steps",
		"--global-batch is of a whole step, --micro-batch per GPU and pass",
	},
	{
		"--gpus -g -N --nodes --nnodes --num-nodes --nproc-per-node --ntasks-per-node --gpus-per-node",
		"-l NODESxGPUS says how many take part (-l 16x8: 16 nodes of 8 GPUs), -c 4x4090 how many there are",
	},
	{"--fp8", "--precision fp8"},
	{"--bf16", "--precision bf16"},
	{"--fp16", "--precision fp16"},
	{"--seq-length --max-seq-length --max-seq-len --context-length", "--seq is the sequence length"},
	{"--zero-stage --stage", "--parallel zero=3 is ZeRO's stage"},
	{"--tensor-model-parallel-size --tensor-parallel-size", "--parallel tp=8 is the tensor-parallel degree"},
	{"--pipeline-model-parallel-size --pipeline-parallel-size", "--parallel pp=4 is the pipeline-parallel degree"},
	{"--context-parallel-size", "--parallel cp=2 is the context-parallel degree"},
	{"--expert-model-parallel-size --expert-parallel-size", "--parallel ep=8 is the expert-parallel degree"},
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
