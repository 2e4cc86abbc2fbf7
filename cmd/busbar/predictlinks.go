package main

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/internal/texttab"
	"busbar.dev/predict"
	"busbar.dev/report"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// linked adds how busy every link is, where that was asked for.
func (c *predictCmd) linked(e *env, f *forecast) (*forecast, error) {
	if !c.Links {
		return f, nil
	}
	if len(f.Rows) != 1 {
		return nil, fmt.Errorf("--links is about one run and there are %d rows; give one --size, one layout and one --algo", len(f.Rows))
	}
	r := f.Rows[0]
	var err error
	if f.links, err = f.asked[0].Links(e.ctx, ran(r), r.Setting, r.Run); err != nil {
		if e.ctx.Err() != nil {
			return nil, err
		}
		c.note(e, err.Error()) // the prediction itself stands
	}
	return f, nil
}

// ran is the operation that is run for the one that was asked for.
func ran(r report.ForecastRow) coll.Op {
	if r.Beyond {
		return r.Op
	}
	return predict.Stand(r.Op)
}

// linksJSON are hosts on which the same happens, or the network where there are none.
type linksJSON struct {
	Hosts string        `json:"hosts,omitempty"`
	Links []linkUseJSON `json:"links"`
}

// linkUseJSON are links that are equally busy; bytes and rate are those of each, one direction.
type linkUseJSON struct {
	Which  []string         `json:"which"`
	Kind   result.LimitKind `json:"kind"`
	Rate   unit.Rate        `json:"rate_GBps"`
	Cables int              `json:"cables,omitempty"`
	Bytes  unit.Bytes       `json:"bytes"`
	Share  float64          `json:"share"`
	Tight  bool             `json:"bottleneck,omitempty"`
}

func linksDocument(list []result.Links) []linksJSON {
	out := make([]linksJSON, len(list))
	for i, g := range list {
		out[i] = linksJSON{Links: []linkUseJSON{}}
		if len(g.Hosts) > 0 {
			out[i].Hosts = cluster.FormatHosts(g.Hosts)
		}
		for _, u := range g.Uses {
			out[i].Links = append(out[i].Links, linkUseJSON{u.Which, u.Kind, u.Rate, u.Cables, u.Bytes, u.Share, u.Tight})
		}
	}
	return out
}

// printLinks is the table below the prediction.
func printLinks(w io.Writer, list []result.Links) error {
	t := texttab.Table{Columns: []texttab.Column{
		{Head: "busy (%)", Align: texttab.Right}, {Head: "bytes each", Align: texttab.Right}, {Head: "rate", Align: texttab.Right}, {Head: "kind"}, {Head: "hosts"}, {Head: "links"}, {Head: ""},
	}}
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
	if _, err := fmt.Fprintln(w, "\nHow busy links are, one direction:"); err != nil {
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
