package cause

import (
	"strings"
	"testing"
)

func TestCondition(t *testing.T) {
	holds := func(a *Atom) bool {
		return strings.HasPrefix(a.Name, "yes") || a.Name == "@count" && a.Reaches(3) || a.Name == "$SET" && a.Matches("tree")
	}
	for text, want := range map[string]bool{
		"yes": true, "no": false, "not no": true, "no or yes": true, "no and yes or yes": true, "no and (yes or yes)": false,
		"not (no or yes)": false, "yes and not no": true,
		"@count>=3": true, "@count>3": false, "@count(a,b c)<3.5": true, "$SET=ring,tree": true, "$SET~'^T.*(e)$'": true,
		"not $SET=ring": true,
	} {
		c, err := ParseCondition(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := c.Holds(holds); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{
		"", "and", "yes and", "(yes", "yes)", "yes no", "a~'('", "a~'b", "a>b",
		strings.Repeat("(", 30) + "a" + strings.Repeat(")", 30), strings.Repeat("a or ", 1000) + "a",
	} {
		if _, err := ParseCondition(text); err == nil {
			t.Errorf("%.40q is taken", text)
		}
	}
}
