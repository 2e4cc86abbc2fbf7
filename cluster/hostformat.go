package cluster

import (
	"strconv"
	"strings"
)

// FormatHosts compresses names into a Slurm hostlist that ParseHosts expands
// to the same names in the same order. Neighbours that differ in one number
// share a bracket ("gpu[001-016,020]"), and runs of such brackets that differ
// in one earlier number share a second one ("r[1-2]n[01-04]"); Slurm's manual
// allows no third. A name that no hostlist can say (empty, or
// with a comma, a bracket or white space in it) is written as it is.
func FormatHosts(names []string) string { return formatHosts(names, false) }

// FormatSlurmHosts is FormatHosts held to what Slurm itself reads: a name may
// not go on behind its last bracket. "gpu1-ib,gpu2-ib" therefore stays as it
// is, and r1n1 and r2n1 become "r[1-2]n[1]".
func FormatSlurmHosts(names []string) string { return formatHosts(names, true) }

func formatHosts(names []string, slurm bool) string {
	var runs []hostRun
	for i := 0; i < len(names); {
		run, n := longestRun(names[i:])
		if slurm && run.tail != "" {
			run, n = run.forSlurm(names[i], n)
		}
		runs = append(runs, run)
		i += n
	}
	var b strings.Builder
	for i := 0; i < len(runs); {
		if i > 0 {
			b.WriteByte(',')
		}
		stem, n := runs[i].stem, 1
		if runs[i].bracket != "" && (!slurm || runs[i].tail == "") {
			if outer, k := mergeStems(runs[i:]); k > 1 {
				stem, n = outer, k
			}
		}
		b.WriteString(stem)
		b.WriteString(runs[i].bracket)
		b.WriteString(runs[i].tail)
		i += n
	}
	return b.String()
}

// hostRun is a run of names that share the text before and after one number.
// Without a bracket it is a single name, all of it in stem.
type hostRun struct{ stem, bracket, tail string }

// forSlurm puts the number that ends the run's names into a bracket of its
// own, or takes back all names but the first when they do not end in one.
func (r hostRun) forSlurm(first string, n int) (hostRun, int) {
	at := len(r.tail)
	for at > 0 && isDigit(r.tail[at-1]) {
		at--
	}
	if at == len(r.tail) {
		return hostRun{stem: first}, 1
	}
	r.tail = r.tail[:at] + "[" + r.tail[at:] + "]"
	return r, n
}

// longestRun takes as many names from the front as one bracket can say.
func longestRun(names []string) (hostRun, int) {
	if len(names) < 2 {
		return hostRun{stem: names[0]}, 1
	}
	from, to := numberThatDiffers(names[0], names[1])
	if from == to {
		return hostRun{stem: names[0]}, 1
	}
	stem, tail := names[0][:from], names[0][to:]
	if strings.ContainsAny(stem, "[], \t\r\n") || strings.ContainsAny(tail, "[], \t\r\n") {
		return hostRun{stem: names[0]}, 1
	}
	n := 1
	for n < len(names) && numberBetween(names[n], stem, tail) != "" {
		n++
	}
	number := func(i int) string { return numberBetween(names[i], stem, tail) }
	return hostRun{stem, bracketOf(n, number), tail}, n
}

// mergeStems joins runs whose bracket and tail are the same and whose stems
// differ in one number.
func mergeStems(runs []hostRun) (string, int) {
	same := func(r hostRun) bool { return r.bracket == runs[0].bracket && r.tail == runs[0].tail }
	if len(runs) < 2 || !same(runs[1]) {
		return "", 1
	}
	from, to := numberThatDiffers(runs[0].stem, runs[1].stem)
	if from == to {
		return "", 1
	}
	stem, tail := runs[0].stem[:from], runs[0].stem[to:]
	n := 1
	for n < len(runs) && same(runs[n]) && numberBetween(runs[n].stem, stem, tail) != "" {
		n++
	}
	number := func(i int) string { return numberBetween(runs[i].stem, stem, tail) }
	return stem + bracketOf(n, number) + tail, n
}

// numberThatDiffers finds the one run of digits in a that, put in place of its
// counterpart in b, makes the two equal. from == to means there is none, or
// that a and b are the same.
func numberThatDiffers(a, b string) (from, to int) {
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	from, to = at, at
	for from > 0 && isDigit(a[from-1]) {
		from--
	}
	for to < len(a) && isDigit(a[to]) {
		to++
	}
	if at == len(a) && at == len(b) || numberBetween(b, a[:from], a[to:]) == "" {
		return 0, 0
	}
	return from, to
}

// numberBetween returns the digits of name between stem and tail, or "" when
// name is not made that way.
func numberBetween(name, stem, tail string) string {
	if len(name) <= len(stem)+len(tail) || !strings.HasPrefix(name, stem) || !strings.HasSuffix(name, tail) {
		return ""
	}
	number := name[len(stem) : len(name)-len(tail)]
	for i := range len(number) {
		if !isDigit(number[i]) {
			return ""
		}
	}
	return number
}

// bracketOf writes n numbers as [lo-hi,…], a range wherever the next number is
// one more and is written as the range would write it.
func bracketOf(n int, number func(int) string) string {
	var b strings.Builder
	for i := 0; i < n; {
		b.WriteByte("[,"[min(i, 1)])
		lo := number(i)
		b.WriteString(lo)
		last := i
		for last+1 < n && last+1-i < MaxHosts && follows(number(last), number(last+1), len(lo)) {
			last++
		}
		if last > i {
			b.WriteByte('-')
			b.WriteString(number(last))
		}
		i = last + 1
	}
	b.WriteByte(']')
	return b.String()
}

// follows reports whether b is a+1, both written with at least width digits
// and no more zeros than that needs.
func follows(a, b string, width int) bool {
	if len(b) != len(a) && len(b) != len(a)+1 || len(b) < width || len(b) > width && b[0] == '0' || len(b) > 18 {
		return false
	}
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX == nil && errY == nil && y == x+1
}
