package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/input"
	"busbar.dev/input/sysfs"
	"busbar.dev/internal/failure"
	wording "busbar.dev/internal/words"
)

// load turns the words of a command line into a cluster: files, presets, folders,
// standard input, or this machine when there are none. Figures that no source
// gives are filled from the catalogue.
func (e *Env) load(ctx context.Context, words []string) (*cluster.Cluster, error) {
	c, _, err := e.loadFrom(ctx, words)
	return c, err
}

// loadFrom is load, with the sources.
func (e *Env) loadFrom(ctx context.Context, words []string) (*cluster.Cluster, []source, error) {
	c, read, err := e.readCluster(ctx, words)
	return c, read, e.aboutNamed("cluster", err)
}

func (e *Env) readCluster(ctx context.Context, words []string) (*cluster.Cluster, []source, error) {
	var read []source
	if len(words) == 0 {
		if e.Machine == nil {
			return nil, nil, errors.New("no cluster given, and this machine is not to be read; expected a preset (dgx-h100:4), a cluster file, or any file that busbar map reads")
		}
		live, err := e.Machine(ctx)
		if err != nil {
			return nil, nil, err
		}
		read = []source{{frags: live}}
	}
	b := e.budget(ctx)
	for _, w := range words {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		list, err := e.sources(ctx, b, w)
		if err != nil {
			return nil, nil, err
		}
		if e.Verbose != nil {
			for _, s := range list {
				for _, f := range s.frags {
					e.Verbose(fmt.Sprintf("%s: read as %s", s.word, f.Format))
				}
			}
		}
		read = append(read, list...)
	}
	nameInFolder(read)
	if err := arrange(read); err != nil {
		return nil, nil, err
	}
	c, err := join(b, read)
	if err == nil {
		err = hardware.CompleteWithin(b, c)
	}
	if err != nil {
		return nil, nil, err
	}
	c.Warnings = append(c.Warnings, strangers(read)...)
	if c.Name == "" {
		c.Name = nameOf(words, c)
	}
	return c, read, e.addCalibrationFile(b, c, words)
}

// join is the cluster of all sources. A preset alone is one already.
func join(b *cluster.Budget, read []source) (*cluster.Cluster, error) {
	if len(read) == 1 && read[0].preset && !repeats(read[0].hosts) {
		return &read[0].frags[0].Cluster, b.Stopped()
	}
	var frags []*cluster.Fragment
	for _, s := range read {
		frags = append(frags, s.frags...)
	}
	return cluster.JoinWithin(b, frags...)
}

// repeats reports whether a name is there twice.
func repeats(names []string) bool {
	if slices.IsSorted(names) {
		return len(slices.Compact(slices.Clone(names))) < len(names)
	}
	seen := make(map[string]bool, len(names))
	for _, n := range names {
		if seen[n] {
			return true
		}
		seen[n] = true
	}
	return false
}

// source is what one word of the command line gave.
type source struct {
	word    string
	frags   []*cluster.Fragment
	preset  bool
	counted bool     // the word says how many nodes
	hosts   []string // that the word names
	in      string   // the file's path within the folder that the word names
	leftOut string   // why nothing was taken of a file in a folder
}

// maxName is the longest name of a file that systems take; hostlists before a = are shorter.
const maxName = 4096

// sources reads one word: a folder of everything that a site has is one source a file.
func (e *Env) sources(ctx context.Context, b *cluster.Budget, word string) ([]source, error) {
	if len(word) > maxName || strings.ContainsRune(word, 0) {
		return nil, fmt.Errorf("%.60q: expected the name of a preset or a file, of at most %d bytes and none of them zero", word, maxName)
	}
	if info, err := fs.Stat(e.files(), word); err == nil && info.IsDir() && !e.isMachine(word) {
		if _, err := fs.ReadDir(e.files(), word); err != nil {
			return nil, failure.Cannot(err)
		}
		list, err := e.siteFolder(ctx, b, word)
		if err != nil || len(list) > 1 {
			return list, err
		}
	}
	s, err := e.source(b, word) // also a machine's folder one further down
	return []source{s}, err
}

