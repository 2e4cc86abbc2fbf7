package lines

import (
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	isSwitch := func(line string) bool { return strings.HasPrefix(line, "Switch\t") }
	for _, c := range []struct {
		in   string
		want bool
	}{
		{"a\n0: Switch\t8\r\nb", true},
		{"\x1b[1mSwitch\t8\x1b[0m", true},
		{"1 %\rSwitch\t8\rdone", true},
		{"the Switch\t8", false},
		{"the Switch\nSwitch\t8", true},
		{"", false},
		{"Switch\t" + strings.Repeat("x", MaxPiece), false},
	} {
		if got := Find([]byte(c.in), "Switch", isSwitch); got != c.want {
			t.Errorf("Find in %.20q = %v", c.in, got)
		}
	}
}
