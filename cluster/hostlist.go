package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Limits of a hostlist. A short text can stand for very many names, so both
// are checked before anything is written.
const (
	MaxHosts    = 1_000_000 // names in one hostlist
	maxHostName = 255       // bytes in one name
	maxHostText = 64 << 20  // bytes in all names together
)

// ParseHosts expands a Slurm hostlist: "gpu[001-016,020]", several brackets in
// one name ("r[1-2]n[01-04]", the last one counts fastest), text after a
// bracket, several names with commas between them. Leading zeros are kept as
// written. Names come in the order of the text and may repeat. An empty list
// is an error, and so is one of more than MaxHosts names; errors say the
// column.
func ParseHosts(s string) ([]string, error) {
	return parseHosts(s, func(int) error { return nil })
}

// parseHosts expands a list; take is asked about the names of each item before they are made.
func parseHosts(s string, take func(names int) error) ([]string, error) {
	if strings.TrimSpace(s) == "" {
		return nil, hostlistError(s, 1, "empty; expected names such as gpu[001-016]")
	}
	// All names are cut from one buffer: one allocation in place of one a name.
	var (
		it   hostItem
		stem [maxHostName]byte
		buf  []byte
		ends []int32
	)
	for pos := 0; pos <= len(s); pos++ { // behind each comma
		var err error
		if pos, err = it.parse(s, pos); err != nil {
			return nil, err
		}
		names, text := it.size()
		if len(ends)+names > MaxHosts {
			return nil, hostlistError(s, it.col, "more than %d hosts", MaxHosts)
		}
		if len(buf)+text > maxHostText {
			return nil, hostlistError(s, it.col, "the names take more than %d MiB", maxHostText>>20)
		}
		if err := take(names); err != nil {
			return nil, hostlistError(s, it.col, "%w", err)
		}
		buf, ends = it.expandFrom(0, stem[:0], slices.Grow(buf, text), slices.Grow(ends, names))
	}
	all := string(buf)
	list := make([]string, len(ends))
	from := int32(0)
	for i, to := range ends {
		list[i] = all[from:to]
		from = to
	}
	return list, nil
}

// hostItem is what stands between two commas: parts of plain text, each
// followed by a bracket except the last one.
type hostItem struct {
	col   int // 1-based, of its first byte
	plain []string
	group [][]hostRange
}

// hostRange is a run of numbers of one width, or a single number as text
// (which may be too long for an integer).
type hostRange struct {
	text   string // when not empty: this number alone
	lo, hi uint64
	width  int
}

func (r *hostRange) count() int {
	if r.text != "" {
		return 1
	}
	return int(r.hi-r.lo) + 1
}

// longest is the length of the longest number of the range.
func (r *hostRange) longest() int {
	if r.text != "" {
		return len(r.text)
	}
	return max(r.width, len(strconv.FormatUint(r.hi, 10)))
}

// longest is the length of the longest name the item makes.
func (it *hostItem) longest() int {
	length := 0
	for _, p := range it.plain {
		length += len(p)
	}
	for _, g := range it.group {
		long := 0
		for i := range g {
			long = max(long, g[i].longest())
		}
		length += long
	}
	return length
}

// size is how many names the item makes and at most how many bytes they take;
// the count stops growing just above its limit.
func (it *hostItem) size() (names, text int) {
	names = 1
	for _, g := range it.group {
		n := 0
		for i := range g {
			n = min(n+g[i].count(), MaxHosts+1)
		}
		names = min(names*n, MaxHosts+1)
	}
	return names, names * it.longest()
}

// expandFrom writes every name that begins with stem and goes on with the
// plain part and the bracket of the given level. Its depth is the number of
// brackets of one name.
func (it *hostItem) expandFrom(level int, stem, buf []byte, ends []int32) ([]byte, []int32) {
	stem = append(stem, it.plain[level]...)
	if level == len(it.group) {
		buf = append(buf, stem...)
		return buf, append(ends, int32(len(buf)))
	}
	for i := range it.group[level] {
		r := &it.group[level][i]
		if r.text != "" {
			buf, ends = it.expandFrom(level+1, append(stem, r.text...), buf, ends)
			continue
		}
		for v := r.lo; v <= r.hi; v++ {
			buf, ends = it.expandFrom(level+1, appendPadded(stem, v, r.width), buf, ends)
		}
	}
	return buf, ends
}

func appendPadded(b []byte, v uint64, width int) []byte {
	var digits [20]byte
	text := strconv.AppendUint(digits[:0], v, 10)
	for n := len(text); n < width; n++ {
		b = append(b, '0')
	}
	return append(b, text...)
}

// parse reads one item of s from pos and returns where it ended: at a comma or
// at the end of s.
func (it *hostItem) parse(s string, pos int) (int, error) {
	for pos < len(s) && isSpace(s[pos]) {
		pos++
	}
	it.col, it.plain, it.group = pos+1, it.plain[:0], it.group[:0]
	from := pos
	for ; pos < len(s) && s[pos] != ','; pos++ {
		switch c := s[pos]; {
		case c == ']':
			return 0, hostlistError(s, pos+1, "] without [")
		case isSpace(c):
			end := pos
			for pos < len(s) && isSpace(s[pos]) {
				pos++
			}
			if pos < len(s) && s[pos] != ',' {
				return 0, hostlistError(s, end+1, "white space inside a name; expected a comma")
			}
			return pos, it.finish(s, s[from:end])
		case c < ' ' || c == 0x7f:
			return 0, hostlistError(s, pos+1, "control character %#x", c)
		case c == '[':
			group, next, err := parseBracket(s, pos)
			if err != nil {
				return 0, err
			}
			it.plain = append(it.plain, s[from:pos])
			it.group = append(it.group, group)
			pos, from = next, next+1
		}
	}
	return pos, it.finish(s, s[from:pos])
}

