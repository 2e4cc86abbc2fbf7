// Package lines walks through text line by line within bounds, free of what
// terminals and launchers put around it.
//
// A tool's output reaches us inside job logs: with colour codes, with CR LF or
// bare CR from progress bars, behind "[1,0]<stdout>:" (mpirun), "3: " (srun -l)
// or "(Worker pid=7)" (Ray), quoted by Markdown. A line may also be endless,
// when a log lost its newlines. Reader hands such a line out in pieces that
// carry the same number, so that nothing is lost and memory stays small.
package lines

import (
	"io"
	"strconv"
	"strings"
)

// MaxPiece is the longest piece of a line that Reader hands out.
const MaxPiece = 64 << 10

// Reader reads lines. The zero value is of no use; make one with New.
type Reader struct {
	in    *Ahead[struct{}]
	chunk Chunk
	text  string
}

// New makes a Reader.
func New(r io.Reader) *Reader { return &Reader{in: NewAhead[struct{}](r)} }

// Next moves to the next line, or to the next piece of a line that is too long
// or that carriage returns divide. It reports whether there is one.
func (l *Reader) Next() bool {
	for !l.chunk.Next() {
		if !l.in.next(&l.chunk) {
			return false
		}
	}
	l.text = strings.Clone(l.chunk.Text()) // who keeps it keeps no more
	return true
}

// Text is the line without its ending and without terminal codes.
func (l *Reader) Text() string { return l.text }

// Num is the number of the line, from 1, as an editor counts.
func (l *Reader) Num() int { return l.chunk.Num() }

// Err is the first error other than the end of the text.
func (l *Reader) Err() error {
	if l.in.err == io.EOF {
		return nil
	}
	return l.in.err
}

// StripANSI removes terminal control sequences and NUL bytes.
func StripANSI(s string) string {
	if !strings.ContainsAny(s, "\x1b\x00") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == 0:
		case s[i] == 0x1b:
			i += sequence(s[i+1:])
		default:
			out = append(out, s[i])
		}
	}
	return string(out)
}

// sequence is the length of a control sequence after its escape character.
func sequence(s string) int {
	if s == "" {
		return 0
	}
	switch s[0] {
	case '[': // parameters, then one final byte
		for i := 1; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 {
				return i
			}
		}
		return len(s)
	case ']': // up to BEL or ESC backslash
		for i := 1; i < len(s); i++ {
			if s[i] == 7 {
				return i + 1
			}
			if s[i] == 0x1b {
				return i
			}
		}
		return len(s)
	}
	return 1
}

// Bare returns a line without what launchers, log collectors and Markdown put
// in front of it. Indentation is kept.
func Bare(s string) string {
	for range 4 {
		t := cutLabel(s)
		if t == s {
			break
		}
		s = t
	}
	return s
}

// cutLabel removes one prefix.
func cutLabel(s string) string {
	t := strings.TrimLeft(s, " \t")
	if t == "" {
		return s
	}
	switch c := t[0]; {
	case c == '[': // mpirun --tag-output: [1,0]<stdout>:, before every piece of a line
		end := strings.Index(t, ">:")
		if end > 0 && end < 40 && strings.Contains(t[:end], "]<std") {
			return strings.ReplaceAll(t[end+2:], t[:end+2], "")
		}
		if pod, rest, ok := strings.Cut(t, "] "); ok && strings.HasPrefix(pod, "[pod/") { // kubectl logs --prefix
			return rest
		}
	case c == '(': // Ray: (Worker pid=7, ip=10.0.0.1)
		end := strings.IndexByte(t, ')')
		if end > 0 && end < 120 && strings.Contains(t[:end], "pid=") {
			return strings.TrimPrefix(t[end+1:], " ")
		}
	case c >= '0' && c <= '9': // srun -l: 12:
		n := digits(t)
		if n <= 7 && strings.HasPrefix(t[n:], ": ") {
			return t[n+2:]
		}
		if n <= 7 && t[n:] == ":" {
			return ""
		}
		// kubectl logs --timestamps and runners of CI: 2026-10-20T18:22:43.123456789Z
		if at, rest, ok := strings.Cut(t, " "); ok && n == 4 && len(at) >= 20 && len(at) <= 35 && at[10] == 'T' &&
			strings.IndexByte(at, ':') == 13 {
			return rest
		}
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z': // busbar lab exec: node0| or node0:1|
		n := strings.IndexByte(t[:min(len(t), 80)], '|')
		who := t[:max(n, 0)]
		if name := strings.TrimRight(who, " "); len(name)+1 < n && strings.ContainsAny(name, "-_") &&
			strings.TrimRight(name, "0123456789") != name {
			who = name // docker compose: name-1  |
		}
		if n > 0 && !strings.ContainsAny(who, " \t\"'=,;()[]{}<>/") && (n+1 == len(t) || t[n+1] == ' ') {
			return t[min(n+2, len(t)):]
		}
	case c == '>': // Markdown quotation
		if len(t) == 1 || t[1] == ' ' {
			return t[1:]
		}
	}
	return s
}

// Numbered splits "GPU7" into its number, of four digits at most.
func Numbered(s, stem string) (n int, ok bool) {
	rest, ok := strings.CutPrefix(s, stem)
	if !ok || rest == "" || len(rest) > 4 || digits(rest) != len(rest) {
		return 0, false
	}
	n, _ = strconv.Atoi(rest)
	return n, true
}

// digits is how many digits a text begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// Shape writes every run of digits as #, so that equal messages count as one.
func Shape(s string) string {
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			out = append(out, s[i])
		} else if len(out) == 0 || out[len(out)-1] != '#' {
			out = append(out, '#')
		}
	}
	return string(out)
}