// nameOf names a cluster whose sources do not: by its only host, or by the first
// file.
func nameOf(words []string, c *cluster.Cluster) string {
	switch {
	case len(words) > 0 && words[0] != "-":
		_, file, ok := strings.Cut(words[0], "=")
		if !ok {
			file = words[0]
		}
		base := filepath.Base(file)
		return strings.TrimSuffix(base, filepath.Ext(base))
	case len(c.Hosts) == 1:
		return c.Hosts[0].Name
	}
	return ""
}

// source reads one word: [HOSTLIST=]FILE[:COUNT], PRESET[:COUNT], FOLDER or -.
func (e *Env) source(b *cluster.Budget, word string) (source, error) {
	s := source{word: word}
	hosts, name, err := e.cutHosts(b, word)
	if err != nil {
		return s, err
	}
	name, count, err := e.cutCount(name)
	if err != nil {
		return s, err
	}
	if len(hosts) > 0 && count > 0 && count != len(hosts) {
		return s, fmt.Errorf("%s: %s before the =, %d by the :%d; leave one of them out", word, wording.Plural(len(hosts), "host"), count, count)
	}
	s.hosts, s.counted = hosts, count > 0
	if s.frags, s.preset, err = e.open(b, hosts, name, max(count, len(hosts))); err != nil || s.preset && len(hosts) == 0 {
		return s, err
	}
	for _, f := range s.frags {
		if len(hosts) > 0 {
			if err := nameHosts(b, f, hosts); err != nil {
				return s, fmt.Errorf("%s: %w", word, err)
			}
		}
	}
	if count > 0 && len(hosts) == 0 {
		s.frags, err = repeat(b, s.frags, name, count)
	}
	return s, err
}

// cutHosts splits HOSTLIST=FILE. A name that exists as it stands has no hosts.
func (e *Env) cutHosts(b *cluster.Budget, word string) (hosts []string, name string, err error) {
	h, rest, ok := strings.Cut(word, "=")
	if !ok || h == "" || strings.Contains(h, "/") || e.exists(word) || strings.Contains(h, ".") && !e.exists(rest) {
		return nil, word, nil
	}
	bad := strings.IndexFunc(h, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) >= 0
	if bad || strings.ContainsAny(h, "{}*?$()\"'") {
		return nil, "", fmt.Errorf("%s: %q before the = is not a hostlist; expected HOST=FILE or dgx[01-16]=FILE", word, h)
	}
	hosts, err = b.ParseHosts(h)
	if err != nil {
		return nil, "", fmt.Errorf("%s: before the =: %w", word, err)
	}
	return hosts, rest, nil
}

// cutCount splits FILE:8. A name that exists as it stands has no count.
func (e *Env) cutCount(name string) (string, int, error) {
	i := strings.LastIndexByte(name, ':')
	if i < 0 || e.exists(name) {
		return name, 0, nil
	}
	n, err := strconv.Atoi(name[i+1:])
	if err != nil || n < 1 || n > hardware.MaxNodes {
		return "", 0, fmt.Errorf("%s: after the colon %q; expected a number of nodes from 1 to %d", name, name[i+1:], hardware.MaxNodes)
	}
	return name[:i], n, nil
}

// open reads a preset, a folder, a file or standard input.
func (e *Env) open(b *cluster.Budget, hosts []string, name string, count int) (frags []*cluster.Fragment, preset bool, err error) {
	if name == "-" {
		frags, err = readAll(b, "standard input", e.stdin())
		return frags, false, err
	}
	if c, ok := e.Clusters[name]; ok {
		frags, err = readCopy(b, name, c)
		return frags, false, err
	}
	info, err := fs.Stat(e.files(), name)
	switch {
	case err == nil && info.IsDir():
		f, err := e.openFolder(append(hosts, "")[0], name)
		return []*cluster.Fragment{f}, false, err
	case errors.Is(err, fs.ErrNotExist):
		if err := e.Limits.holds(name, count); err != nil {
			return nil, false, err
		}
		if err := b.TakeHosts(count); err != nil {
			return nil, false, fmt.Errorf("%s:%d: %w", name, count, err)
		}
		c, err := hardware.Preset(name, count)
		if err != nil {
			if strings.ContainsAny(name, "/.") {
				return nil, false, missing{fmt.Errorf("%s: no such file", name)}
			}
			return nil, false, missing{fmt.Errorf("%s: no such file, and as a preset: %w", name, err)}
		}
		if source := c.Sources[0]; strings.Contains(source, hardware.AssumedNode) {
			e.note(source)
		}
		return []*cluster.Fragment{{Format: "preset", Source: c.Name, Cluster: *c}}, true, nil
	case err != nil:
		return nil, false, failure.Cannot(err)
	case !info.Mode().IsRegular() && info.Mode()&fs.ModeNamedPipe == 0:
		return nil, false, fmt.Errorf("%s: neither a file nor a folder (%v)", name, info.Mode().Type())
	}
	f, err := e.files().Open(name)
	if err != nil {
		return nil, false, failure.Cannot(err)
	}
	defer f.Close()
	frags, err = readAll(b, name, f)
	return frags, false, err
}

