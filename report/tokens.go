package report

import (
	"io"
	"time"

	"busbar.dev/internal/texttab"
	"busbar.dev/query"
)

// Tokens lists who may log in.
func Tokens(w io.Writer, d *query.TokensDoc) error {
	t := texttab.New("name", "role", "made", "last used")
	for _, x := range d.Tokens {
		used := "never"
		if !x.Used.IsZero() {
			used = x.Used.Format(time.DateTime)
		}
		t.Row(x.Name, x.Role, x.Created.Format(time.DateTime), used)
	}
	return t.Write(w)
}
