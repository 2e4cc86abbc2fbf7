package input

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"busbar.dev/cluster"
	"busbar.dev/internal/natural"
	"busbar.dev/internal/words"
)

// Source is what one word of a command line gave of a cluster.
type Source struct {
	Word      string
	Fragments []*cluster.Fragment
	Preset    bool
	Counted   bool     // the word says how many nodes
	Hosts     []string // that the word names
	In        string   // the file's path within the folder that the word names
	LeftOut   string   // why nothing was taken of a file in a folder
}

// Arrange names the hosts of sources that do not, and settles how the sources stand to each other.
func Arrange(read []Source) error {
	nameInFolder(read)
	return arrange(read)
}

// nameInFolder names the machines that files of a folder are about and do not name: by a host of the other files in the
// file's path (dgx001/topo.txt, ibstat-dgx001.txt), else by the folder, which is one machine's where no two files of
// one format are about the same part of it: ethtool prints a file an interface.
func nameInFolder(read []Source) {
	if !slices.ContainsFunc(read,
		func(s Source) bool { return s.In != "" && slices.ContainsFunc(s.Fragments, nameless) }) {
		return
	}
	hosts := map[string]string{}
	alike := map[[2]string][]*cluster.Fragment{} // by folder and format
	several := map[string]bool{}                 // folders with two of one format
	for i := range read {
		for _, f := range read[i].Fragments {
			for _, name := range namesOf(f) {
				hosts[strings.ToLower(cluster.ShortHost(name))] = name
			}
			if read[i].In != "" && nameless(f) {
				dir := filepath.Dir(read[i].In)
				key := [2]string{dir, f.Format}
				alike[key] = append(alike[key], f)
				several[dir] = several[dir] || len(alike[key]) > 1
			}
		}
	}
	for i := range read {
		s := &read[i]
		if s.In == "" || !slices.ContainsFunc(s.Fragments, nameless) {
			continue
		}
		name := hostInPath(s.In, hosts)
		dir := filepath.Dir(s.In)
		alone := !slices.ContainsFunc(s.Fragments,
			func(f *cluster.Fragment) bool { return clash(alike[[2]string{dir, f.Format}]) })
		switch {
		case name != "" || !alone:
		case dir != ".":
			name = HostOf(filepath.Base(dir) + ".")
		case several[dir]:
			name = HostOf(filepath.Base(strings.TrimSuffix(filepath.ToSlash(s.Word), s.In)) + ".")
		}
		for _, f := range s.Fragments {
			if name != "" && nameless(f) {
				f.Hosts[0].Name = name
			}
		}
	}
}

// clash reports whether fragments of one format cannot be parts of one machine: two are about the same interface, or
// about more than interfaces.
func clash(list []*cluster.Fragment) bool {
	if len(list) < 2 {
		return false
	}
	seen := map[string]bool{}
	for _, f := range list {
		for t := range f.Types {
			for _, d := range f.Types[t].Devices {
				name := cmp.Or(d.Label, d.Name)
				if d.Kind != cluster.NIC || name == "" || seen[name] {
					return true
				}
				seen[name] = true
			}
		}
	}
	return false
}

// hostInPath is the host that a part of a path names, the innermost first.
func hostInPath(path string, hosts map[string]string) string {
	parts := strings.Split(strings.ToLower(path), "/")
	slices.Reverse(parts)
	for _, p := range parts {
		if name, ok := hosts[p]; ok {
			return name
		}
		// Hosts may have dashes of their own: the longest run of words that is one.
		for end := len(p); end > 0; end = strings.LastIndexFunc(p[:end], separates) {
			for from := 0; from < end; {
				if name, ok := hosts[p[from:end]]; ok {
					return name
				}
				next := strings.IndexFunc(p[from:end], separates)
				if next < 0 {
					break
				}
				from += next + 1
			}
		}
	}
	return ""
}

