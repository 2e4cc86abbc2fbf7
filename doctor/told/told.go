// Package told reads what somebody writes about a fault: clauses, and what each says of the things that it names.
// A ledger of remedies is made of it: what was tried and helped, what was tried in vain, and what was so already.
package told

import (
	"slices"
	"strings"
)

// Verdict is what a clause says of what it names.
type Verdict uint8

// Verdicts.
const (
	Seen    Verdict = iota
	Works           // a change that made the difference: "works with X", "X fixed it"
	Fails           // a change that made none: "still hangs with X", "X does not help"
	Settled         // already so, in order, ruled out: it is not the fault
)

// Clause is a part of a sentence that says one thing.
type Clause struct {
	Text    string
	Norm    string // normalised, with a blank at both ends
	Verdict Verdict
	Shown   bool // a tool shows what it names: "lsmod lists nvidia_peermem"
}

// maxText is how much of a text is read.
const maxText = 64 << 10

// Read takes a text apart. What programs print has no verdict: of a line for which sentence does not hold, or of all
// where it is nil, everything is seen.
func Read(text string, sentence func(line string) bool) (list []Clause) {
	for line := range strings.Lines(text[:min(len(text), maxText)]) {
		if sentence == nil || !sentence(line) {
			if c := (Clause{Text: strings.TrimSpace(line), Norm: Normalise(line)}); c.Norm != " " {
				list = append(list, c)
			}
			continue
		}
		for _, sentence := range cutSentences(line) {
			for _, part := range cutClauses(sentence) {
				c := Clause{Text: strings.Trim(part, " ,\t\r\n"), Norm: Normalise(part)}
				if c.Norm == " " {
					continue
				}
				c.Verdict = judge(c.Norm)
				c.Shown = isShown(c.Norm)
				if last := len(list) - 1; last >= 0 && refersBack(&c, &list[last]) {
					list[last].Text += ", " + c.Text
					list[last].Norm += c.Norm[1:]
					list[last].Verdict = c.Verdict
					continue
				}
				list = append(list, c)
			}
		}
	}
	return list
}

// refersBack reports a clause that only says how the change before it went: "NCCL_P2P_DISABLE=1 is set, it works now".
func refersBack(c, before *Clause) bool {
	if c.Verdict != Works && c.Verdict != Fails || before.Verdict == Works || before.Verdict == Fails ||
		!hasAny(before.Norm, changes) && !hasSetting(before.Norm) {
		return false
	}
	return !hasSetting(c.Norm) && !hasAny(c.Norm, changes) && len(strings.Fields(c.Norm)) <= shortVerdict
}

// shortVerdict is the number of words up to which a clause may speak of the one before.
const shortVerdict = 5

// cutSentences cuts a line at full stops, semicolons, question and exclamation marks.
func cutSentences(line string) (list []string) {
	start := 0
	for i := 0; i < len(line); i++ {
		end := strings.IndexByte(".?!", line[i]) >= 0 && (i+1 == len(line) || line[i+1] == ' ' || line[i+1] == '\n')
		if line[i] == ';' || end {
			list, start = append(list, line[start:i]), i+1
		}
	}
	return append(list, line[start:])
}

// turns are words at which a sentence turns to something else.
var turns = []string{" but ", " however ", " although ", " though ", " yet ", " whereas ", " while ", " and it "}

// cutClauses cuts a sentence at words that turn it, and at commas beside which a part has a verdict of its own.
func cutClauses(sentence string) (list []string) {
	parts := []string{sentence}
	for _, turn := range turns {
		var cut []string
		for _, p := range parts {
			cut = append(cut, strings.Split(p, turn)...)
		}
		parts = cut
	}
	for _, p := range parts {
		if strings.ContainsAny(p, "([{") { // commas in brackets part nothing
			list = append(list, p)
			continue
		}
		keep := ""
		for piece := range strings.SplitSeq(p, ",") {
			if norm := Normalise(piece); judge(norm) != Seen || isShown(norm) {
				list, keep = append(list, keep, piece), ""
				continue
			}
			keep += piece + ","
		}
		list = append(list, keep)
	}
	return list
}

// Normalise makes texts comparable: lower case, one blank for whatever joins or parts words, one in front and behind.
// Full stops stay inside of numbers and names.
func Normalise(text string) string {
	b := append(make([]byte, 0, len(text)+2), ' ')
	for i := 0; i < len(text); i++ {
		c := text[i]
		inside := i > 0 && i+1 < len(text) && letter(text[i-1]) && letter(text[i+1])
		switch {
		case c >= 'A' && c <= 'Z':
			b = append(b, c+'a'-'A')
			continue
		case letter(c), c == '=', c == '%', c >= 0x80, c == '.' && i+1 < len(text) && letter(text[i+1]):
			b = append(b, c)
			continue
		case c == '\'' && inside:
			continue // doesn't → doesnt
		}
		if b[len(b)-1] != ' ' {
			b = append(b, ' ')
		}
	}
	if b[len(b)-1] != ' ' {
		b = append(b, ' ')
	}
	return string(b)
}

func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// hasAny reports that one of some beginnings of words is in a normalised text.
func hasAny(norm string, beginnings []string) bool {
	return slices.ContainsFunc(beginnings, func(w string) bool { return strings.Contains(norm, w) })
}

// hasSetting reports an assignment, NAME=VALUE, or an option.
func hasSetting(norm string) bool { return strings.Contains(norm, "=") }
