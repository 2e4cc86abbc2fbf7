package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// crashLines is how much of a crash is shown.
const crashLines = 20

// crashed begins what the runtime of Go says of a program that it ends. Signals that it catches
// for that, SEGV among them, end the program with an exit code, not by the signal.
var crashed = regexp.MustCompile(`^(panic: |fatal error: |SIG[A-Z0-9]+: )`)

// crash is the first lines of how Go ends a program that went wrong; nil where it did not.
func (p *prefixed) crash() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []string
	for line := range strings.Lines(p.buf.String()) {
		if line = strings.TrimRight(line, "\r\n"); len(list) == crashLines {
			break
		}
		if list != nil || crashed.MatchString(line) {
			list = append(list, line)
		}
	}
	return list
}

// crashWords say what the first line of a crash means: "SIGSEGV: segmentation violation", or a
// panic's own words.
func crashWords(line string) string {
	if name, what, ok := strings.Cut(strings.TrimPrefix(line, "SIG"), ": "); ok && strings.HasPrefix(line, "SIG") {
		return fmt.Sprintf("died by signal %s (%s)", name, strings.TrimSpace(what))
	}
	return "crashed: " + strings.TrimSpace(line)
}

// showCrashes prints how ranks crashed.
func (f *flock) showCrashes(w io.Writer) {
	for r := range f.said {
		for _, line := range f.said[r].crash() {
			fmt.Fprintf(w, "busbar: rank %d: %s\n", r, line)
		}
	}
}
