package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"busbar.dev/cluster"
	"busbar.dev/input"
	"busbar.dev/input/sysfs"
	"busbar.dev/internal/failure"
	wording "busbar.dev/internal/words"
)

// siteFolder reads everything that a folder holds of a site: every file of a known format, and folders in it that are a copy of
// a machine's /sys. Files of other formats are left out and said so.
func (e *Env) siteFolder(ctx context.Context, b *cluster.Budget, dir string) ([]source, error) {
	var list []source
	known, files := 0, 0
	err := e.walk(dir, func(path string, folder bool, err error) error {
		rel, relErr := filepath.Rel(dir, path)
		s := source{word: path, in: filepath.ToSlash(rel)}
		switch {
		case err != nil || relErr != nil:
			err = errors.Join(err, relErr)
		case rel == ".":
			return nil
		case folder && strings.HasPrefix(filepath.Base(path), "."):
			return fs.SkipDir // .git
		case folder && !e.isMachine(path):
			return nil
		case folder:
			var f *cluster.Fragment
			if f, err = e.openFolder(hostOf(path+"."), path); err == nil {
				s.frags = []*cluster.Fragment{f}
			}
		default:
			if files++; files > maxFiles {
				return fmt.Errorf("%s: more than %d files; give the folder of the site's outputs", dir, maxFiles)
			}
			s.frags, _, err = e.open(b, nil, path, 0)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s.leftOut = strings.TrimPrefix(err.Error(), path+": ")
			if errors.Is(err, input.ErrUnknown) {
				s.leftOut = "no known format in it"
			}
		} else {
			known++
		}
		list = append(list, s)
		if folder {
			return fs.SkipDir
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, failure.Cannot(err)
	case known == 0:
		return nil, fmt.Errorf("%s: neither a machine's /sys nor a file of a known format in it (%s)", dir, wording.Plural(files, "file"))
	}
	return list, nil
}

// isMachine reports a folder that is a copy of a machine's /sys, or holds one.
func (e *Env) isMachine(name string) bool {
	root, closeRoot, err := e.root(name)
	if err != nil {
		return false
	}
	defer closeRoot()
	return sysfs.Match(root)
}

// nameInFolder names the machines that files of a folder are about and do not name: by a host of the other files in the file's
// path (dgx001/topo.txt, ibstat-dgx001.txt), else by the folder, which is one machine's where no two files of one format are about
// the same part of it: ethtool prints a file an interface.
func nameInFolder(read []source) {
	if !slices.ContainsFunc(read, func(s source) bool { return s.in != "" && slices.ContainsFunc(s.frags, nameless) }) {
		return
	}
	hosts := map[string]string{}
	alike := map[[2]string][]*cluster.Fragment{} // by folder and format
	several := map[string]bool{}                 // folders with two of one format
	for i := range read {
		for _, f := range read[i].frags {
			for h := range f.Hosts {
				hosts[strings.ToLower(cluster.ShortHost(f.Hosts[h].Name))] = f.Hosts[h].Name
			}
			if read[i].in != "" && nameless(f) {
				dir := filepath.Dir(read[i].in)
				key := [2]string{dir, f.Format}
				alike[key] = append(alike[key], f)
				several[dir] = several[dir] || len(alike[key]) > 1
			}
		}
	}
	delete(hosts, "")
	for i := range read {
		s := &read[i]
		if s.in == "" || !slices.ContainsFunc(s.frags, nameless) {
			continue
		}
		name := hostInPath(s.in, hosts)
		dir := filepath.Dir(s.in)
		alone := !slices.ContainsFunc(s.frags, func(f *cluster.Fragment) bool { return clash(alike[[2]string{dir, f.Format}]) })
		switch {
		case name != "" || !alone:
		case dir != ".":
			name = hostOf(filepath.Base(dir) + ".")
		case several[dir]:
			name = hostOf(filepath.Base(strings.TrimSuffix(filepath.ToSlash(s.word), s.in)) + ".")
		}
		for _, f := range s.frags {
			if name != "" && nameless(f) {
				f.Hosts[0].Name = name
			}
		}
	}
}

// clash reports whether fragments of one format cannot be parts of one machine: two are about the same interface, or about more
// than interfaces.
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

// contributions lists what each source gave. Views on a fabric that another source describes are called so.
func contributions(read []source) []Contribution {
	cabled := slices.ContainsFunc(read, func(s source) bool {
		return slices.ContainsFunc(s.frags, func(f *cluster.Fragment) bool { return f.Network.Cabled() })
	})
	var list []Contribution
	for i := range read {
		s := &read[i]
		if s.leftOut != "" {
			list = append(list, Contribution{Source: s.word, LeftOut: s.leftOut})
		}
		for _, f := range s.frags {
			c := Contribution{Source: s.word, Format: f.Format, Gives: gives(f, cabled)}
			c.Source = cmp.Or(c.Source, f.Source)
			names := make([]string, 0, len(f.Hosts))
			for h := range f.Hosts {
				if name := f.Hosts[h].Name; name != "" {
					names = append(names, name)
				}
			}
			c.Hosts = cluster.FormatHosts(names)
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
		list = append(list, wording.Plural(sum.Nodes, "node"))
	}
	for _, d := range []struct {
		n    int
		noun string
	}{{sum.GPUs, "GPU"}, {sum.NICs, "NIC"}} {
		if d.n > 0 {
			list = append(list, wording.Plural(d.n, d.noun))
		}
	}
	n := &f.Network
	switch groups := wording.Plural(len(n.Switches), "group") + " of nodes"; {
	case len(n.Switches) == 0:
	case n.Logical() && cabled:
		list = append(list, groups+", compared with the cabling")
	case n.Logical():
		list = append(list, groups)
	default:
		list = append(list, wording.Plural(sum.Switches, "switch"))
	}
	if len(f.Benches) > 0 {
		list = append(list, wording.Plural(len(f.Benches), "measurement"))
	}
	return list
}
