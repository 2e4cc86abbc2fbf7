package texttab

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Width is the number of runes in s, without its colour codes.
func Width(s string) int {
	n := 0
	for len(s) > 0 {
		if k := sgr(s); k > 0 {
			s = s[k:]
			continue
		}
		_, k := utf8.DecodeRuneInString(s)
		s = s[k:]
		n++
	}
	return n
}

// Strip removes colour codes.
func Strip(s string) string {
	if !strings.Contains(s, "\x1b[") {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		if k := sgr(s); k > 0 {
			s = s[k:]
			continue
		}
		b.WriteByte(s[0])
		s = s[1:]
	}
	return b.String()
}

// sgr is the length of the colour code that s begins with, or 0.
func sgr(s string) int {
	if !strings.HasPrefix(s, "\x1b[") {
		return 0
	}
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case c == 'm':
			return i + 1
		case c != ';' && (c < '0' || c > '9'):
			return 0
		}
	}
	return 0
}

// Wrap breaks a text at its spaces into lines of at most width runes. A word
// longer than that stands on a line of its own, unbroken, so that a path or an
// address can still be copied. Line breaks in s are kept. A width below 1 means
// no limit.
func Wrap(s string, width int) []string {
	var lines []string
	for para := range strings.SplitSeq(s, "\n") {
		lines = append(lines, Flow(strings.Fields(para), " ", width)...)
	}
	return lines
}

// Flow sets pieces one behind the other with sep between them and begins a new
// line where the next piece would pass width. Pieces are never broken.
func Flow(pieces []string, sep string, width int) []string {
	if len(pieces) == 0 {
		return []string{""}
	}
	var lines []string
	line, used := pieces[0], Width(pieces[0])
	for _, p := range pieces[1:] {
		w := Width(p)
		if width > 0 && used+Width(sep)+w > width {
			lines = append(lines, line)
			line, used = p, w
			continue
		}
		line += sep + p
		used += Width(sep) + w
	}
	return append(lines, line)
}

// Clean removes what a text could do to a terminal beyond being read: colour
// codes, control characters but line breaks and tabs, and marks that turn the
// direction of writing. Bytes that are no UTF-8 become U+FFFD.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, Strip(s))
}

// Harmless is Clean for a whole output, which may be long and in colours: codes that set colours stay.
func Harmless(p []byte) []byte {
	if !suspect(p) {
		return p
	}
	out := make([]byte, 0, len(p))
	for i := 0; i < len(p); {
		r, n := utf8.DecodeRune(p[i:])
		switch {
		case r == utf8.RuneError && n == 1 && utf8.FullRune(p[i:]):
			out = append(out, "\uFFFD"...)
		case r == 0x1b:
			if n = colour(p[i:]); n > 0 {
				out = append(out, p[i:i+n]...)
			} else {
				n = 1
			}
		case r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)):
		default:
			out = append(out, p[i:i+n]...)
		}
		i += n
	}
	return out
}

// suspect reports bytes that may be part of what Harmless leaves out.
func suspect(p []byte) bool {
	return slices.ContainsFunc(p, func(c byte) bool { return c < ' ' && c != '\n' && c != '\t' || c >= 0x7f })
}

// colour is the length of one of the codes that report writes, at the beginning of a text; else 0.
func colour(p []byte) int {
	for _, code := range []string{"0", "1", "2", "31", "32", "33", "36"} {
		if bytes.HasPrefix(p, []byte("\x1b["+code+"m")) {
			return len(code) + 3
		}
	}
	return 0
}
