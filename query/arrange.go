package query

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"busbar.dev/cluster"
	"busbar.dev/internal/natural"
)

// arrange settles how several sources stand to each other. A preset without a
// count beside other sources says what their hosts are like, and so does one with
// as many nodes as they name; further presets get nodes of their own; two files of
// one format that name no host are two machines, called after their files.
func arrange(read []source) error {
	nodes := 0
	for i := range read {
		s := &read[i]
		if !s.preset {
			continue
		}
		c := &s.frags[0].Cluster
		if len(s.hosts) > 0 {
			if othersHaveNetwork(read, i) {
				c.Network = cluster.Network{}
			}
			continue
		}
		if !s.counted && len(read) > 1 && othersNameHosts(read, i) {
			c.Hosts = []cluster.Host{{Type: 0}}
			c.Network = cluster.Network{}
			continue
		}
		if names := bareHosts(read, i); s.counted && len(names) > 0 {
			if len(names) != len(c.Hosts) {
				return fmt.Errorf("%s describes %d nodes and the other sources name %d hosts (%s); which of them are meant? Leave :%d out for all, or name them: HOSTLIST=%s",
					s.word, len(c.Hosts), len(names), cluster.FormatHosts(names), len(c.Hosts), strings.TrimSuffix(s.word, fmt.Sprintf(":%d", len(c.Hosts))))
			}
			for h := range c.Hosts {
				c.Hosts[h].Name = names[h]
			}
			if othersAreCabled(read, i) {
				c.Network = cluster.Network{}
			}
			continue
		}
		for h := range c.Hosts {
			if nodes != h { // else it has its name
				c.Hosts[h].Name = "node" + strconv.Itoa(nodes)
			}
			nodes++
		}
	}
	nameNameless(read)
	return nil
}

// bareHosts lists the hosts that sources other than number i name, where none of them describes their GPUs: what is said of
// their nodes must come from elsewhere.
func bareHosts(read []source, i int) []string {
	var names []string
	seen := map[string]bool{}
	for k := range read {
		if k == i {
			continue
		}
		for _, f := range read[k].frags {
			for h := range f.Hosts {
				if t := f.TypeOf(h); t != nil && len(t.Of(cluster.GPU)) > 0 {
					return nil
				}
				if name := f.Hosts[h].Name; name != "" && !seen[name] {
					seen[name] = true
					names = append(names, name)
				}
			}
		}
	}
	return natural.Sort(names)
}

func othersHaveNetwork(read []source, i int) bool {
	return others(read, i, func(f *cluster.Fragment) bool { return len(f.Network.Links) > 0 })
}

func othersAreCabled(read []source, i int) bool {
	return others(read, i, func(f *cluster.Fragment) bool { return f.Network.Cabled() })
}

// others reports whether a fragment of a source other than number i is such.
func others(read []source, i int, is func(*cluster.Fragment) bool) bool {
	for k := range read {
		if k != i && slices.ContainsFunc(read[k].frags, is) {
			return true
		}
	}
	return false
}

// nameNameless tells apart the machines of files that name no host.
func nameNameless(read []source) {
	var formats []string
	from := map[string][]int{} // sources, by format
	for i := range read {
		for _, f := range read[i].frags {
			if read[i].preset || !nameless(f) || f.TypeOf(0) == nil || slices.Contains(from[f.Format], i) {
				continue
			}
			if from[f.Format] == nil {
				formats = append(formats, f.Format)
			}
			from[f.Format] = append(from[f.Format], i)
		}
	}
	for _, format := range formats {
		sources := from[format]
		if len(sources) < 2 {
			continue
		}
		words := make([]string, len(sources))
		for k, i := range sources {
			words[k] = read[i].word
		}
		names := fileNames(words)
		for k, i := range sources {
			for _, f := range read[i].frags {
				if nameless(f) {
					f.Hosts[0].Name = names[k]
					f.Warnf(0, names[k], "the file names no host; another of the same kind does not either, so this is a machine of its own, called after its file (HOST=FILE gives it a name)")
				}
			}
		}
	}
}

func nameless(f *cluster.Fragment) bool { return len(f.Hosts) == 1 && f.Hosts[0].Name == "" }

// fileNames calls machines after their files: by the name without its ending;
// files of one name in several folders by folder and name; what is still alike by
// a number. One path twice is one machine.
func fileNames(paths []string) []string {
	abs, names := make([]string, len(paths)), make([]string, len(paths))
	for i, p := range paths {
		abs[i] = p
		if a, err := filepath.Abs(p); err == nil {
			abs[i] = a
		}
		names[i] = hostOf(p)
	}
	// alike reports whether another file has the name of number i.
	alike := func(names []string, i int) bool {
		for k := range names {
			if names[k] == names[i] && abs[k] != abs[i] {
				return true
			}
		}
		return false
	}
	longer := slices.Clone(names)
	for i := range names {
		if alike(names, i) {
			longer[i] = hostOf(filepath.Dir(abs[i])+".") + "-" + names[i]
		}
	}
	final := slices.Clone(longer)
	for i := range longer {
		for n := 2; alike(final[:i+1], i); n++ {
			final[i] = fmt.Sprintf("%s-%d", longer[i], n)
		}
		if k := slices.Index(abs[:i], abs[i]); k >= 0 {
			final[i] = final[k]
		}
	}
	return final
}

// hostOf makes a host's name of a file's. A dot would begin a domain, which does
// not count when hosts are compared, and other marks have a meaning in lists.
func hostOf(path string) string {
	base := filepath.Base(path)
	name := strings.Map(func(r rune) rune {
		if r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '-'
	}, strings.TrimSuffix(base, filepath.Ext(base)))
	if name = strings.Trim(name, "-"); name == "" {
		return "node"
	}
	return name
}

// othersNameHosts reports whether a source other than number i names hosts.
func othersNameHosts(read []source, i int) bool {
	for k := range read {
		if k == i || read[k].preset && len(read[k].hosts) == 0 {
			continue
		}
		for _, f := range read[k].frags {
			if len(f.Hosts) > 0 && f.Hosts[0].Name != "" {
				return true
			}
		}
	}
	return false
}
