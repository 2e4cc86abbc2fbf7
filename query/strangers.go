package query

import (
	"fmt"

	"busbar.dev/cluster"
	"busbar.dev/internal/natural"
)

// strangers warns of nodes whose inside one source describes and which no fabric names, as where a fabric calls its hosts otherwise: they
// would stand beside the fabric's own hosts, without a network.
func strangers(read []source) []cluster.Warning {
	inside, named := map[string]string{}, map[string]string{} // by the name that is compared
	var fabrics []string
	for i := range read {
		s := &read[i]
		gpus, links := false, false
		for _, f := range s.frags {
			links = links || len(f.Network.Links) > 0
			for h := range f.Hosts {
				t := f.TypeOf(h)
				gpus = gpus || t != nil && t.Count(cluster.GPU) > 0
			}
		}
		to := inside
		switch {
		case links && !gpus:
			to, fabrics = named, append(fabrics, s.word)
		case links || !gpus:
			continue
		}
		for _, f := range s.frags {
			for h := range f.Hosts {
				if name := f.Hosts[h].Name; name != "" {
					to[cluster.ShortHost(name)] = name
				}
			}
		}
	}
	if len(named) == 0 {
		return nil
	}
	var missing, theirs []string
	for short, name := range inside {
		if _, ok := named[short]; !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	for _, name := range named {
		theirs = append(theirs, name)
	}
	missing, theirs = natural.Sort(missing), natural.Sort(theirs)
	w := cluster.Warning{Text: fmt.Sprintf("does not name %s: how they reach the network is unknown", cutList(missing))}
	if len(missing) == len(inside) {
		w.Text = fmt.Sprintf("names none of %s, which other sources describe; its hosts are %s and are listed as further nodes. Use its names before the =, as in %s=FILE",
			cutList(missing), cutList(theirs), theirs[0])
	}
	if len(fabrics) == 1 {
		w.Source = fabrics[0]
	} else {
		w.Text = "no fabric among the sources " + w.Text
	}
	return []cluster.Warning{w}
}

// cutList is a hostlist that fits a line.
func cutList(names []string) string {
	const most = 60
	list := cluster.FormatHosts(names)
	if len(list) <= most {
		return list
	}
	return fmt.Sprintf("%s and %d others", names[0], len(names)-1)
}
