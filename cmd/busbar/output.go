package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/report"
)

// form is a way to write what a command has to say.
type form struct {
	name    string
	endings []string // of names of files that are written so
	write   func(io.Writer) error
}

// forms are all ways of a command. The grammar of -o is theirs: FORMAT writes to standard output, FORMAT=FILE to a
// file, and a FILE's ending says its format.
type forms struct {
	list []form
	// also says that files are written besides what stands on standard output, so that - alone has no format.
	also bool
}

// target is one word of -o: a form, and a file that is empty for standard output.
type target struct {
	word string
	form string
	file string
}

func (t target) stdout() bool { return t.file == "" }

// find reads a word of -o.
func (f forms) find(word string) (target, error) {
	if name, file, ok := strings.Cut(word, "="); ok && f.named(name) != nil && file != "" {
		if isStdout(file) {
			file = ""
		}
		return target{word, name, file}, nil
	}
	switch {
	case f.named(word) != nil:
		return target{word, word, ""}, nil
	case isStdout(word) && !f.also:
		return target{word, f.list[0].name, ""}, nil
	case isStdout(word):
		return target{}, fmt.Errorf("-o %s: in which form? %s", word, enumerated(f.names(), "=-", "or"))
	}
	best, end := "", ""
	for _, x := range f.list {
		for _, e := range x.endings {
			if strings.HasSuffix(strings.ToLower(word), e) && len(e) > len(end) {
				best, end = x.name, e
			}
		}
	}
	if best != "" {
		return target{word, best, word}, nil
	}
	return target{}, f.refusal(word)
}

// refusal says what -o takes.
func (f forms) refusal(word string) error {
	if f.named("svg") != nil {
		if err := noPixels(word); err != nil {
			return err
		}
	}
	var endings []string
	for _, x := range f.list {
		endings = append(endings, x.endings...)
	}
	names := enumerated(f.names(), "", "or") + " (FORMAT=FILE writes to a file)"
	switch ends := "a file name that ends in " + enumerated(endings, "", "or"); {
	case len(endings) == 0:
		return fmt.Errorf("-o %s: expected %s", word, names)
	case f.also:
		return fmt.Errorf("-o %s: expected %s, or a format: %s", word, ends, names)
	default:
		return fmt.Errorf("-o %s: expected %s, or %s", word, names, ends)
	}
}

func (f forms) named(name string) *form {
	i := slices.IndexFunc(f.list, func(x form) bool { return x.name == name })
	if i < 0 {
		return nil
	}
	return &f.list[i]
}

func (f forms) names() []string {
	var list []string
	for _, x := range f.list {
		list = append(list, x.name)
	}
	return list
}

// several reads all words of -o, and refuses what could not be written and two things on standard output.
func (f forms) several(e *env, words []string, asJSON bool) ([]target, error) {
	var list []target
	taken := ""
	if asJSON {
		taken = "--json"
	}
	for _, word := range words {
		t, err := f.find(word)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
		if !t.stdout() {
			if err := e.writable(t.file); err != nil {
				return nil, err
			}
			continue
		}
		if taken != "" {
			return nil, fmt.Errorf("%s and -o %s both want standard output; take one of them", taken, word)
		}
		taken = "-o " + word
	}
	return list, nil
}

// write writes to one target.
func (f forms) write(e *env, t target) error {
	return e.writeOut(t.file, f.named(t.form).write)
}

// writeAll writes every target, and what stands on standard output where none of them does: the first form, or JSON.
// Where files are instead of that, they suffice.
func (f forms) writeAll(e *env, targets []target, asJSON bool) error {
	rest := target{form: f.list[0].name}
	if asJSON {
		rest.form = "json"
	}
	written := func(t target) bool { return t.stdout() || !f.also && (!asJSON || t.form == rest.form) }
	if !slices.ContainsFunc(targets, written) {
		targets = append(slices.Clip(targets), rest)
	}
	for _, t := range targets {
		if err := f.write(e, t); err != nil {
			return err
		}
	}
	return nil
}

// pictured writes a picture.
func pictured(draw func() (*report.Picture, error)) func(io.Writer) error {
	return func(w io.Writer) error {
		p, err := draw()
		if err != nil {
			return err
		}
		return p.SVG(w)
	}
}

// drawable refuses a picture's file that could not be written.
func (e *env) drawable(file string) error {
	if err := noPixels(file); err != nil {
		return err
	}
	return e.writable(file)
}

// noPixels refuses a picture's file that is no SVG.
func noPixels(file string) error {
	if !strings.HasSuffix(strings.ToLower(file), ".png") && file != "png" {
		return nil
	}
	return fmt.Errorf("-o %s: pictures are SVG; write x.svg, which browsers show, and make PNG of it: rsvg-convert "+
		"x.svg -o x.png", file)
}

// enumerated are words as a sentence has them.
func enumerated(words []string, end, joint string) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = w + end
	}
	if n := len(list); n > 1 {
		return strings.Join(list[:n-1], ", ") + " " + joint + " " + list[n-1]
	}
	return strings.Join(list, "")
}
