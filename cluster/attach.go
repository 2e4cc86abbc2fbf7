package cluster

import (
	"fmt"
	"slices"
)

// attachments holds where the sources that name no NIC hang hosts, as schedulers do, which give a host one place: so
// that two of them that put one host at different places can be told.
type attachments struct {
	titles []string
	at     []map[int][]int   // per fragment: the switches of a joined host
	told   map[[2]int]*clash // by the two fragments
	pairs  [][2]int          // in the order they were found
}

// clash is what two sources say differently.
type clash struct {
	first       int // of the hosts
	hosts       map[int]bool
	here, there []int // switches of the first host
}

// attached collects the hosts' places, per source.
func (j *joiner) attached(frags []*Fragment, sw [][]int) *attachments {
	a := &attachments{told: map[[2]int]*clash{}}
	for fi, f := range frags {
		at := map[int][]int{}
		for i := range f.Network.Links {
			host, box, ok := f.Network.Links[i].HostEnd()
			if !ok || host.NIC >= 0 || box.Switch >= len(sw[fi]) || sw[fi][box.Switch] < 0 {
				continue
			}
			if j.stopped() {
				return a
			}
			s := sw[fi][box.Switch]
			for h := range host.EachHost(len(f.Hosts)) {
				for _, to := range j.hostMap[fi][h] {
					if !slices.Contains(at[to], s) {
						at[to] = append(at[to], s)
					}
				}
			}
		}
		a.titles, a.at = append(a.titles, f.title()), append(a.at, at)
	}
	return a
}

// displaced reports whether an earlier source hangs the host elsewhere than
// fragment fi does, and remembers it.
func (a *attachments) displaced(fi, host int) bool {
	here := a.at[fi][host]
	for fk := range fi {
		there := a.at[fk][host]
		if len(here) == 0 || len(there) == 0 ||
			slices.ContainsFunc(here, func(s int) bool { return slices.Contains(there, s) }) {
			continue
		}
		key := [2]int{fk, fi}
		if a.told[key] == nil {
			a.told[key] = &clash{first: host, hosts: map[int]bool{}, here: here, there: there}
			a.pairs = append(a.pairs, key)
		}
		a.told[key].hosts[host] = true
		return true
	}
	return false
}

// warnings names both sources of every clash.
func (a *attachments) warnings(j *joiner) []Warning {
	var out []Warning
	for _, key := range a.pairs {
		k := a.told[key]
		rest := ""
		if n := len(k.hosts) - 1; n > 0 {
			rest = fmt.Sprintf(" (and %d more hosts elsewhere)", n)
		}
		there, here := a.titles[key[0]], a.titles[key[1]]
		out = append(out, Warning{
			Where: j.out.Hosts[k.first].Name, Text: fmt.Sprintf("hangs on %s in %s, on %s in %s%s; kept %s", j.switchNames(k.there), there,
				j.switchNames(k.here),
				here, rest, there),
		})
	}
	return out
}
