package told

import (
	_ "embed" // for the words
	"strings"
)

// wordTable has lists of words by their names, a list a line. An underscore joins words.
//
//go:embed words.txt
var wordTable string

// Words is a list of beginnings of words; one that ends in a full stop must end there.
func Words(name string) (list []string) {
	_, text, _ := strings.Cut(wordTable, "\n"+name+": ")
	text, _, _ = strings.Cut(text, "\n")
	for w := range strings.FieldsSeq(text) {
		w = strings.ReplaceAll(w, "_", " ")
		if whole, ok := strings.CutSuffix(w, "."); ok {
			w = whole + " "
		}
		list = append(list, " "+w)
	}
	return list
}

// What a clause is judged by. An underscore joins words.
var (
	// changes are what is said of something that was tried.
	changes = Words("changes")
	// good is what is said of a change that made the difference.
	good = Words("good")
	// denied are words that turn the good into its opposite.
	denied = Words("denied")
	// same says that a change made no difference.
	same = Words("same")
	// faults are what goes wrong.
	faults = Words("faults")
	// settled says that something is in order.
	settled = Words("settled")
	// shows is said of a tool, and lacking of what it does not show.
	shows   = Words("shows")
	lacking = Words("lacking")
	// parts name less than the whole job: that a part works says where the fault is, not what helps.
	parts = Words("parts")
	// lost only sounds as if something were good.
	lost = Words("lost")
)

// judge reads a clause. That a change made no difference is asked first: "does not help" holds "help".
func judge(norm string) Verdict {
	change := hasAny(norm, changes) || hasSetting(norm)
	works := hasAny(norm, good)
	switch {
	case hasAny(norm, lost):
		return Seen
	case deniesFault(norm):
		return Settled
	case hasAny(norm, same) && (change || works || hasAny(norm, faults)):
		return Fails
	case works && change && deniesGood(norm):
		return Fails
	case failsWith(norm):
		return Fails
	case works && hasAny(norm, parts) && !hasSetting(norm):
		return Seen
	case works && change:
		return Works
	case hasAny(norm, settled):
		return Settled
	case works && !hasAny(norm, faults):
		return Works
	}
	return Seen
}

// isShown reports that a tool shows what a clause names, and nothing that is wrong.
func isShown(norm string) bool {
	return hasAny(norm, shows) && !hasAny(norm, denied) && !hasAny(norm, faults) && !hasAny(norm, lacking)
}

// deniesGood reports that a denial stands at most two words before what is said to be good.
func deniesGood(norm string) bool {
	list := strings.Fields(norm)
	for i, w := range list {
		if !hasAny(" "+w+" ", good) {
			continue
		}
		for _, before := range list[max(0, i-2):i] {
			if hasAny(" "+before+" ", denied) {
				return true
			}
		}
	}
	return false
}

// deniesFault reports a clause that says of a fault that it is not there, or is past: "no illegal memory access", "we
// never saw Xid 79", "the ECC errors are gone".
func deniesFault(norm string) bool {
	norm = strings.ReplaceAll(norm, " off the bus ", " offthebus ") // that is no switch
	if !hasAny(norm, messages) {
		return false
	}
	return hasPrefix(norm, noFault) || hasAny(norm, absent) && !hasAny(norm, changes) || hasAny(norm, past)
}

// What is said of faults that are not there, and what they are called.
var (
	messages = Words("messages")
	noFault  = Words("nofault")
	past     = Words("past")
)

// failsWith reports a fault in spite of a setting: "hangs with NCCL_P2P_DISABLE=1".
func failsWith(norm string) bool {
	for _, f := range faults {
		_, rest, ok := strings.Cut(norm, f)
		if !ok {
			continue
		}
		if _, set, ok := strings.Cut(rest, " with "); ok && strings.Contains(set, "=") && !strings.Contains(set, "without") {
			return len(strings.Fields(rest[:len(rest)-len(set)])) <= 3
		}
	}
	return false
}

// denials stand in front of what somebody says is not there.
var denials = Words("denials")

// Denies reports that what stands at a place of a sentence is said not to be there: "no Xid 79", "never saw an
// illegal memory access", "the ECC errors are gone".
func Denies(sentence string, from, to int) bool {
	if clause := clauseAt(sentence, from); deniesFault(Normalise(clause)) {
		return true
	}
	before, after := sentence[:from], sentence[to:]
	if i := strings.LastIndexAny(before, ".;:,("); i >= 0 && !listed(before[i+1:]) {
		before = before[i+1:]
	}
	list := strings.Fields(Normalise(before))
	near := list[max(0, len(list)-denialReach):]
	for i := range near {
		if hasAny(" "+strings.Join(near[i:], " ")+" ", turning) {
			return false
		}
		if at := " " + strings.Join(near[i:], " ") + " "; hasPrefix(at, denials) {
			return true
		}
	}
	if i := strings.IndexAny(after, ".;,"); i >= 0 {
		after = after[:i]
	}
	norm := Normalise(after)
	return hasPrefix(norm, absent) || strings.HasPrefix(norm, " is ") && len(norm) > 4 && norm[4] >= '0' && norm[4] <= '9'
}

// clauseAt is the clause of a text in which a place lies.
func clauseAt(text string, at int) string {
	begin := 0
	for _, sentence := range cutSentences(text) {
		for _, clause := range cutClauses(sentence) {
			i := strings.Index(text[begin:], strings.Trim(clause, ","))
			if i < 0 {
				continue
			}
			if begin += i + len(strings.Trim(clause, ",")); at < begin {
				return clause
			}
		}
	}
	return ""
}

// denialReach is how many words before a thing may deny it: "no kernel panic or GPU fault".
const denialReach = 6

// listed reports a further item of a list: "no timeouts, no hangs or Xid".
func listed(text string) bool {
	w := strings.Fields(Normalise(text))
	return len(w) > 0 && (w[0] == "or" || w[0] == "nor" || w[0] == "no")
}

var (
	turning = Words("turning")
	absent  = Words("absent")
)

func hasPrefix(norm string, list []string) bool {
	for _, w := range list {
		if strings.HasPrefix(norm, w) {
			return true
		}
	}
	return false
}

// Symptoms of Complaint.
const (
	Slow  = "slow"
	Hang  = "hang"
	Crash = "crash"
	Rate  = "rate" // which nobody tells without a doubt of it
)

var complaints = map[string][]string{
	Slow:  Words("slow"),
	Hang:  Words("hang"),
	Crash: Words("crash"),
	Rate:  Words("rate"),
}

// Complaint reports that somebody tells of a symptom, and does not say that it is over.
func Complaint(clauses []Clause, symptoms ...string) bool {
	for i := range clauses {
		c := &clauses[i]
		if c.Verdict == Settled {
			continue
		}
		for _, s := range symptoms {
			for _, w := range complaints[s] {
				at := strings.Index(c.Norm, w)
				if at >= 0 && !Denies(c.Norm, at, at+len(strings.TrimRight(w, " "))) {
					return true
				}
			}
		}
	}
	return false
}
