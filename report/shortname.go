package report

import (
	"busbar.dev/cluster"
	"busbar.dev/internal/svg"
)

// maxListed is how many names of a box are tried to be set before the rest is only
// hinted at.
const maxListed = 12

// fitList writes as many names as fit a width, as a hostlist, with … for the rest;
// a single name that is too long is cut in its middle, for names differ at their
// ends.
func fitList(lead string, names []string, ty font, w float64) string {
	list := cluster.FormatHosts(names)
	for _, s := range []string{lead + list, lead + cluster.TightRange(list)} {
		if svg.TextWidth(s, ty) <= w {
			return s
		}
	}
	for n := min(len(names)-1, maxListed); n > 0; n-- {
		if s := lead + cluster.FormatHosts(names[:n]) + ", …"; svg.TextWidth(s, ty) <= w {
			return s
		}
	}
	rest := when(len(names) > 1, ", …")
	return lead + svg.FitEnds(names[0], ty, w-svg.TextWidth(lead+rest, ty)) + rest
}
