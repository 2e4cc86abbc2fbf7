package report

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"busbar.dev/finding"
	"busbar.dev/hardware"
)

// With colour on, escapes of the input are still the input's.
func TestColourKeepsInputEscapesOut(t *testing.T) {
	ours := regexp.MustCompile("\x1b\\[(0|1|2|31|32|33|36)m")
	for _, name := range []string{"plain", "cl\x1b[31mX\x07", "t\x1b]0;pwn\x07", "w\u009b2J", "r\u202eb", "b\x9b"} {
		c, err := hardware.Preset("baskerville", 2)
		if err != nil {
			t.Fatal(err)
		}
		c.Name, c.Hosts[0].Name = name, name
		var b bytes.Buffer
		if err := Text(&b, c, TextOptions{Color: true}); err != nil {
			t.Fatal(err)
		}
		if err := Print(&b, TextOptions{Color: true}, Findings,
			[]finding.Finding{{ID: "x", Severity: finding.Warn, Where: name, Text: name}}); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		if coloured := ours.MatchString(text); coloured == strings.Contains(name, "\x1b") {
			t.Errorf("%q: coloured is %v", name, coloured)
		}
		if i := strings.IndexFunc(ours.ReplaceAllString(text, ""), func(r rune) bool {
			return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == '\u202e'
		}); i >= 0 {
			t.Errorf("%q: a control character is left in the text", name)
		}
		if name == "plain" && !strings.Contains(ours.ReplaceAllString(text, ""), "plain") {
			t.Errorf("%q: the name is lost", name)
		}
	}
}
