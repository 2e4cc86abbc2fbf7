package report

import (
	"strings"

	"busbar/internal/texttab"
)

// printable drops what a name in a file could send to a terminal: control
// characters, and without colour also the codes for it.
func printable(s string, color bool) string {
	if !color {
		s = texttab.Strip(s)
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\x1b' && color:
			return r
		case r < 0x20 || r >= 0x7f && r < 0xa0:
			return -1
		}
		return r
	}, s)
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