// finish adds the text behind the last bracket and checks the whole item.
func (it *hostItem) finish(s, last string) error {
	it.plain = append(it.plain, last)
	if len(it.group) == 0 && last == "" {
		return hostlistError(s, it.col, "empty name; expected one on both sides of a comma")
	}
	if n := it.longest(); n > maxHostName {
		return hostlistError(s, it.col, "a name of %d bytes; at most %d", n, maxHostName)
	}
	return nil
}

// parseBracket reads from the [ at pos and returns the position of its ].
func parseBracket(s string, pos int) ([]hostRange, int, error) {
	open := pos
	var group []hostRange
	for pos++; ; pos++ {
		from := pos
		lo, at := digitsAt(s, pos)
		if at >= len(s) {
			return nil, 0, hostlistError(s, open+1, "[ is never closed")
		}
		if lo == "" {
			return nil, 0, hostlistError(s, at+1, "%q in brackets; expected a number or a range such as 001-016", s[at])
		}
		r, hi := hostRange{text: lo}, ""
		if s[at] == '-' {
			hi, at = digitsAt(s, at+1)
			if at >= len(s) {
				return nil, 0, hostlistError(s, open+1, "[ is never closed")
			}
			if hi == "" {
				return nil, 0, hostlistError(s, at+1, "%q after the dash; expected the number the range ends with", s[at])
			}
			var err error
			if r, err = makeRange(lo, hi); err != nil {
				return nil, 0, hostlistError(s, from+1, "%v", err)
			}
		}
		if len(group) == MaxHosts {
			return nil, 0, hostlistError(s, from+1, "more than %d hosts", MaxHosts)
		}
		group = append(group, r)
		switch pos = at; s[at] {
		case ']':
			return group, at, nil
		case ',':
		default:
			return nil, 0, hostlistError(s, at+1, "%q in brackets; expected a comma, a dash or ]", s[at])
		}
	}
}

func makeRange(lo, hi string) (hostRange, error) {
	a, errA := strconv.ParseUint(lo, 10, 64)
	b, errB := strconv.ParseUint(hi, 10, 64)
	const top = 1 << 62 // so that counting one further cannot overflow
	switch {
	case errA != nil || errB != nil || a > top || b > top:
		return hostRange{}, fmt.Errorf("range %s-%s has too many digits", lo, hi)
	case b < a:
		return hostRange{}, fmt.Errorf("range %s-%s ends before it starts", lo, hi)
	case b-a >= MaxHosts:
		return hostRange{}, fmt.Errorf("range %s-%s is more than %d hosts", lo, hi, MaxHosts)
	}
	return hostRange{lo: a, hi: b, width: len(lo)}, nil
}

func digitsAt(s string, pos int) (string, int) {
	from := pos
	for pos < len(s) && isDigit(s[pos]) {
		pos++
	}
	return s[from:pos], pos
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// hostlistError quotes the list, cut to what a person would read.
func hostlistError(s string, col int, format string, args ...any) error {
	if len(s) > 60 {
		s = s[:60] + "…"
	}
	return fmt.Errorf("hostlist %q, column %d: %w", s, col, fmt.Errorf(format, args...))
}

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
func FormatSlurmHosts[Name ~string](names []Name) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = string(n)
	}
	return formatHosts(list, true)
}

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
	stem, bracket, tail, n := oneBracket(len(names), func(i int) string { return names[i] })
	if n < 2 {
		return hostRun{stem: names[0]}, 1
	}
	return hostRun{stem, bracket, tail}, n
}

// mergeStems joins runs whose bracket and tail are the same and whose stems
// differ in one number.
func mergeStems(runs []hostRun) (string, int) {
	stem, bracket, tail, n := oneBracket(len(runs), func(i int) string {
		if runs[i].bracket != runs[0].bracket || runs[i].tail != runs[0].tail {
			return ""
		}
		return runs[i].stem
	})
	return stem + bracket + tail, n
}

// oneBracket finds how many texts from the front differ in one number, and what they have before and behind it.
func oneBracket(all int, text func(int) string) (stem, bracket, tail string, n int) {
	if all < 2 {
		return "", "", "", 1
	}
	first := text(0)
	from, to := numberThatDiffers(first, text(1))
	if from == to {
		return "", "", "", 1
	}
	if stem, tail = first[:from], first[to:]; strings.ContainsAny(stem+tail, "[], \t\r\n") {
		return "", "", "", 1
	}
	number := func(i int) string { return numberBetween(text(i), stem, tail) }
	for n = 1; n < all && number(n) != ""; n++ {
	}
	return stem, bracketOf(n, number), tail, n
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
	if strings.Trim(number, "0123456789") != "" {
		return ""
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
