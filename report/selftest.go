package report

import (
	"fmt"
	"io"

	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
)

// Release prints which busbar this is.
func Release(w io.Writer, d *query.ReleaseDoc) error {
	_, err := fmt.Fprintf(w, "busbar %s%s %s %s\n", d.Version, when(d.Commit != "", " ("+d.Commit+")"), d.Go, d.System)
	return err
}

// SelfTest prints the checks and whether all passed.
func SelfTest(w io.Writer, d *query.SelfTestDoc) error {
	t := texttab.New("check", "state", ">time", "result")
	for _, c := range d.Checks {
		state, text := "ok", c.Result
		if c.Error != "" {
			state, text = "FAILED", c.Error
		}
		t.Row(c.Name, state, fmt.Sprintf("%.1f s", c.Seconds), text)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	verdict := "all checks passed"
	if d.Failed > 0 {
		verdict = words.Plural(d.Failed, "check") + " failed"
	}
	_, err := fmt.Fprintf(w, "\nbusbar %s, %s: %s\n", d.Version, d.System, verdict)
	return err
}
