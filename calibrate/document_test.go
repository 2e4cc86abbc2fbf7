package calibrate

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"busbar.dev/sim"
)

// documented are the rows of docs/accuracy.md that say who informs a figure: name, machines, publishers.
func documented(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../docs/accuracy.md")
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for _, m := range regexp.MustCompile("`([a-z0-9_.]+)` ([0-9]+)/([0-9]+)").FindAllStringSubmatch(string(text), -1) {
		if list[m[1]] != "" {
			t.Errorf("docs/accuracy.md says twice who informs %s", m[1])
		}
		list[m[1]] = m[2] + "/" + m[3]
	}
	if want := fmt.Sprintf("Fitted are %d figures", nFigures); !strings.Contains(string(text), want) {
		t.Errorf("docs/accuracy.md does not say %q", want)
	}
	return list
}

// TestDocumentFigures holds docs/accuracy.md to the figures of the model: every one is listed once with who informs it,
// and no other is; tools/fit counts the numbers anew.
func TestDocumentFigures(t *testing.T) {
	list := documented(t)
	for i := range nFigures {
		if list[sim.FigureName(i)] == "" {
			t.Errorf("docs/accuracy.md does not say who informs %s", sim.FigureName(i))
		}
	}
	if len(list) != nFigures {
		t.Errorf("docs/accuracy.md lists %d figures; there are %d", len(list), nFigures)
	}
}
