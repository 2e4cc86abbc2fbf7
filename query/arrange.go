package query

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"busbar.dev/cluster"
)

// arrange settles how several sources stand to each other. A preset without a
// count beside other sources says what their hosts are like; further presets get
// nodes of their own; two files of one format that name no host are two machines,
// called after their files.
func arrange(read []source) {
	nodes := 0
	for i := range read {
		s := &read[i]
		if !s.preset || s.host != "" {
			continue
		}
		c := &s.frags[0].Cluster
		if !s.counted && len(read) > 1 && othersNameHosts(read, i) {
			c.Hosts = []cluster.Host{{Type: 0}}
			c.Network = cluster.Network{}
			continue
		}
		for h := range c.Hosts {
			c.Hosts[h].Name = fmt.Sprintf("node%d", nodes)
			nodes++
		}
	}
	nameNameless(read)
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
		if k == i || read[k].preset && read[k].host == "" {
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
