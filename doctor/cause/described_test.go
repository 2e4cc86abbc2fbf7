package cause_test

import (
	"encoding/csv"
	"os"
	"strings"
	"testing"

	"busbar.dev/doctor/cause"
)

// TestDescribed: described.csv has the words of doctor/testdata/described.txt: fifteen of a cause by two who had its
// text alone, and others by one who had read the misses of the sets that were blind. -fit writes it.
func TestDescribed(t *testing.T) {
	text, err := os.ReadFile("../testdata/described.txt")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	w, known := csv.NewWriter(&b), map[string]bool{}
	_ = w.Write([]string{"words", "causes"})
	for line := range strings.Lines(string(text)) {
		id, said, ok := strings.Cut(line, "|")
		if !ok {
			t.Fatalf("%q; expected CAUSE|DESCRIPTION", line)
		}
		if words := cause.Words(said); words != "" && !known[words] {
			known[words] = true
			_ = w.Write([]string{words, id})
		}
	}
	w.Flush()
	if *fit {
		if err := os.WriteFile("described.csv", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile("described.csv"); err != nil || string(got) != b.String() {
		t.Errorf("described.csv is not what described.txt gives (%v); go test ./doctor/cause -run TestDescribed -fit", err)
	}
}
