package main

import "strings"

// checkUnknown checks nodes of which one never joined: it is bad, and the others are measured and judged.
func (f *servedFleet) checkUnknown() {
	f.t.Helper()
	code, out, errs := f.busbar("fleet", "order", "check", "--nodes", "gpu[01-04],nobody")
	if code != exitWrong || out != "gpu03,nobody\n" || !strings.Contains(errs, "nobody: never joined\n") ||
		!strings.Contains(errs, "gpu03: ") {
		f.t.Errorf("one of five never joined, one is slow: exit %d, %q, %q", code, out, errs)
	}
	for nodes, bad := range map[string]string{
		"gpu01,nobody": "nobody\n", "nobody": "", "nobody[1-2]": "",
	} {
		want := exitWrong
		if bad == "" { // no agents, or other names: a prolog that drains these nodes drains all
			want = exitCannot
		}
		if code, out, errs := f.busbar("fleet", "order", "check", "--nodes", nodes); code != want || out != bad ||
			!strings.Contains(errs, "never joined") {
			f.t.Errorf("check of %s: exit %d, %q, %q", nodes, code, out, errs)
		}
	}
	// Other orders are refused: there a name that nobody has is a slip.
	if code, _, errs := f.busbar("fleet", "order", "pairs", "--nodes", "gpu01,nobody"); code != exitBad ||
		!strings.Contains(errs, "never joined") {
		f.t.Errorf("an order for a node that there is not: exit %d, %q", code, errs)
	}
}
