package doctor

import (
	"strings"
	"testing"

	"busbar.dev/doctor/cause"
	"busbar.dev/internal/csvtable"
)

// A user's file may ask for any fact, with and without arguments, of a case that has nothing to do with it.
func TestFactsOfAnyCase(t *testing.T) {
	for _, text := range []string{"", "training hangs on two nodes\nNCCL_ALGO=tree\nnode1:1:1 [0] NCCL INFO Using " +
		"network IB\nncclSystemError"} {
		c := newCase(read(t, text))
		if n := len(csvtable.Must[Atom]("facts.csv", factTable)); n != len(c.known) {
			t.Fatalf("%d facts, %d in facts.csv", len(c.known), n)
		}
		for _, x := range Atoms() {
			name, ok := strings.CutPrefix(x.Name, "@")
			if ok && c.known[name] == nil {
				t.Errorf("nothing gives @%s", name)
			}
		}
		for name := range c.known {
			for _, args := range [][]string{nil, {"x"}, {"x", "y", "z"}} {
				a := &cause.Atom{Name: "@" + name, Args: args, Index: -1}
				c.holds(a)
				c.placeholder(a)
				c.lines([]*cause.Atom{a})
				c.where([]*cause.Atom{a})
			}
		}
	}
}

// A user's cause is found by what programs print; one that asks for what nothing gives is refused.
func TestFoundByUser(t *testing.T) {
	const file = "title: \"t\"\ncause: \"c\"\nfix: \"f\"\nfound:\n  - when: \"xid=79 and not @slow\"\n    how: " +
		"states\n    quote: \"xid\"\n    title: \"GPU gone, Xid {xid.0}\"\n"
	x, err := cause.Parse("riser", file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewModel(x)
	if err != nil {
		t.Fatal(err)
	}
	r := Weigh(m, read(t, "NVRM: Xid (PCI:0000:18:00): 79, pid=1, GPU has fallen off the bus."))
	for _, f := range r.Findings {
		if f.ID == "riser" && f.Title == "GPU gone, Xid 79" && len(f.Evidence) == 1 {
			return
		}
	}
	t.Errorf("%+v", r.Findings)
}

func TestFoundByNothing(t *testing.T) {
	for _, when := range []string{"no-such-kind", "@no-such-fact"} {
		x, err := cause.Parse("mine", "title: t\ncause: c\nfix: f\nfound:\n  - when: \""+when+"\"\n    how: states\n")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewModel(x); err == nil {
			t.Errorf("%s is taken", when)
		}
	}
}
