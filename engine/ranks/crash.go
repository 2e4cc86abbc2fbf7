package ranks

import (
	"fmt"
	"strings"
	"sync"

	"busbar.dev/internal/lazyre"
)

// transcript keeps what a program prints on standard error, within bounds: the beginning, or the end.
type transcript struct {
	end bool
	mu  sync.Mutex
	buf []byte
}

func (t *transcript) Write(b []byte) (int, error) {
	const most = 1 << 16
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - most; over > 0 && t.end {
		t.buf = append([]byte{}, t.buf[over:]...)
	} else if over > 0 {
		t.buf = t.buf[:most]
	}
	return len(b), nil
}

// last is the last line, without our name.
func (t *transcript) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.buf)), "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "busbar: ")
}

// crashLines is how much of a crash is shown.
const crashLines = 20

// crashed begins what the runtime of Go says of a program that it ends. Signals that it catches
// for that, SEGV among them, end the program with an exit code, not by the signal.
var crashed = lazyre.New(`^(panic: |fatal error: |SIG[A-Z0-9]+: )`)

// crash is the first lines of how Go ends a program that went wrong; nil where it did not.
func (t *transcript) crash() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []string
	for line := range strings.Lines(string(t.buf)) {
		if line = strings.TrimRight(line, "\r\n"); len(list) == crashLines {
			break
		}
		if list != nil || crashed.MatchString(line) {
			list = append(list, line)
		}
	}
	return list
}

// crashCause is what the first line of a crash means: "SIGSEGV: segmentation violation", or a
// panic's own text.
func crashCause(line string) string {
	if name, what, ok := strings.Cut(strings.TrimPrefix(line, "SIG"), ": "); ok && strings.HasPrefix(line, "SIG") {
		return fmt.Sprintf("died by signal %s (%s)", name, strings.TrimSpace(what))
	}
	return "crashed: " + strings.TrimSpace(line)
}

// reportCrashes tells how ranks crashed.
func (c *children) reportCrashes(tell func(text string)) {
	for r := range c.stderr {
		for _, line := range c.stderr[r].crash() {
			tell(fmt.Sprintf("rank %d: %s", r, line))
		}
	}
}
