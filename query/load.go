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
)

// load turns the words of a command line into a cluster: files, presets, folders,
// standard input, or this machine when there are none. Figures that no source
// gives are filled from the catalogue.
func (e *Env) load(ctx context.Context, words []string) (*cluster.Cluster, error) {
	var read []source
	if len(words) == 0 {
		if e.Machine == nil {
			return nil, errors.New("no cluster given, and this machine is not to be read; expected a preset (dgx-h100:4), a cluster file, or any file that busbar map reads")
		}
		live, err := e.Machine(ctx)
		if err != nil {
			return nil, err
		}
		read = []source{{frags: live}}
	}
	b := e.budget(ctx)
	for _, w := range words {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s, err := e.source(b, w)
		if err != nil {
			return nil, err
		}
		if e.Verbose != nil {
			for _, f := range s.frags {
				e.Verbose(fmt.Sprintf("%s: read as %s", w, f.Format))
			}
		}
		read = append(read, s)
	}
	arrange(read)
	var frags []*cluster.Fragment
	for _, s := range read {
		frags = append(frags, s.frags...)
	}
	c, err := cluster.JoinWithin(b, frags...)
	if err == nil {
		err = hardware.CompleteWithin(b, c)
	}
	if err != nil {
		return nil, err
	}
	if c.Name == "" {
		c.Name = nameOf(words, c)
	}
	return c, e.addCalibrationFile(b, c, words)
}

// source is what one word of the command line gave.
type source struct {
	word    string
	frags   []*cluster.Fragment
	preset  bool
	counted bool   // the word says how many nodes
	host    string // that the word names
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

// source reads one word: [HOST=]FILE[:COUNT], PRESET[:COUNT], FOLDER or -.
func (e *Env) source(b *cluster.Budget, word string) (source, error) {
	s := source{word: word}
	host, name, err := e.cutHost(word)
	if err != nil {
		return s, err
	}
	name, count, err := e.cutCount(name)
	if err != nil {
		return s, err
	}
	if host != "" && count > 1 {
		return s, fmt.Errorf("%s: HOST= names one node and :%d asks for %d; leave one of them out", word, count, count)
	}
	s.host, s.counted = host, count > 0
	if s.frags, s.preset, err = e.open(b, host, name, count); err != nil || s.preset && host == "" {
		return s, err
	}
	for _, f := range s.frags {
		if host != "" {
			if err := nameHost(f, host); err != nil {
				return s, fmt.Errorf("%s: %w", word, err)
			}
		}
	}
	if count > 0 && host == "" {
		s.frags, err = repeat(b, s.frags, name, count)
	}
	return s, err
}

// cutHost splits HOST=FILE. A name that exists as it stands has no host.
func (e *Env) cutHost(word string) (host, name string, err error) {
	h, rest, ok := strings.Cut(word, "=")
	if !ok || h == "" || strings.Contains(h, "/") || e.exists(word) || strings.Contains(h, ".") && !e.exists(rest) {
		return "", word, nil
	}
	bad := strings.IndexFunc(h, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) >= 0
	if one, err := cluster.ParseHosts(h); bad || err != nil || len(one) != 1 || one[0] != h || strings.ContainsAny(h, "[]{}*?$()\"'") {
		return "", "", fmt.Errorf("%s: %q before the = is not the name of one host; expected HOST=FILE", word, h)
	}
	return h, rest, nil
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
func (e *Env) open(b *cluster.Budget, host, name string, count int) (frags []*cluster.Fragment, preset bool, err error) {
	if name == "-" {
		frags, err = readAll(b, "standard input", e.stdin())
		return frags, false, err
	}
	info, err := fs.Stat(e.files(), name)
	switch {
	case err == nil && info.IsDir():
		f, err := e.openFolder(host, name)
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
				return nil, false, fmt.Errorf("%s: no such file", name)
			}
			return nil, false, fmt.Errorf("%s: no such file, and as a preset: %w", name, err)
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
			return fmt.Errorf("%s:%d: %d nodes of %d GPUs or NICs; expected at most %d nodes here", preset, nodes, nodes, each, l.Devices/each)
		}
	}
	return nil
}

// nameHost gives a fragment's nameless node its host.
func nameHost(f *cluster.Fragment, host string) error {
	if len(f.Hosts) != 1 {
		return fmt.Errorf("HOST= needs a source about one node; this one has %d", len(f.Hosts))
	}
	f.Hosts[0].Name = host
	return nil
}

// repeat makes count equal nodes of the one node that the sources describe.
func repeat(b *cluster.Budget, frags []*cluster.Fragment, name string, count int) ([]*cluster.Fragment, error) {
	c, err := cluster.JoinWithin(b, frags...)
	if err != nil {
		return nil, err
	}
	if len(c.Hosts) != 1 {
		return nil, fmt.Errorf("%s:%d: the file describes %d nodes; a count is for a file about one", name, count, len(c.Hosts))
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