// readAll reads a stream. One that breaks off is not the input's fault.
func readAll(b *cluster.Budget, name string, r io.Reader) ([]*cluster.Fragment, error) {
	in := &stream{r: r}
	frags, err := input.ReadWithin(b, name, in)
	if in.err != nil {
		return nil, failure.Cannot(fmt.Errorf("%s: %w", name, in.err))
	}
	if b.Over() {
		err = failure.Cannot(err)
	}
	return frags, err
}

// stream remembers that reading failed.
type stream struct {
	r   io.Reader
	err error
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
		var at *fs.PathError
		if errors.As(err, &at) {
			s.err = at.Err // the caller knows the name
		}
	}
	return n, err
}

// openFolder reads a machine from a copy of its /sys and /proc. Links that lead out
// of the folder lead nowhere: what they would show is this machine.
func (e *Env) openFolder(host, name string) (*cluster.Fragment, error) {
	// Without the right to list it there is nothing in it that could be wrong.
	if _, err := fs.ReadDir(e.files(), name); err != nil {
		return nil, failure.Cannot(err)
	}
	root, closeRoot, err := e.root(name)
	if err != nil {
		return nil, failure.Cannot(err)
	}
	defer closeRoot()
	f, err := sysfs.Read(host, root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// holds refuses a preset of more devices than the limit, before it is made.
func (l Limits) holds(preset string, nodes int) error {
	if l.Devices == 0 {
		return nil
	}
	for _, p := range hardware.Presets() {
		if each := max(p.GPUs, p.NICs); (p.Name == preset || slices.Contains(p.Aliases, preset)) && nodes*each > l.Devices {
			return failure.Cannot(fmt.Errorf("%s:%d: %d nodes of %d GPUs or NICs; expected at most %d nodes here", preset, nodes, nodes, each, l.Devices/each))
		}
	}
	return nil
}

// nameHosts gives a fragment's nodes their hosts. One node describes them all.
func nameHosts(b *cluster.Budget, f *cluster.Fragment, hosts []string) error {
	switch len(f.Hosts) {
	case len(hosts):
	case 1:
		if len(f.Network.Links) > 0 {
			return errors.New("a list of hosts needs a source about one node; this one has a network too")
		}
		if err := b.TakeHosts(len(hosts)); err != nil {
			return err
		}
		one := f.Hosts[0]
		f.Hosts = make([]cluster.Host, len(hosts))
		for h := range f.Hosts {
			f.Hosts[h] = cluster.Host{Type: one.Type}
		}
	default:
		return fmt.Errorf("HOST= needs a source about one node; this one has %d", len(f.Hosts))
	}
	for h, name := range hosts {
		f.Hosts[h].Name = name
	}
	return nil
}

// repeat makes count equal nodes of the one node that the sources describe.
func repeat(b *cluster.Budget, frags []*cluster.Fragment, name string, count int) ([]*cluster.Fragment, error) {
	c, err := cluster.JoinWithin(b, frags...)
	if err != nil {
		return nil, err
	}
	if len(c.Hosts) != 1 {
		return nil, fmt.Errorf("%s:%d: it describes %d nodes; a count is for a source about one", name, count, len(c.Hosts))
	}
	if err := b.TakeHosts(count); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, count, err)
	}
	stem := "node"
	hosts := make([]cluster.Host, count)
	for i := range hosts {
		hosts[i] = cluster.Host{Name: fmt.Sprintf("%s%d", stem, i), Type: c.Hosts[0].Type}
	}
	c.Hosts = hosts
	f := &cluster.Fragment{Format: frags[0].Format, Source: name, Cluster: *c}
	f.Sources = nil
	return []*cluster.Fragment{f}, b.Keep(f)
}
