package told

import "strings"

// words makes a list of beginnings of words; one that ends in a full stop must end there.
func words(text string) (list []string) {
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
	changes = words("with. without. after. if. once. when. set. setting disabl enabl switch turn upgrad updat downgrad " +
		"install reinstall reseat remov replac reboot restart pass tried trying try. add adding using used chang revert " +
		"pin. pinning " +
		"exclud increas rais lower reduc export unset clear load modprobe rebuil move moving run_with privileged off. on. " +
		"newer older another other longer shorter larger bigger higher")
	// good is what is said of a change that made the difference.
	good = words("work. help fix solv resolv cure avoid works. worked. working. runs. ran. is_fine. was_fine. passes. " +
		"passed. " +
		"gone. goes_away went_away disappear vanish workaround work_around work_well succeed back_to_normal as_expected " +
		"eliminat did_the_trick made_it_work lets_it makes_it_work no_longer full_speed full_rate")
	// denied are words that turn the good into its opposite.
	denied = words("not. doesnt. didnt. dont. wont. isnt. wasnt. cannot. cant. never. no. nothing. neither. none. nor. " +
		"without_success in_vain hardly")
	// same says that a change made no difference.
	same = words("still. no_effect no_difference no_change no_improvement without_effect without_success unaffected " +
		"regardless persist same_error same_problem same_result same_issue same_behavio same_with unchanged " +
		"even_with. even_after. even_when. even_if. also_with. also_hang also_fail also_without no_luck nothing_chang " +
		"in_vain not_help doesnt_help not_helping didnt_help not_fix doesnt_fix not_solve to_no_avail continues_to " +
		"with_or_without with_and_without as_well_with tried_in_vain already_tried")
	// faults are what goes wrong.
	faults = words("hang. hangs hung stuck freez frozen deadlock stall fail error crash segfault slow. slower timeout " +
		"timed_out " +
		"abort corrupt wrong. nan. dies died")
	// settled says that something is in order.
	settled = words("already. is_well is_fine are_fine is_ok are_ok looks_fine look_fine looks_good is_good are_good " +
		"is_clean are_clean " +
		"is_normal are_normal is_correct are_correct is_healthy are_healthy in_order ruled_out rule_out excluded_as " +
		"verified " +
		"is_not_the_problem not_the_cause not_the_problem identical is_loaded. are_loaded. is_installed. is_unlimited. " +
		"shows_nothing no_firewall can_ping ping_works ssh_works line_rate is_reachable are_reachable " +
		"works_fine work_fine stated_to_be_in_order correctly_set set_correctly correctly_configured")
	// shows is said of a tool, and lacking of what it does not show.
	shows   = words("shows. lists. prints. says. reports.")
	lacking = words("missing absent nothing only. not. disabled off. no. zero")
	// parts name less than the whole job: that a part works says where the fault is, not what helps.
	parts = words("one_gpu one_node one_host one_rank single. 1_gpu 1_node 2_gpus two_gpus fewer. alone. only_one " +
		"inside_one " +
		"within_one in_one perftest ib_write iperf locally. intra same_node")
	// lost only sounds as if something were good.
	lost = words("no_longer_work no_longer_start no_longer_respond no_longer_answer no_longer_see no_longer_reach " +
		"no_longer_progress no_longer_visible no_longer_avail no_longer_found already_in_use already_used already_taken " +
		"not_already")
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
	messages = words("error fault xid oom out_of_memory memory_access panic loss. drops. dropped discards timeout hang. " +
		"hangs " +
		"failure crash flap link_down links_down nan. offthebus core_dump machine_check exception stall deadlock")
	noFault = words("no. never. without_any there_is_no there_are_no there_was_no there_were_no we_never we_had_no " +
		"we_have_no " +
		"we_see_no i_see_no i_never we_do_not_see we_dont_see i_dont_see no_sign zero. free_of neither. nor. not_a. and_no")
	past = words("fixed_last fixed_yesterday was_fixed_a resolved_last")
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
var denials = words("no. not_a. not_an. not_the. never. without. nor. neither. zero. free_of. no_sign_of ruled_out " +
	"excluded. " +
	"instead_of. not_due_to. not_caused_by. isnt_a. not.")

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
	turning = words("but. because. then. after. when. until. so. and_then")
	absent  = words("is_gone are_gone was_fixed were_fixed has_been_fixed is_fixed went_away disappeared is_not_seen " +
		"not_seen " +
		"was_ruled_out is_ruled_out are_absent were_gone was_gone is_absent was_absent was_never never_seen was_resolved " +
		"were_resolved was_not_present not_present was_cured does_not_occur did_not_occur does_not_happen did_not_happen " +
		"never_happened is_excluded =0 =_0 0.")
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
)

var complaints = map[string][]string{
	Slow: words("slow poor low. below half. bandwidth_drop throughput_drop degrad bottleneck underperform dips " +
		"scales_badly " +
		"takes_longer only_ jitter regress less_than drops dropped drop. fluctuat unstable reaches_only falls_from " +
		"fell_from " +
		"falls_short fell_to expected_more worse"),
	Hang: words("hang. hangs hung stuck freez frozen deadlock stall never_return never_end never_start never_finish " +
		"no_progress " +
		"blocks blocked waits_for_ever forever timeout timed_out times_out time_out watchdog does_not_return " +
		"does_not_start " +
		"stands_still nothing_happens"),
	Crash: words("crash segfault abort dies. died. fail error. errors. exception killed cannot. refus core_dump unable " +
		"invalid " +
		"corrupt garbage nan. wrong_result wrong_value out_of_memory oom. unhandled does_not_work mismatch missing"),
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
