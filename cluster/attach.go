package cluster

import (
	"fmt"
	"slices"
	"strings"
)

// attachments holds where the sources hang hosts in the network, so that two of
// them that put one host at different places can be told.
type attachments struct {
	frags []*Fragment
	sw    [][]int               // switch of a fragment → switch of the joined network
	at    []map[int]*attachment // per fragment: by joined host
	known []map[int]bool        // per fragment: the joined switches it names
	told  map[[2]int]*clash     // by the two fragments
	pairs [][2]int              // in the order they were found
}

// attachment is where one source hangs one host.
type attachment struct {
	switches []int
	byNIC    bool // it names the NICs, so several switches are no wonder
}

// clash is what two sources say differently.
type clash struct {
	hosts       []int
	counted     map[int]bool // the same hosts
	here, there []int        // switches of the first of them
}

// attached collects the hosts' places, per source; nil when fewer than two
// sources have any.
func (j *joiner) attached(frags []*Fragment, sw [][]int) *attachments {
	with := 0
	for _, f := range frags {
		if len(f.Network.Links) > 0 && len(f.Hosts) > 0 {
			with++
		}
	}
	if with < 2 {
		return nil
	}
	a := &attachments{frags: frags, sw: sw, told: map[[2]int]*clash{}}
	for fi, f := range frags {
		at, known := map[int]*attachment{}, map[int]bool{}
		for _, s := range sw[fi] {
			known[s] = true
		}
		for i := range f.Network.Links {
			host, box, ok := f.Network.Links[i].HostEnd()
			if !ok || box.Switch >= len(sw[fi]) || sw[fi][box.Switch] < 0 {
				continue
			}
			s := sw[fi][box.Switch]
			if j.stopped() {
				return nil
			}
			for h := range host.EachHost(len(f.Hosts)) {
				for _, to := range j.hostMap[fi][h] {
					place := at[to]
					if place == nil {
						place = &attachment{}
						at[to] = place
					}
					place.byNIC = place.byNIC || host.NIC >= 0
					if !slices.Contains(place.switches, s) {
						place.switches = append(place.switches, s)
					}
				}
			}
		}
		a.at, a.known = append(a.at, at), append(a.known, known)
	}
	return a
}

// displaced reports whether an earlier source hangs the host elsewhere than
// fragment fi does, and remembers it. Sources that name no NIC give a host one
// place, as schedulers do; those that do must know each other's switches, for else
// each may have seen a fabric of its own.
func (a *attachments) displaced(fi, host int) bool {
	if a == nil {
		return false
	}
	here := a.at[fi][host]
	if here == nil {
		return false
	}
	for fk := range fi {
		there := a.at[fk][host]
		if there == nil ||
			slices.ContainsFunc(here.switches, func(s int) bool { return slices.Contains(there.switches, s) }) {
			continue
		}
		if (here.byNIC || there.byNIC) && !(allKnown(a.known[fk], here.switches) && allKnown(a.known[fi], there.switches)) {
			continue
		}
		key := [2]int{fk, fi}
		c := a.told[key]
		if c == nil {
			c = &clash{counted: map[int]bool{}, here: here.switches, there: there.switches}
			a.told[key], a.pairs = c, append(a.pairs, key)
		}
		if !c.counted[host] {
			c.counted[host], c.hosts = true, append(c.hosts, host)
		}
		return true
	}
	return false
}

func allKnown(known map[int]bool, switches []int) bool {
	return !slices.ContainsFunc(switches, func(s int) bool { return !known[s] })
}

// warnings names both sources of every clash.
func (a *attachments) warnings(c *Cluster) []Warning {
	if a == nil {
		return nil
	}
	names := func(switches []int) string {
		var s []string
		for _, i := range switches {
			s = append(s, c.Network.Switches[i].Name)
		}
		return strings.Join(s, ", ")
	}
	var out []Warning
	for _, key := range a.pairs {
		k := a.told[key]
		host, rest := c.Hosts[k.hosts[0]].Name, ""
		if n := len(k.hosts) - 1; n > 0 {
			rest = fmt.Sprintf(" (and %d more hosts elsewhere)", n)
		}
		there, here := a.frags[key[0]].title(), a.frags[key[1]].title()
		out = append(out, Warning{
			Where: host, Text: fmt.Sprintf("hangs on %s in %s, on %s in %s%s; kept %s", names(k.there), there, names(k.here),
				here, rest, there),
		})
	}
	return out
}
