package main

import (
	"strings"

	"busbar.dev/fleet"
)

// forget takes out a node that has left, and tries to with one that is up.
func (f *servedFleet) forget(up, left fleet.Name) {
	f.t.Helper()
	code, out, errs := f.busbar("fleet", "nodes", "--forget", string(left+","+up))
	if code != exitBad || out != "" || !strings.Contains(errs, string(left)+" is forgotten\n") ||
		!strings.Contains(errs, "stop its agent first") {
		f.t.Errorf("one that is up, and one that is not: exit %d, %q, %q", code, out, errs)
	}
	if _, out, _ := f.busbar("fleet", "nodes"); strings.Contains(out, string(left)) || !strings.Contains(out, string(up)) {
		f.t.Errorf("%s is forgotten, %s is not:\n%s", left, up, out)
	}
	if code, _, errs := f.busbar("fleet", "nodes", "--forget", string(left)); code != exitBad ||
		!strings.Contains(errs, "has joined") {
		f.t.Errorf("a second time: exit %d, %s", code, errs)
	}
}
