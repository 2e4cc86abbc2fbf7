package nvsmi

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"busbar/input/internal/gather"
	"busbar/internal/lines"
)

// eachLine gives the lines of a text to take, free of what terminals and
// launchers put around them.
func eachLine(name string, r io.Reader, take func(text string, num int)) error {
	l := lines.New(r)
	for l.Next() {
		take(lines.Bare(l.Text()), l.Num())
	}
	if err := l.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// anyLine reports whether ok holds for a line that contains token, or for the
// same line without the host that pdsh wrote before it.
func anyLine(data []byte, token string, ok func(text string) bool) bool {
	want := []byte(token)
	for {
		at := bytes.Index(data, want)
		if at < 0 {
			return false
		}
		first := bytes.LastIndexAny(data[:at], "\r\n") + 1
		last := len(data)
		if n := bytes.IndexAny(data[at:], "\r\n"); n >= 0 {
			last = at + n
		}
		if last-first <= lines.MaxPiece {
			text := lines.Bare(lines.StripANSI(string(data[first:last])))
			if ok(text) {
				return true
			}
			if _, rest, is := gather.Cut(text); is && ok(rest) {
				return true
			}
		}
		data = data[last:]
	}
}

// numbered splits "GPU7" into its number.
func numbered(s, stem string) (int, bool) {
	rest, ok := strings.CutPrefix(s, stem)
	if !ok || rest == "" || len(rest) > 4 {
		return 0, false
	}
	n := 0
	for i := range len(rest) {
		if rest[i] < '0' || rest[i] > '9' {
			return 0, false
		}
		n = n*10 + int(rest[i]-'0')
	}
	return n, true
}
