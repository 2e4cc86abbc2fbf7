package cause

import (
	"testing"

	"busbar.dev/doctor/told"
)

// FuzzCause reads a user's file and weighs it against a text: neither ends the program.
func FuzzCause(f *testing.F) {
	f.Add("title: t\ncause: c\nfix: f\ntest: x\nremedies:\n  - \"a+b|c d\"\nok:\n  - e\n",
		"a b, d is fine; still hangs with NCCL_P2P_DISABLE=1")
	f.Add("title: t\ncause: c\nfix: f\nfound:\n  - when: \"a and not (b~'x y' or $C>=3)\"\n    how: states\n    quote: "+
		"\"a $C\"\n    title: \"{a.0} of {@d(e,f)}\"\n", "a")
	f.Fuzz(func(t *testing.T, file, text string) {
		c, err := Parse("mine", file)
		if err != nil {
			return
		}
		m, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.Found {
			c.Found[i].When.Holds(func(a *Atom) bool { return a.Matches(text) != a.Reaches(1) })
			if _, err := c.Found[i].Atoms(); err == nil {
				Fill(c.Found[i].Title, func(*Atom) string { return text })
			}
		}
		sum := 0.0
		for _, h := range m.Weigh(&Case{Told: told.Read(text, func(string) bool { return true })}) {
			if h.P < 0 || h.P > 1 {
				t.Fatalf("%+v", h)
			}
			sum += h.P
		}
		if sum <= 0 {
			t.Fatal("nothing is likely")
		}
	})
}
