package nodehealth

import (
	"io"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
)

// MatchDCGM reports the table of dcgmi diag.
func MatchDCGM(data []byte) bool {
	return lines.Find(data, "Diagnostic", dcgmHead.MatchString) && lines.Has(data, "| ")
}

var (
	dcgmHead = lazyre.New(`^\|\s*Diagnostic\s*\|\s*Result\s*\|$`)
	dcgmRow  = lazyre.New(`^\| (.{0,60}?)\s*\| (.*) \|$`)
	// dcgmResult is "Fail - GPUs: 1, 4" up to DCGM 3, "GPU1: Fail" below the test's own since DCGM 4.
	dcgmResult = lazyre.New(`^(GPU ?\d+: )?(Pass|Skip|Warn|Fail|Not Run)\b(?: - (.*))?$`)
	dcgmAbout  = lazyre.New(`^(?:Info|Warning|Error)\b:?`)
)

// dcgmWidth is where DCGM cuts a text, be it within a word.
const dcgmWidth = 45

// dcgmTest is a test with what is not well of it.
type dcgmTest struct {
	name, word string
	where      []string // the GPUs
	about      strings.Builder
}

// ReadDCGM reads tables of dcgmi diag: a test that fails is an error, one that warns a warning, with the GPUs and what
// DCGM says about them.
func ReadDCGM(name string, r io.Reader) ([]finding.Finding, error) {
	l := list{what: "dcgmi diag", id: "dcgm"}
	t := &dcgmTest{}
	err := lines.Each(name, r, func(_ int, text string) error {
		m := dcgmRow.FindStringSubmatch(strings.TrimSpace(text))
		if m == nil {
			return nil
		}
		result := dcgmResult.FindStringSubmatch(strings.TrimSpace(m[2]))
		switch {
		case dcgmAbout.MatchString(m[1]):
			t.about.WriteString(" " + m[1] + ": ")
			fallthrough
		case m[1] == "" && result == nil:
			if text := strings.TrimRight(m[2], " "); t.about.Len() < maxText {
				t.about.WriteString(text)
				if len(text) < dcgmWidth { // else a word may go on in the next row
					t.about.WriteByte(' ')
				}
			}
		case m[1] != "":
			l.test(t)
			t = &dcgmTest{name: m[1]}
			fallthrough
		default:
			if result != nil {
				t.take(result)
			}
		}
		return nil
	})
	l.test(t)
	return l.whole(), err
}

// take keeps the worst of the results of a test and of its GPUs.
func (t *dcgmTest) take(m []string) {
	severity, _, bad := judge(m[2])
	before, _, was := judge(t.word)
	if t.word == "" || bad && (!was || severity > before) {
		t.word = m[2]
	}
	if gpus := strings.TrimRight(m[1], ": ") + m[3]; bad && gpus != "" && len(t.where) < 64 {
		t.where = append(t.where, gpus)
	}
}

// test adds a test that is read to its end.
func (l *list) test(t *dcgmTest) {
	if t.word != "" {
		l.add("-"+strings.NewReplacer(" ", "-", "/", "-").Replace(t.name), t.word, ": the test "+t.name+" ends in ",
			"nvidia-smi -q and dmesg | grep Xid on the node; drain it while a test fails, and run dcgmi diag -r 3 again",
			strings.Join(t.where, ", "), strings.Join(strings.Fields(t.about.String()), " "))
	}
}
