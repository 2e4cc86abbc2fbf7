package cause

import "testing"

func TestContented(t *testing.T) {
	for text, want := range map[string]bool{
		"It works fine, thanks":                            true,
		"Everything works fine now.":                       true,
		"nccl-tests works fine but training is slow":       false,
		"training hangs":                                   false,
		"It works fine on one node. On two nodes it hangs": false,
		"":       false,
		"thanks": false,
	} {
		if got := Contented(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
