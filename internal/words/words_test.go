package words

import "testing"

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		Plural(1, "node"): "1 node", Plural(2, "node"): "2 nodes", Plural(0, "switch"): "0 switches",
		Thousands(999): "999", Thousands(1000): "1,000", Thousands(336226108): "336,226,108",
	} {
		if got != want {
			t.Errorf("%q; expected %q", got, want)
		}
	}
}
