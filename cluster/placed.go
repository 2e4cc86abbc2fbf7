package cluster

import (
	"fmt"
	"slices"
)

// placed is where a source hangs a host without saying by which NIC, as schedulers do, which give a host one place.
type placed struct {
	frag     int
	switches []int
}

// clash is what two sources say differently of where hosts are.
type clash struct {
	frags       [2]int
	first       int // of the hosts
	hosts       map[int]bool
	there, here []int // the switches of the first host
}

// place notes that a source hangs a host on a switch. Where an earlier one hangs it elsewhere, that stands, and the
// difference is told. A host may be in several groupings.
func (j *joiner) place(frag, host, sw int) bool {
	if j.out.Network.Switches[sw].Domain {
		return true
	}
	p, known := j.placed[host]
	switch {
	case !known || p.frag == frag:
		j.placed[host] = placed{frag, append(p.switches, sw)}
		return true
	case slices.Contains(p.switches, sw):
		return true
	}
	frags := [2]int{p.frag, frag}
	at := slices.IndexFunc(j.moved, func(c clash) bool { return c.frags == frags })
	if at < 0 {
		at = len(j.moved)
		j.moved = append(j.moved, clash{frags: frags, first: host, hosts: map[int]bool{}, there: p.switches, here: []int{sw}})
	}
	j.moved[at].hosts[host] = true
	return false
}

// warnMoved names both sources of every clash.
func (j *joiner) warnMoved(frags []*Fragment) {
	for _, c := range j.moved {
		rest := ""
		if n := len(c.hosts) - 1; n > 0 {
			rest = fmt.Sprintf(" (and %d more hosts elsewhere)", n)
		}
		there, here := frags[c.frags[0]].title(), frags[c.frags[1]].title()
		j.out.Warnings = append(j.out.Warnings, Warning{
			Where: j.out.Hosts[c.first].Name, Text: fmt.Sprintf("hangs on %s in %s, on %s in %s%s; kept %s",
				j.switchNames(c.there), there, j.switchNames(c.here), here, rest, there),
		})
	}
}
