package report

import (
	"cmp"

	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
)

// Release prints which busbar this is.
func Release(p *Page, d *query.ReleaseDoc) {
	p.printf("busbar %s%s %s %s\n", d.Version, when(d.Commit != "", " ("+d.Commit+")"), d.Go, d.System)
}

// SelfTest prints the checks and whether all passed.
func SelfTest(p *Page, d *query.SelfTestDoc) {
	t := texttab.New("check", "state", ">time|%.1f s", "result")
	for _, c := range d.Checks {
		t.Add(c.Name, either(c.Error != "", "FAILED", "ok"), c.Seconds, cmp.Or(c.Error, c.Result))
	}
	p.table(t)
	verdict := either(d.Failed > 0, words.Plural(d.Failed, "check")+" failed", "all checks passed")
	p.printf("\nbusbar %s, %s: %s\n", d.Version, d.System, verdict)
}
