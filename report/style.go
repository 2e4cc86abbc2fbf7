package report

import (
	"strings"

	"busbar.dev/internal/texttab"
)

// printed is a text for o, free of what a name in a file could send to a
// terminal. render is asked without colour first: an escape in what comes is the
// input's own, and nobody can tell it from ours once there is colour, so such a
// text stays without.
func printed(o TextOptions, render func(style) string) string {
	text := render(style{})
	if o.Color && !strings.ContainsRune(text, '\x1b') {
		return keepSGR(render(style{on: true}))
	}
	return texttab.Clean(text)
}

// keepSGR cleans a text whose only escapes are ours.
func keepSGR(s string) string {
	parts := strings.Split(s, "\x1b")
	for i := range parts {
		parts[i] = texttab.Clean(parts[i])
	}
	return strings.Join(parts, "\x1b")
}

// style colours text for a terminal, or does not.
type style struct{ on bool }

func (s style) sgr(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(t string) string   { return s.sgr("1", t) }
func (s style) dim(t string) string    { return s.sgr("2", t) }
func (s style) red(t string) string    { return s.sgr("31", t) }
func (s style) green(t string) string  { return s.sgr("32", t) }
func (s style) yellow(t string) string { return s.sgr("33", t) }
func (s style) cyan(t string) string   { return s.sgr("36", t) }
