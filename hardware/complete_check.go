package hardware

import (
	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// check holds what was read or measured against the catalogue.
func (f *filler) check() {
	for i := range f.t.Links {
		f.checkLink(&f.t.Links[i])
	}
	for i, m := range f.models {
		if n := f.nvlinks(i); m.LinkKind == cluster.NVLink && n > m.Links {
			f.warn(i, "%d NVLinks were read; %s has %d (%s)", n, m.Title, m.Links, m.Source)
		}
	}
	f.checkPairs()
}

// checkLink warns of a rate above what its lanes can carry; two in a hundred are
// rounding.
func (f *filler) checkLink(l *cluster.Link) {
	if l.Rate.Origin < cluster.Read {
		return
	}
	var most unit.Rate
	switch l.Kind {
	case cluster.PCIe:
		most = PCIeRate(l.GTs, l.Lanes)
	case cluster.NVLink:
		one, _ := f.nvlinkOne(l)
		most = one * unit.Rate(max(l.Lanes, 0))
	}
	if most > 0 && l.Rate.Value > most*1.02 {
		f.warn(l.B, "%s says %v to %s; %d lanes of this %s link carry at most %v in one direction",
			l.Rate.Source, l.Rate.Value, f.t.Devices[l.A].Title(), l.Lanes, l.Kind, most)
	}
}

// checkPairs warns of a measured rate above that of the direct link between two
// GPUs: mostly a figure that counts both directions.
func (f *filler) checkPairs() {
	direct := make(map[[2]int]unit.Rate)
	for i := range f.t.Links {
		l := &f.t.Links[i]
		if l.Kind != cluster.NVLink && l.Kind != cluster.XGMI || l.Rate.Origin != cluster.Spec {
			continue
		}
		direct[[2]int{l.A, l.B}] += l.Rate.Value
		if !l.OneWay {
			direct[[2]int{l.B, l.A}] += l.Rate.Value
		}
	}
	for _, p := range f.t.Pairs {
		most := direct[[2]int{p.A, p.B}]
		if most > 0 && p.Rate.Known() && p.Rate.Value > most*1.05 {
			f.warn(p.A, "%s says %v to %s in one direction; the link between them carries %v (a figure for both directions?)",
				p.Rate.Source, p.Rate.Value, f.t.Devices[p.B].Title(), most)
		}
	}
}
