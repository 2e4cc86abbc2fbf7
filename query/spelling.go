package query

import (
	"errors"
	"slices"
	"strings"

	"busbar.dev/internal/failure"
)

// FieldError is an error about one parameter of a question. What a question returns is one wherever the parameter is known;
// errors.As finds it.
type FieldError struct {
	// Field is the parameter, as Param.Name has it: size, global-batch.
	Field string

	text string
	err  error
}

// Error is the text, which names parameters as Field does, or as flags where Env.Flags asks for them.
func (e *FieldError) Error() string { return e.text }

// Unwrap is the error that it is made of.
func (e *FieldError) Unwrap() error { return e.err }

// Here and in the packages below, texts name a parameter by its flag (--size, -c), which nothing else is taken for. Who asks
// through the command gets them as they are; everybody else gets the parameter's name, as spelled writes it.

// spelled gives an error the names that its reader knows, and the parameter that it is about.
func (e *Env) spelled(err error) error {
	if err == nil || e.question == nil {
		return err
	}
	if already := (*FieldError)(nil); errors.As(err, &already) {
		return err // by the question that this one asked
	}
	text, first := unflagged(err.Error(), Params(e.question))
	var named interface{ Field() string }
	if errors.As(err, &named) {
		first = named.Field()
	}
	if e.Flags {
		text = err.Error()
	}
	if first == "" && text == err.Error() {
		return err
	}
	return &FieldError{Field: first, text: text, err: err}
}

// aboutNamed says that an error is about the parameter that names a cluster or a model, as its tag says.
func (e *Env) aboutNamed(what string, err error) error {
	if err == nil || e.question == nil {
		return err
	}
	for _, p := range Params(e.question) {
		if p.Names == what {
			return failure.In(p.Name, err)
		}
	}
	return err
}

// unflagged is a text with the names of parameters instead of their flags, and the first of them. Commands in the text stay.
func unflagged(text string, params []Param) (plain, first string) {
	if !strings.Contains(text, "-") {
		return text, ""
	}
	var b strings.Builder
	for at := 0; at < len(text); {
		rest := text[at:]
		begins := at == 0 || strings.ContainsRune(" (\n", rune(text[at-1]))
		if n := commandLen(rest); n > 0 && (begins || text[at-1] == '`') {
			b.WriteString(rest[:n])
			at += n
			continue
		}
		if p, n := flagAt(rest, params); begins && p != nil {
			b.WriteString(p.Name)
			if first == "" {
				first = p.Name
			}
			at += n
			continue
		}
		b.WriteByte(text[at])
		at++
	}
	return b.String(), first
}

// commandLen is how much of a text is a command line, whose flags are not the question's: up to a sign that ends it.
func commandLen(text string) int {
	begin := 0
	for _, program := range []string{"busbar ", "nvidia-smi "} {
		if strings.HasPrefix(text, program) {
			begin = len(program)
		}
	}
	if begin == 0 {
		return 0
	}
	for i := begin; i < len(text); i++ {
		switch c := text[i]; {
		case strings.IndexByte(";()`\n", c) >= 0:
			return i
		case (c == ',' || c == ':') && (i+1 == len(text) || text[i+1] == ' '):
			return i
		}
	}
	return len(text)
}

// flagAt is the parameter whose flag a text begins with, and the length of the flag with the placeholder behind it.
func flagAt(text string, params []Param) (*Param, int) {
	if len(text) < 2 || text[0] != '-' {
		return nil, 0
	}
	end := 1
	for end < len(text) && (text[end] == '-' || text[end] >= 'a' && text[end] <= 'z' || text[end] >= '0' && text[end] <= '9') {
		end++
	}
	flag := strings.TrimRight(text[:end], "-")
	i := slices.IndexFunc(params, func(p Param) bool {
		return !p.Argument && (flag == "--"+p.Name || p.Short != "" && flag == "-"+p.Short)
	})
	if i < 0 {
		return nil, 0
	}
	p, n := &params[i], len(flag)
	if word := " " + p.placeholder; p.placeholder != "" && strings.HasPrefix(text[n:], word) {
		n += len(word)
	}
	return p, n
}
