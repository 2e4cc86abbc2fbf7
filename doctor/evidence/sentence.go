package evidence

import (
	"strings"

	"busbar.dev/internal/lazyre"
)

// maxTalk is the length of a text, in lines, up to which its sentences are taken
// for what somebody tells about a fault. Longer ones are logs and documents.
const maxTalk = 200

// maxSentences is how many sentences talk has; a document has more.
const maxSentences = 40

// fewLines is the length of a text that may tell of a fault without a whole
// English sentence.
const fewLines = 12

// english reports a sentence with words that tools' labels do not have.
func english(text string) bool {
	low := " " + strings.ToLower(text) + " "
	if strings.Contains(low, "note:") || strings.Contains(low, "supported ") {
		return false
	}
	for _, w := range []string{
		" the ", " is ", " are ", " was ", " with ", " without ", " we ", " i ", " my ", " when ", " but ", " our ",
		" after ", " only ", " than ", " it ", " does ", " cannot ", " never ",
		" instead ", " although ", " between ", " once ", " every ", " one ", " while ", " there ", " have ", " has ",
		" fails ", " hangs ",
	} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

// worded reports what people may have written beside outputs of tools: English,
// or short and with a word that joins others. Tools speak to "you".
func worded(text string) bool {
	if english(text) {
		return true
	}
	low := " " + strings.ToLower(text) + " "
	if strings.Contains(low, "note:") || strings.Contains(low, "supported ") || strings.Contains(low, " you ") {
		return false
	}
	for _, w := range []string{
		" on ", " of ", " in ", " and ", " not ", " from ", " at ", " no ", " to ", " for ", " slow", " low ", " hangs",
	} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

// talk tells what people write from what programs print, roughly: it has neither
// a log's nor a program's marks. words are those with letters.
func talk(text string) (words int, ok bool) {
	t := strings.TrimSpace(text)
	if len(t) < 4 || len(t) > 1000 {
		return 0, false
	}
	for _, mark := range []string{
		"NCCL INFO", "NCCL WARN", "NET/IB :", "NET/IB:", "NET/Socket", "NET/OFI", "NET/Plugin", "via NET", "via P2P",
		"via SHM", "qdisc", "link/", "inet", "<BROADCAST", "<LOOPBACK", "flags=", ": <", "LnkSta", "ACSCtl", "Traceback",
		"File \"", "^^^", "0x7f", "def ", "();", "::", "[rank", "[Rank", "<stdout>", "<stderr>", " INFO ", "INFO:", "DEBUG",
		"WARNING", "==", "|", "\t",
	} {
		if strings.Contains(t, mark) {
			return 0, false
		}
	}
	if strings.Contains(t, " = ") && (strings.Count(t, " ") < 6 || !english(t)) {
		return 0, false
	}
	switch t[0] {
	case '#', '`', '[', '{', '+', '|', '<', '$', '%', '/', '@':
		return 0, false
	}
	if len(t) > 10 && t[0] >= '0' && t[0] <= '9' &&
		(t[4] == '-' && t[7] == '-' || t[2] == ':' && t[5] == ':' || t[4] == '/' && t[7] == '/') {
		return 0, false // a timestamp
	}
	if len(t) > 6 && strings.IndexByte("IWEF", t[0]) >= 0 && atoi(t[1:5]) >= 0 && t[5] == ' ' {
		return 0, false // glog's: I1115 10:00:00
	}
	if strings.Count(t, "=") > 2 {
		return 0, false // settings
	}
	for _, w := range strings.Fields(t) {
		letters := 0
		for _, c := range w {
			if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
				letters++
			}
		}
		if letters >= 2 {
			words++
		}
	}
	return words, true
}

// Sentence reports a line that somebody may have written, and no program printed.
func Sentence(text string) bool {
	words, ok := talk(text)
	return ok && words >= 2
}

// alone reports a symptom that stands alone on its line.
func alone(text string) bool {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "hang", "hangs", "hung", "slow", "crash", "crashes", "timeout", "timeouts", "deadlock", "stuck":
		return true
	}
	return false
}

// denials are symptoms that a sentence says are not there: "no timeouts, no
// hangs", "error: 0", "the errors went away"; and the length of a time-out.
var denials = lazyre.New(`(?i)\b(?:no|zero|0|without|without any|nor|free of) (?:more |other |further )?` + denied +
	`(?:,? or ` + denied + `)*\b|\b` + denied + `(?:: ?|=| count:? ?)0\b(?:$|[^.\d])|\b` + denied +
	` (?:went away|are gone|is gone|disappeared)|\btime-?outs? ?(?:is|=|:|is set to|set to) ?\d`)

const denied = `(?:hangs?|timeouts?|errors?|failures?|crash(?:es)?|stalls?|deadlocks?|exceptions?|NaNs?)`

// affirmed is a sentence without the symptoms it denies.
func affirmed(text string) string {
	if !denials.MatchString(text) {
		return text
	}
	return denials.ReplaceAllString(text, " ")
}

// markdown reports the beginning of a document in Markdown that is too long for somebody's words: what its sentences
// say has not happened. What it shows between fences may be a log.
func markdown(head []byte) bool {
	headings, fences, sentences := 0, 0, 0
	for line := range strings.Lines(string(head)) {
		switch {
		case strings.HasPrefix(line, "#") && strings.Contains(strings.TrimLeft(line, "#")[:1], " "):
			headings++
		case strings.HasPrefix(line, "```"):
			fences++
		case fences%2 == 0 && (strings.HasPrefix(line, "import ") || strings.HasPrefix(line, "def ")):
			return false // a program, which trainings print before their steps
		case fences%2 == 0 && Sentence(line):
			sentences++
		}
	}
	return headings >= 3 && sentences > maxSentences
}

// prose reports a line of such a document that stands outside of fences.
func (r *Reader) prose(text string) bool {
	if r.manual && strings.HasPrefix(text, "```") {
		r.fenced = !r.fenced
	}
	return r.manual && !r.fenced
}
