package nvsmi

import (
	"io"
	"strings"

	"busbar.dev/input/internal/gather"
	"busbar.dev/internal/lines"
)

// eachLine gives the lines of a text to take, free of what terminals and
// launchers put around them.
func eachLine(name string, r io.Reader, take func(text string, num int)) error {
	return lines.Each(name, r, func(num int, text string) error {
		take(text, num)
		return nil
	})
}

// anyLine reports whether ok holds for a line that contains token, or for the
// same line without the host that pdsh wrote before it.
func anyLine(data []byte, token string, ok func(text string) bool) bool {
	return lines.Find(data, token, func(text string) bool {
		if ok(text) {
			return true
		}
		_, rest, is := gather.Cut(text)
		return is && ok(rest)
	})
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
