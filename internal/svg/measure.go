package svg

import "strings"

// advances are the widths of the characters from space to ~ in Helvetica, in
// thousandths of the font size, as its public metrics give them.
var advances = [95]uint16{
	278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
	556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
	1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
	667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
	333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
	556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
}

// slack allows for the wider of the fonts in the stack: nobody knows which one
// the viewer has.
const slack = 1.10

// TextWidth estimates how wide a text is set, on the safe side.
func TextWidth(s string, t Type) float64 {
	sum := 0
	for _, r := range s {
		switch {
		case r >= ' ' && r <= '~':
			sum += int(advances[r-' '])
		case r == '·' || r == '–':
			sum += 500
		default:
			sum += 700
		}
	}
	w := float64(sum) / 1000 * t.size() * slack
	if t.Bold {
		w *= 1.07
	}
	return w
}

// Fit cuts a text so that it is no wider than w, with … for what was cut.
func Fit(s string, t Type, w float64) string {
	if TextWidth(s, t) <= w {
		return s
	}
	runes := []rune(s)
	for n := len(runes) - 1; n > 0; n-- {
		cut := strings.TrimRight(string(runes[:n]), " ·,") + "…"
		if TextWidth(cut, t) <= w {
			return cut
		}
	}
	return ""
}

// FitEnds cuts a text in its middle, where Fit cuts its end.
func FitEnds(s string, t Type, w float64) string {
	if TextWidth(s, t) <= w {
		return s
	}
	runes := []rune(s)
	for n := len(runes) - 1; n > 1; n-- {
		cut := string(runes[:(n+1)/2]) + "…" + string(runes[len(runes)-n/2:])
		if TextWidth(cut, t) <= w {
			return cut
		}
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
