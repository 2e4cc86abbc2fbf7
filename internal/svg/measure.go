package svg

import (
	"cmp"
	"strings"
	"unicode"
)

// slack allows for the wider of the fonts in the stack: nobody knows which one
// the viewer has.
const slack = 1.10

// advance is the width of a character in Helvetica, as a part of the font size. Characters that are about as wide are
// taken as one: what is set here are names and figures.
func advance(r rune) float64 {
	switch {
	case strings.ContainsRune("ijlftrI.,:;'|!/()[] -·", r):
		return 0.31
	case strings.ContainsRune("mwMW@%…", r):
		return 0.86
	case unicode.IsUpper(r) || r > '~':
		return 0.7
	}
	return 0.556
}

func (t Type) size() float64 { return cmp.Or(t.Size, 12) }

// TextWidth estimates how wide a text is set, on the safe side.
func TextWidth(s string, t Type) float64 {
	w := 0.0
	for _, r := range s {
		w += advance(r)
	}
	if t.Bold {
		w *= 1.07
	}
	return w * t.size() * slack
}

// Fit cuts a text so that it is no wider than w, with … for what was cut.
func Fit(s string, t Type, w float64) string {
	runes := []rune(s)
	for n := len(runes) - 1; n > 0 && TextWidth(s, t) > w; n-- {
		s = strings.TrimRight(string(runes[:n]), " ·,") + "…"
	}
	if TextWidth(s, t) > w {
		return ""
	}
	return s
}

// FitEnds cuts a text in its middle, where Fit cuts its end.
func FitEnds(s string, t Type, w float64) string {
	runes := []rune(s)
	for n := len(runes) - 1; n > 1 && TextWidth(s, t) > w; n-- {
		s = string(runes[:(n+1)/2]) + "…" + string(runes[len(runes)-n/2:])
	}
	return Fit(s, t, w)
}

// Wrap breaks a text at spaces into lines no wider than w; a longer word is cut
// as Fit cuts it. No more than lines lines are made; the last one takes what is
// left, cut.
func Wrap(s string, t Type, w float64, lines int) []string {
	var out []string
	words := strings.Fields(s)
	for len(words) > 0 && len(out) < lines {
		n := 1
		for n < len(words) && TextWidth(strings.Join(words[:n+1], " "), t) <= w {
			n++
		}
		if len(out) == lines-1 {
			n = len(words)
		}
		out = append(out, Fit(strings.Join(words[:n], " "), t, w))
		words = words[n:]
	}
	return out
}
