package evidence

import (
	"fmt"
	"strings"
	"unicode"
)

// maxTalk is the length of a text, in lines, up to which its sentences are taken
// for what somebody tells about a fault. Longer ones are logs and documents.
const maxTalk = 200

// maxSentences is how many sentences talk has; a document has more.
const maxSentences = 40

// fewLines is the length of a text that may tell of a fault without a whole
// English sentence.
const fewLines = 12

// Wording reports a line that somebody wrote, with words that join others.
func Wording(text string) bool { return Sentence(text) && worded(text) }

// English reports one with words that tools' labels do not have.
func English(text string) bool { return Sentence(text) && english(text) }

// Words that tools' labels do not have, and words that join others.
var (
	englishWords = strings.Split(" the , is , are , was , with , without , we , i , my , when , but , our , after , "+
		"only , than , it ,"+
		" does , cannot , never , instead , although , between , once , every , one , while , there , have ,"+
		" has , fails , hangs ", ",")
	joiningWords = strings.Split(" on , of , in , and , not , from , at , no , to , for , slow, low , hangs", ",")
)

// wordedWith reports a line with one of some words in which no tool explains itself.
func wordedWith(text string, words []string) bool {
	low := " " + strings.ToLower(text) + " "
	return !anyOf(low, []string{"note:", "supported "}) && anyOf(low, words)
}

// english reports a sentence with words that tools' labels do not have.
func english(text string) bool { return wordedWith(text, englishWords) }

// worded reports what people may have written beside outputs of tools: English,
// or short and with a word that joins others. Tools speak to "you".
func worded(text string) bool {
	return english(text) || wordedWith(text, joiningWords) && !strings.Contains(strings.ToLower(text), " you ")
}

// printed are marks of logs and programs.
var printed = strings.Split("NCCL INFO,NCCL WARN,NET/IB :,NET/IB:,NET/Socket,NET/OFI,NET/Plugin,via NET,via P2P,via "+
	"SHM,qdisc,"+
	"link/,inet ,<BROADCAST,<LOOPBACK,flags=,: <,LnkSta,ACSCtl,Traceback,File \",^^^,0x7f,def ,();,::,"+
	"[rank,[Rank,<stdout>,<stderr>, INFO ,INFO:,DEBUG,WARNING,==,|,\t", ",")

// longestLine is the length of a line, in bytes, up to which it is a paragraph; one of a quarter may be any sentence.
const longestLine = 4000

// maxHead is where a record of NCCL has its mark; one that is quoted stands behind what somebody says.
const maxHead = 80

// paragraph reports a line with so many words that join others that somebody wrote it, whatever output it quotes.
func paragraph(text string) bool {
	low, joins := " "+strings.ToLower(text)+" ", 0
	if anyOf(text[:min(len(text), maxHead)], printed[:2]) || anyOf(text[:min(len(text), 12)], printed) {
		return false
	}
	for _, w := range englishWords {
		joins += strings.Count(low, w)
	}
	if joins < 2 {
		return false
	}
	for _, w := range joiningWords {
		joins += strings.Count(low, w)
	}
	return joins >= 5 && 7*joins >= strings.Count(low, " ")
}

// talk tells what people write from what programs print, roughly: it has neither
// a log's nor a program's marks. words are those with letters.
func talk(text string) (words int, ok bool) {
	t := strings.TrimSpace(text)
	if len(t) < 4 || len(t) > longestLine {
		return 0, false
	}
	prose := paragraph(t)
	if !prose && (len(t) > longestLine/4 || anyOf(t, printed)) {
		return 0, false
	}
	if message(t) || strings.HasSuffix(t, ":") && !english(t) { // the other is a heading
		return 0, false
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
	if len(t) > 6 && strings.IndexByte("IWEF", t[0]) >= 0 && Atoi(t[1:5]) >= 0 && t[5] == ' ' {
		return 0, false // glog's: I1115 10:00:00
	}
	if strings.Count(t, "=") > 2 && !prose {
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

// message reports what a program says when it fails: its name or that of an exception, and why. "RuntimeError: …",
// "srun: error: …"
func message(text string) bool {
	name, _, ok := strings.Cut(strings.TrimSpace(text), ": ")
	return ok && strings.HasSuffix(name, "Warning") && !strings.Contains(name, " ") || failure(text)
}

// failure reports a message that is no warning.
func failure(text string) bool {
	name, why, ok := strings.Cut(strings.TrimSpace(text), ": ")
	return ok && !strings.Contains(name, " ") && (strings.HasPrefix(why, "error: ") ||
		len(name) > len("Exception") && (strings.HasSuffix(name, "Error") || strings.HasSuffix(name, "Exception")))
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

// markdown reports the beginning of a document in Markdown that is too long for somebody's words: what its sentences
// say has not happened. What it shows between fences may be a log.
func markdown(head []byte) bool {
	headings, fences, sentences := 0, 0, 0
	for line := range strings.Lines(string(head)) {
		switch {
		case strings.HasPrefix(line, "#") && strings.HasPrefix(strings.TrimLeft(line, "#"), " "):
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

// foreignWords are common ones of other languages that are none in English.
var foreignWords = strings.Fields("das der ist nicht beim bleibt und auf mit wird warum ein eine dem den zweiten la " +
	"le les est sur des du une dans avec ne pas pourquoi el los las una esta en con por que os um uma il lo di che per " +
	"non della")

// notEnglish refuses a sentence in another language: its words would be weighed as if they were English ones.
func notEnglish(text string) error {
	letters, far := 0, 0
	for _, c := range text {
		if unicode.IsLetter(c) {
			if letters++; c > unicode.MaxLatin1 {
				far++
			}
		}
	}
	foreign, total := 0, 0
	for w := range strings.FieldsSeq(strings.ToLower(text)) {
		total++
		for _, f := range foreignWords {
			if w == f {
				foreign++
			}
		}
	}
	if 2*far > letters || foreign >= 2 && 6*foreign >= total && !english(text) {
		return fmt.Errorf("%.60q is not understood; expected a description in English, or files: logs and outputs of tools",
			text)
	}
	return nil
}
