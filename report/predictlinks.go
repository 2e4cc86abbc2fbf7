package report

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/texttab"
	"busbar.dev/result"
)

// busyLinks is the table of links below a prediction.
func busyLinks(w io.Writer, list []result.Links) error {
	t := texttab.New(">busy (%)", ">bytes each", ">rate", "kind", "hosts", "links", "")
	for _, g := range list {
		hosts := "network"
		if len(g.Hosts) > 0 {
			hosts = cluster.FormatHosts(g.Hosts)
		}
		for _, u := range g.Uses {
			rate, mark := "-", ""
			if u.Rate > 0 {
				rate = u.Rate.String()
			}
			if u.Tight {
				mark = "bottleneck"
			}
			t.Row(fmt.Sprintf("%.1f", 100*u.Share), u.Bytes.String(), rate, string(u.Kind), texttab.Clean(clipped(hosts)), texttab.Clean(several(u.Which)), mark)
		}
	}
	if _, err := fmt.Fprintln(w, "\nLink load, one direction:"); err != nil {
		return err
	}
	return t.Write(w)
}

// several are names as far as a line has room for them.
func several(names []string) string {
	const room = 4
	if len(names) <= room {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:room-1], ", "), len(names)-room+1)
}

// clipped is a hostlist as far as a line has room for it.
func clipped(hosts string) string {
	const room = 40
	if r := []rune(hosts); len(r) > room {
		return string(r[:room-1]) + "…"
	}
	return hosts
}