func separates(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// Contribution is what one source gave to a cluster.
type Contribution struct {
	Source  string   `json:"source"`
	Format  string   `json:"format,omitempty"`
	Hosts   string   `json:"hosts,omitempty"`    // that it names; none: it is about every host
	Gives   []string `json:"gives,omitempty"`    // "8 GPUs", "12 switches"
	LeftOut string   `json:"left_out,omitempty"` // why nothing was taken
}

// Contributions lists what each source gave. Views on a fabric that another source describes are called so.
func Contributions(read []Source) []Contribution {
	cabled := otherNetwork(read, -1, true)
	var list []Contribution
	for i := range read {
		s := &read[i]
		if s.LeftOut != "" {
			list = append(list, Contribution{Source: s.Word, LeftOut: s.LeftOut})
		}
		for _, f := range s.Fragments {
			c := Contribution{Source: s.Word, Format: f.Format, Gives: gives(f, cabled)}
			c.Source, c.Hosts = cmp.Or(c.Source, f.Source), cluster.FormatHosts(namesOf(f))
			list = append(list, c)
		}
	}
	return list
}

// gives counts what is in a fragment.
func gives(f *cluster.Fragment, cabled bool) []string {
	var list []string
	sum := f.Summary()
	if len(f.Hosts) > 1 {
		list = append(list, words.Plural(sum.Nodes, "node"))
	}
	for _, d := range []struct {
		n    int
		noun string
	}{{sum.GPUs, "GPU"}, {sum.NICs, "NIC"}} {
		if d.n > 0 {
			list = append(list, words.Plural(d.n, d.noun))
		}
	}
	n := &f.Network
	switch groups := words.Plural(len(n.Switches), "group") + " of nodes"; {
	case len(n.Switches) == 0:
	case n.Logical() && cabled:
		list = append(list, groups+", compared with the cabling")
	case n.Logical():
		list = append(list, groups)
	default:
		list = append(list, words.Plural(sum.Switches, "switch"))
	}
	return list
}

// arrange settles how several sources stand to each other. A preset without a
// count beside other sources says what their hosts are like, and so does one with
// as many nodes as they name; further presets get nodes of their own; two files of
// one format that name no host are two machines, called after their files.
func arrange(read []Source) error {
	nodes := 0
	for i := range read {
		s := &read[i]
		if !s.Preset {
			continue
		}
		c := &s.Fragments[0].Cluster
		if len(s.Hosts) > 0 {
			if otherNetwork(read, i, false) {
				c.Network = cluster.Network{}
			}
			continue
		}
		if !s.Counted && len(read) > 1 && othersNameHosts(read, i) {
			c.Hosts = []cluster.Host{{Type: 0}}
			c.Network = cluster.Network{}
			continue
		}
		if names := bareHosts(read, i); s.Counted && len(names) > 0 {
			if len(names) != len(c.Hosts) {
				return fmt.Errorf("%s describes %d nodes and the other sources name %d hosts (%s); which of them are meant? "+
					"Leave :%d out for all, or name them: HOSTLIST=%s",
					s.Word, len(c.Hosts), len(names), cluster.FormatHosts(names), len(c.Hosts),
					strings.TrimSuffix(s.Word, fmt.Sprintf(":%d", len(c.Hosts))))
			}
			for h := range c.Hosts {
				c.Hosts[h].Name = names[h]
			}
			if otherNetwork(read, i, true) {
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

// bareHosts lists the hosts that sources other than number i name, where none of them describes their GPUs: what is
// said of their nodes must come from elsewhere.
func bareHosts(read []Source, i int) []string {
	var names []string
	for _, f := range others(read, i) {
		if hasGPUs(f) {
			return nil
		}
		names = append(names, namesOf(f)...)
	}
	return slices.Compact(natural.Sort(names))
}

// others are the fragments of the sources but number i, with their sources.
func others(read []Source, i int) iter.Seq2[*Source, *cluster.Fragment] {
	return func(yield func(*Source, *cluster.Fragment) bool) {
		for k := range read {
			for _, f := range read[k].Fragments {
				if k != i && !yield(&read[k], f) {
					return
				}
			}
		}
	}
}

// otherNetwork reports whether a fragment of a source other than number i describes a network.
func otherNetwork(read []Source, i int, cabled bool) bool {
	for _, f := range others(read, i) {
		if cabled && f.Network.Cabled() || !cabled && f.Format != "preset" && len(f.Network.Links) > 0 {
			return true
		}
	}
	return false
}

// nameNameless tells apart the machines of files that name no host.
func nameNameless(read []Source) {
	from := map[string][]int{} // sources, by format
	for i := range read {
		for _, f := range read[i].Fragments {
			if read[i].Preset || !nameless(f) || f.TypeOf(0) == nil || slices.Contains(from[f.Format], i) {
				continue
			}
			from[f.Format] = append(from[f.Format], i)
		}
	}
	for _, format := range slices.Sorted(maps.Keys(from)) {
		sources := from[format]
		if len(sources) < 2 {
			continue
		}
		paths := make([]string, len(sources))
		for k, i := range sources {
			paths[k] = read[i].Word
		}
		names := fileNames(paths)
		for k, i := range sources {
			for _, f := range read[i].Fragments {
				if nameless(f) {
					f.Hosts[0].Name = names[k]
					f.Warnf(0, names[k], "the file names no host; another of the same kind does not either, so this is a machine of "+
						"its own, called after its file (HOST=FILE gives it a name)")
				}
			}
		}
	}
}

func nameless(f *cluster.Fragment) bool { return len(f.Hosts) == 1 && f.Hosts[0].Name == "" }

// namesOf lists the hosts that a fragment names.
func namesOf(f *cluster.Fragment) (names []string) {
	for h := range f.Hosts {
		if name := f.Hosts[h].Name; name != "" {
			names = append(names, name)
		}
	}
	return names
}

func hasGPUs(f *cluster.Fragment) bool {
	return slices.ContainsFunc(f.Types, func(t *cluster.NodeType) bool { return t.Count(cluster.GPU) > 0 })
}

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
		names[i] = HostOf(p)
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
			longer[i] = HostOf(filepath.Dir(abs[i])+".") + "-" + names[i]
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

// HostOf makes a host's name of a file's. A dot would begin a domain, which does
// not count when hosts are compared, and other marks have a meaning in lists.
func HostOf(path string) string {
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
func othersNameHosts(read []Source, i int) bool {
	for s, f := range others(read, i) {
		if (!s.Preset || len(s.Hosts) > 0) && len(namesOf(f)) > 0 {
			return true
		}
	}
	return false
}

// Strangers warns of nodes whose inside one source describes and which no fabric names, as where a fabric calls its
// hosts otherwise: they would stand beside the fabric's own hosts, without a network.
func Strangers(read []Source) []cluster.Warning {
	inside, named := map[string]string{}, map[string]string{} // by the name that is compared
	var fabrics []string
	for i := range read {
		s := &read[i]
		gpus := slices.ContainsFunc(s.Fragments, hasGPUs)
		links := slices.ContainsFunc(s.Fragments, func(f *cluster.Fragment) bool { return len(f.Network.Links) > 0 })
		to := inside
		switch {
		case links && !gpus:
			to, fabrics = named, append(fabrics, s.Word)
		case links || !gpus:
			continue
		}
		for _, f := range s.Fragments {
			for _, name := range namesOf(f) {
				to[cluster.ShortHost(name)] = name
			}
		}
	}
	if len(named) == 0 {
		return nil
	}
	var missing []string
	for short, name := range inside {
		if _, ok := named[short]; !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	theirs := natural.Sort(slices.Collect(maps.Values(named)))
	missing = natural.Sort(missing)
	w := cluster.Warning{Text: fmt.Sprintf("does not name %s: how they reach the network is unknown", cutList(missing))}
	if len(missing) == len(inside) {
		w.Text = fmt.Sprintf("names none of %s, which other sources describe; its hosts are %s and are listed as further "+
			"nodes. Use its names before the =, as in %s=FILE",
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
