package report

import (
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
		state, text := "ok", c.Result
		if c.Error != "" {
			state, text = "FAILED", c.Error
		}
		t.Add(c.Name, state, c.Seconds, text)
	}
	p.table(t)
	verdict := either(d.Failed > 0, words.Plural(d.Failed, "check")+" failed", "all checks passed")
	p.printf("\nbusbar %s, %s: %s\n", d.Version, d.System, verdict)
}
