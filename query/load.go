package query

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/input"
	"busbar.dev/input/clusterfile"
	"busbar.dev/input/sysfs"
	"busbar.dev/internal/failure"
	wording "busbar.dev/internal/words"
	"busbar.dev/nccl"
	"busbar.dev/plan"
	"busbar.dev/predict"
	"busbar.dev/step"
)

// load turns the words of a command line into a cluster: files, presets, folders,
// standard input, or this machine when there are none. Figures that no source
// gives are filled from the catalogue.
func (e *Env) load(ctx context.Context, words []string) (*cluster.Cluster, error) {
	c, _, err := e.loadFrom(ctx, words)
	return c, err
}

// loadFrom is load, with the sources.
func (e *Env) loadFrom(ctx context.Context, words []string) (c *cluster.Cluster, read []input.Source, err error) {
	defer func() { err = e.aboutNamed("cluster", err) }()
	if len(words) == 0 {
		if e.Machine == nil {
			return nil, nil, errors.New("no cluster given, and this machine is not to be read; expected a preset " +
				"(dgx-h100:4), a cluster file, or any file that busbar map reads")
		}
		live, err := e.Machine(ctx)
		if err != nil {
			return nil, nil, err
		}
		read = []input.Source{{Fragments: live}}
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
				for _, f := range s.Fragments {
					e.Verbose(fmt.Sprintf("%s: read as %s", s.Word, f.Format))
				}
			}
		}
		read = append(read, list...)
	}
	if err := input.Arrange(read); err != nil {
		return nil, nil, err
	}
	apart, err := joinFabrics(read)
	if err != nil {
		return nil, nil, err
	}
	c, err = join(b, read)
	if err == nil {
		err = hardware.CompleteWithin(b, c)
	}
	if err != nil {
		return nil, nil, err
	}
	c.Warnings = append(append(c.Warnings, apart...), input.Strangers(read)...)
	if c.Name == "" {
		c.Name = nameOf(words, c)
	}
	return c, read, e.addCalibrationFile(b, c, words)
}

// join is the cluster of all sources. A preset alone is one already.
func join(b *cluster.Budget, read []input.Source) (*cluster.Cluster, error) {
	if len(read) == 1 && read[0].Preset && !repeats(read[0].Hosts) {
		return &read[0].Fragments[0].Cluster, b.Stopped()
	}
	var frags []*cluster.Fragment
	for _, s := range read {
		frags = append(frags, s.Fragments...)
	}
	return cluster.JoinWithin(b, frags...)
}

// repeats reports whether a name is there twice.
func repeats(names []string) bool {
	return len(slices.Compact(slices.Sorted(slices.Values(names)))) < len(names)
}

// maxName is the longest name of a file that systems take; hostlists before a = are shorter.
const maxName = 4096

// sources reads one word: a folder of everything that a site has is one source a file.
func (e *Env) sources(ctx context.Context, b *cluster.Budget, word string) ([]input.Source, error) {
	if len(word) > maxName || strings.ContainsRune(word, 0) {
		return nil, fmt.Errorf("%.60q: expected the name of a preset or a file, of at most %d bytes and none of them zero",
			word, maxName)
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
	return []input.Source{s}, err
}

// nameOf names a cluster whose sources do not: by its only host, or by the first
// file.
func nameOf(words []string, c *cluster.Cluster) string {
	switch {
	case len(words) > 0 && words[0] != "-":
		base := filepath.Base(words[0][strings.IndexByte(words[0], '=')+1:])
		return strings.TrimSuffix(base, filepath.Ext(base))
	case len(c.Hosts) == 1:
		return c.Hosts[0].Name
	}
	return ""
}

// source reads one word: [HOSTLIST=]FILE[:COUNT], PRESET[:COUNT], FOLDER or -.
func (e *Env) source(b *cluster.Budget, word string) (input.Source, error) {
	s := input.Source{Word: word}
	hosts, name, err := e.cutHosts(b, word)
	if err != nil {
		return s, err
	}
	name, count, err := e.cutCount(name)
	if err != nil {
		return s, err
	}
	if len(hosts) > 0 && count > 0 && count != len(hosts) {
		return s, fmt.Errorf("%s: %s before the =, %d by the :%d; leave one of them out", word,
			wording.Plural(len(hosts), "host"), count, count)
	}
	s.Hosts, s.Counted = hosts, count > 0
	if s.Fragments, s.Preset, err = e.open(b, hosts, name, max(count, len(hosts))); err != nil ||
		s.Preset && len(hosts) == 0 {
		return s, err
	}
	for _, f := range s.Fragments {
		if len(hosts) > 0 {
			if err := nameHosts(b, f, hosts); err != nil {
				return s, fmt.Errorf("%s: %w", word, err)
			}
		}
	}
	if count > 0 && len(hosts) == 0 {
		s.Fragments, err = repeat(b, s.Fragments, name, count)
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
		return "", 0, fmt.Errorf("%s: after the colon %q; expected a number of nodes from 1 to %d", name, name[i+1:],
			hardware.MaxNodes)
	}
	if n > 1 && hardware.IsGPU(name[:i]) { // a100:4 are GPUs of one machine, 1xa100:4 are machines
		return fmt.Sprintf("%dx%s", n, name[:i]), 0, nil
	}
	return name[:i], n, nil
}

// open reads a preset, a folder, a file or standard input.
func (e *Env) open(b *cluster.Budget, hosts []string, name string,
	count int,
) (frags []*cluster.Fragment, preset bool, err error) {
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
		if err := e.holds(name, count); err != nil {
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

// readAll reads a stream.
func readAll(b *cluster.Budget, name string, r io.Reader) (frags []*cluster.Fragment, err error) {
	err = unbroken(name, r, func(in io.Reader) (err error) {
		if frags, err = input.ReadWithin(b, name, in); b.Over() {
			err = failure.Cannot(err)
		}
		return err
	})
	return frags, err
}

// unbroken reads a stream. One that breaks off is not the input's fault.
func unbroken(name string, r io.Reader, read func(in io.Reader) error) error {
	in := &stream{r: r}
	err := read(in)
	if in.err != nil {
		return failure.Cannot(fmt.Errorf("%s: %w", name, in.err))
	}
	return err
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
func (e *Env) holds(preset string, nodes int) error {
	if e.Limits.GPUs == 0 {
		return nil
	}
	p := hardware.FindPreset(preset)
	if each := max(p.GPUs, p.NICs); nodes*each > e.Limits.GPUs {
		return failure.Cannot(fmt.Errorf("%s:%d: %d nodes of %d GPUs or NICs; expected at most %d nodes here", preset, nodes,
			nodes, each, e.Limits.GPUs/each))
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
	hosts := make([]cluster.Host, count)
	for i := range hosts {
		hosts[i] = cluster.Host{Name: fmt.Sprintf("node%d", i), Type: c.Hosts[0].Type}
	}
	c.Hosts = hosts
	f := &cluster.Fragment{Format: frags[0].Format, Source: name, Cluster: *c}
	f.Sources = nil
	return []*cluster.Fragment{f}, b.Keep(f)
}

// maxFiles bounds a folder.
const maxFiles = 100000

// eachFile gives a file, or every file of a folder, to read. What may not be read in a folder is named and passed over;
// what names the folder that should have been given instead.
func (e *Env) eachFile(ctx context.Context, name, what string, read func(path string, inFolder bool) error) error {
	info, err := fs.Stat(e.files(), name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing{fmt.Errorf("%s: no such file or folder", name)}
	case err != nil:
		return failure.Cannot(err)
	}
	defer e.working("reading " + name)()
	if !info.IsDir() {
		return read(name, false)
	}
	files := 0
	return e.walk(name, func(path string, folder bool, err error) error {
		if err == nil && !folder {
			if files++; files > maxFiles {
				return fmt.Errorf("%s: more than %d files; give the folder of %s", name, maxFiles, what)
			}
			err = read(path, true)
		}
		if errors.Is(err, fs.ErrPermission) {
			e.note(path + ": may not be read; left out")
			err = nil
		}
		if err == nil {
			err = ctx.Err()
		}
		return err
	})
}

// eachInput gives standard input, a file, or every file of a folder to read, as eachFile does.
func (e *Env) eachInput(ctx context.Context, name, what string,
	read func(path string, in io.Reader, inFolder bool) error,
) error {
	if name == "-" {
		return read("standard input", e.stdin(), false)
	}
	return e.eachFile(ctx, name, what, func(path string, inFolder bool) error {
		f, err := e.files().Open(path)
		if err != nil {
			return failure.Cannot(err)
		}
		defer f.Close()
		return read(path, f, inFolder)
	})
}

// walk visits a folder: the folders in it before their files. Links to files elsewhere count, as in the folders of
// containers' logs; those to folders do not, for they may go round. A visit of a folder that returns fs.SkipDir leaves
// it out.
func (e *Env) walk(name string, visit func(path string, folder bool, err error) error) error {
	if _, ok := e.files().(machineFiles); !ok {
		return fs.WalkDir(e.files(), name, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.Type().IsRegular() && !d.IsDir() {
				return nil
			}
			return visit(path, d != nil && d.IsDir(), err)
		})
	}
	root := name
	if to, err := filepath.EvalSymlinks(name); err == nil {
		root = to
	}
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		path = filepath.Join(name, strings.TrimPrefix(path, root))
		switch {
		case err != nil || d.IsDir():
		case d.Type()&fs.ModeSymlink != 0:
			if !fileElsewhere(path, root) {
				return nil
			}
		case !d.Type().IsRegular():
			return nil
		}
		return visit(path, d != nil && d.IsDir(), err)
	})
}

// fileElsewhere reports a link to a file that the walk through root does not meet
// by itself.
func fileElsewhere(link, root string) bool {
	to, err := filepath.EvalSymlinks(link)
	if err != nil {
		return false
	}
	if info, err := os.Stat(to); err != nil || !info.Mode().IsRegular() {
		return false
	}
	rel, err := filepath.Rel(root, to)
	return err != nil || rel == ".." || strings.HasPrefix(rel, "../")
}

// siteFolder reads everything that a folder holds of a site: every file of a known format, and folders in it that are a
// copy of a machine's /sys. Files of other formats are left out and said so.
func (e *Env) siteFolder(ctx context.Context, b *cluster.Budget, dir string) ([]input.Source, error) {
	var list []input.Source
	known, files := 0, 0
	err := e.walk(dir, func(path string, folder bool, err error) error {
		rel, relErr := filepath.Rel(dir, path)
		s := input.Source{Word: path, In: filepath.ToSlash(rel)}
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
			if f, err = e.openFolder(input.HostOf(path+"."), path); err == nil {
				s.Fragments = []*cluster.Fragment{f}
			}
		default:
			if files++; files > maxFiles {
				return fmt.Errorf("%s: more than %d files; give the folder of the site's outputs", dir, maxFiles)
			}
			s.Fragments, _, err = e.open(b, nil, path, 0)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s.LeftOut = strings.TrimPrefix(err.Error(), path+": ")
			if errors.Is(err, input.ErrUnknown) {
				s.LeftOut = "no known format in it"
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
		return nil, fmt.Errorf("%s: neither a machine's /sys nor a file of a known format in it (%s)", dir,
			wording.Plural(files, "file"))
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

// readCopy reads a cluster's written form: what is assumed of a copy does not change the caller's.
func readCopy(b *cluster.Budget, name string, c *cluster.Cluster) ([]*cluster.Fragment, error) {
	if err := checkValue(c); err != nil {
		return nil, fmt.Errorf("Env.Clusters[%q]: %w", name, err)
	}
	var text bytes.Buffer
	if err := clusterfile.Write(&text, c); err != nil {
		return nil, fmt.Errorf("Env.Clusters[%q]: %w", name, err)
	}
	return readAll(b, name, &text)
}

// checkValue refuses a cluster that was assembled wrongly, in words of the value: a reader of its written form would
// speak of lines.
func checkValue(c *cluster.Cluster) error {
	if c == nil {
		return errors.New("nil; expected a *cluster.Cluster, as LoadCluster gives it")
	}
	for i, t := range c.Types {
		if t == nil || len(t.Devices) == 0 {
			return fmt.Errorf("type %d has no devices; hardware.Node makes types", i)
		}
	}
	for _, h := range c.Hosts {
		if h.Type >= len(c.Types) {
			return fmt.Errorf("host %.60q: type %d of %d; expected an index of Types, or -1 where it is unknown", h.Name, h.Type,
				len(c.Types))
		}
	}
	return nil
}

// LoadCluster reads the cluster of sources as busbar map takes them (files in any known format, presets with an
// optional number of nodes, folders, -), joined into one; none is the machine itself.
func LoadCluster(ctx context.Context, env Env, sources ...string) (*cluster.Cluster, error) {
	return env.load(ctx, sources)
}

// placement is who takes part: a cluster, the layouts on it, and what its source does not say.
type placement struct {
	cluster, layout, compare string
	devices                  string // of every node
	gpu, nic                 string
	set                      []string // what else is changed of the cluster
	mapped                   bool     // the cluster itself is what is asked about
	least                    int      // nodes, where the source does not say how many there are
}

// shape is a layout as asked for; no nodes are all GPUs.
type shape struct {
	text        string
	nodes, gpus int
	hosts       []string // that it is on; none is the cluster's in their order
	devices     string   // GPUs of every node that take part; "" are the first
}

// shapes are the layouts: one, or those to compare.
func (p *placement) shapes() ([]shape, error) {
	if p.compare != "" && p.layout != "" {
		return nil, fmt.Errorf("-l and --compare: expected one of them; add %s to --compare", p.layout)
	}
	texts := []string{p.layout}
	if p.compare != "" {
		if texts = strings.Split(p.compare, ","); len(texts) < 2 {
			return nil, fmt.Errorf("--compare %s; expected at least two layouts: 1x4,2x2", p.compare)
		}
		for i, text := range texts {
			if strings.TrimSpace(text) == "" || slices.Contains(texts[:i], text) {
				return nil, fmt.Errorf("--compare %s; an empty layout or one that is there twice; expected 1x4,2x2", p.compare)
			}
		}
	}
	devices, err := parseDevices(p.devices)
	if err != nil {
		return nil, err
	}
	var list []shape
	for _, t := range texts {
		s := shape{devices: p.devices}
		if t != "" {
			if s.nodes, s.gpus, err = predict.ParseLayout(t); err != nil {
				if p.compare != "" {
					return nil, failure.In("compare", err)
				}
				return nil, failure.In("layout", err)
			}
			s.text = fmt.Sprintf("%dx%d", s.nodes, s.gpus)
			if n := len(devices); n > 0 && (n < s.gpus || n > s.gpus && p.compare == "") {
				return nil, failure.In("devices", fmt.Errorf("--devices %s names %s; the layout %s has %d of each node",
					p.devices, wording.Plural(n, "GPU"), s.text, s.gpus))
			}
		}
		list = append(list, s)
	}
	return list, nil
}

// parseDevices reads numbers of GPUs: 2,3 or 0-3.
func parseDevices(text string) (list []int, err error) {
	if text == "" {
		return nil, nil
	}
	words, err := cluster.ParseHosts("gpu[" + text + "]")
	for _, w := range words {
		n, bad := strconv.Atoi(strings.TrimPrefix(w, "gpu"))
		if err = cmp.Or(err, bad); slices.Contains(list, n) {
			err = fmt.Errorf("%d is there twice", n)
		}
		list = append(list, n)
	}
	if err != nil {
		return nil, fmt.Errorf("--devices %.40q: %w; expected numbers of GPUs of a node, such as 2,3 or 0-3", text, err)
	}
	return list, nil
}

// ranks are those of a layout, and its name.
func (s shape) ranks(cl *cluster.Cluster) (nccl.Layout, string, error) {
	switch {
	case s.devices != "" || slices.ContainsFunc(cl.Types, func(t *cluster.NodeType) bool { return t.Trays > 1 }):
		l, name, err := s.onNodes(cl)
		return l, name, failure.In("layout", err)
	case len(s.hosts) > 0:
		return s.onNames(cl)
	case s.nodes > 0:
		l, err := nccl.Block(cl, s.nodes, s.gpus)
		return l, s.text, failure.In("layout", err)
	}
	return predict.AllGPUs(cl)
}

// onNodes are the ranks of a layout where nodes are not hosts, or not all of their GPUs are there to be taken: nodes of
// a rack are its trays, as schedulers count them.
func (s shape) onNodes(cl *cluster.Cluster) (l nccl.Layout, name string, err error) {
	devices, err := parseDevices(s.devices)
	if err != nil {
		return nil, "", err
	}
	all := plan.NodesFor(cl, 0)
	if len(s.hosts) > 0 {
		found, strange := all.Named(s.hosts)
		if len(strange) > 0 {
			return nil, "", noHostOf(cl, strange[0])
		}
		all = found
	}
	nodes, most := 0, 0
	for i, take := range all.Ranks {
		if s.nodes > 0 && nodes == s.nodes {
			break
		}
		if len(devices) > 0 {
			if take, err = chosen(take, devices); err != nil {
				return nil, "", fmt.Errorf("--devices: %s %w", all.Names[i], err)
			}
		}
		most = max(most, len(take))
		if len(take) < s.gpus {
			continue
		}
		if s.nodes > 0 {
			take = take[:s.gpus]
		}
		nodes++
		if l = append(l, take...); len(l) > predict.MaxRanks {
			return nil, "", predict.ErrTooMany
		}
	}
	switch {
	case nodes < max(s.nodes, 1):
		return nil, "",
			fmt.Errorf("layout %dx%d: %s has %s of at most %s to take; a node of a rack is a tray", s.nodes, s.gpus,
				cl.Name, wording.Plural(len(all.Ranks), "node"), wording.Plural(most, "GPU"))
	case len(l) == nodes*most:
		return l, fmt.Sprintf("%dx%d", nodes, most), nil
	case s.nodes > 0:
		return l, s.text, nil
	}
	return l, "all", nil
}

// chosen are the GPUs of a node by their numbers.
func chosen(gpus nccl.Layout, devices []int) (l nccl.Layout, err error) {
	for _, d := range devices {
		if d >= len(gpus) {
			return nil, fmt.Errorf("has %s, numbered from 0; %d is none of them", wording.Plural(len(gpus), "GPU"), d)
		}
		l = append(l, gpus[d])
	}
	return l, nil
}

// perHost is how many nodes a host of the cluster's first type is, and the GPUs of each: a rack is its trays.
func perHost(cl *cluster.Cluster) (nodes, gpus int) {
	if len(cl.Hosts) == 0 || cl.TypeOf(0) == nil {
		return 1, 0
	}
	t := cl.TypeOf(0)
	nodes = max(1, t.Trays)
	return nodes, t.Count(cluster.GPU) / nodes
}

// load reads the cluster, with what its source does not say filled in. A preset or a file about one node that does not
// say how many there are gets as many as the layouts ask for.
func (p *placement) load(ctx context.Context, e *Env, shapes []shape) (*cluster.Cluster, error) {
	cl, err := p.enough(ctx, e, shapes)
	if err != nil {
		return nil, err
	}
	return p.assume(e, cl, shapes)
}

// loadGPUs reads the cluster as load does, and refuses one without GPUs before anything is assumed of it.
func (p *placement) loadGPUs(ctx context.Context, e *Env, shapes []shape) (*cluster.Cluster, error) {
	if err := p.tooMany(ctx, e, shapes); err != nil {
		return nil, err
	}
	cl, err := p.enough(ctx, e, shapes)
	if err != nil {
		return nil, err
	}
	if err := p.requireGPUs(cl); err != nil {
		return nil, err
	}
	return p.assume(e, cl, shapes)
}

// shapedGPUs reads the layouts and the cluster that has the GPUs for them.
func (p *placement) shapedGPUs(ctx context.Context, e *Env) ([]shape, *cluster.Cluster, error) {
	shapes, err := p.shapes()
	if err != nil {
		return nil, nil, err
	}
	cl, err := p.loadGPUs(ctx, e, shapes)
	return shapes, cl, err
}

// predictor predicts on the one layout, by a release of NCCL; name is what the layout is called.
func (p *placement) predictor(ctx context.Context, e *Env, release string) (x *predict.Predictor, name string,
	err error,
) {
	version, err := e.parseNCCL(release)
	if err != nil {
		return nil, "", err
	}
	shapes, cl, err := p.shapedGPUs(ctx, e)
	if err != nil {
		return nil, "", err
	}
	l, name, err := shapes[0].ranks(cl)
	if err != nil {
		return nil, "", err
	}
	if release == "" {
		version = predict.CalibratedRelease(cl, version)
	}
	x, err = predict.New(cl, l, version, nil, nil)
	return x, name, err
}

func (p *placement) enough(ctx context.Context, e *Env, shapes []shape) (*cluster.Cluster, error) {
	need := p.least
	for _, s := range shapes {
		need = max(need, s.nodes)
	}
	return LoadAtLeast(ctx, *e, p.cluster, need)
}

// tooMany refuses all GPUs of a preset where they are more than a layout may have, before they are made.
func (p *placement) tooMany(ctx context.Context, e *Env, shapes []shape) error {
	if !slices.ContainsFunc(shapes, func(s shape) bool { return s.nodes == 0 }) {
		return nil
	}
	hosts, name, err := e.cutHosts(e.budget(ctx), p.cluster)
	if err != nil {
		return nil // loading says so
	}
	name, count, err := e.cutCount(name)
	if err != nil || e.exists(name) {
		return nil
	}
	x := hardware.FindPreset(name)
	if n := max(count, len(hosts)); n*x.GPUs > predict.MaxRanks {
		return fmt.Errorf("%d nodes of %d GPUs: %w", n, x.GPUs, predict.ErrTooMany)
	}
	return nil
}

// LoadAtLeast reads a cluster as LoadCluster does. A preset or a file about one node that does not say how many nodes
// there are gets as many as are needed.
func LoadAtLeast(ctx context.Context, e Env, word string, need int) (*cluster.Cluster, error) {
	var given []string
	if word != "" {
		given = []string{word}
	}
	cl, err := e.load(ctx, given)
	if err == nil {
		trays, _ := perHost(cl)
		need = (need + trays - 1) / trays
	}
	if err != nil || need <= len(cl.Hosts) || len(given) == 0 || word == "-" || need > hardware.MaxNodes {
		return cl, err
	}
	if _, count, err := e.cutCount(word); err != nil || count > 0 {
		return cl, err
	}
	s, err := e.source(e.budget(ctx), word)
	if err != nil || !s.Preset && len(cl.Hosts) != 1 {
		return cl, err
	}
	if hardware.IsGPU(word) {
		word = "1x" + word
	}
	quiet := e
	quiet.Verbose = nil
	more, err := quiet.load(ctx, []string{fmt.Sprintf("%s:%d", word, need)})
	if err != nil {
		return nil, err
	}
	if !s.Preset {
		e.note(fmt.Sprintf("%s is about one node; taken as %d such nodes", word, need))
	}
	more.Name = cl.Name
	return more, nil
}

// assume fills what the cluster's source does not say, and notes it. NICs that are known become what is given: that is
// a question about another network.
func (p *placement) assume(e *Env, cl *cluster.Cluster, shapes []shape) (*cluster.Cluster, error) {
	g := predict.Given{GPU: p.gpu}
	var other predict.NICs
	if p.nic != "" {
		var err error
		if g.NIC, err = predict.ParseNICs(p.nic); err != nil {
			return nil, fmt.Errorf("--nic: %w", err)
		}
		if len(cl.Hosts) > 0 && cl.TypeOf(0) != nil {
			if rate, _ := step.NodePorts(cl.TypeOf(0)); rate > 0 {
				g.NIC, other = other, g.NIC
			}
		}
	}
	if e.loaded != nil {
		e.loaded(cl)
	}
	nets := p.mapped && p.nic != "" ||
		slices.ContainsFunc(shapes, func(s shape) bool { return s.nodes != 1 }) && len(cl.Hosts) > 1
	if p.nic != "" && !nets {
		return nil, errors.New("--nic has no effect: one node takes part, and nothing leaves it; leave it out, or take two " +
			"nodes or more: -l 2x1, of a cluster that has them")
	}
	notes, err := predict.Assume(cl, g, nets)
	e.note(notes...)
	if err != nil {
		return cl, err
	}
	var changed []string
	vary := func(flag, value, text string) {
		if err == nil {
			changed = append(changed, text)
			if cl, err = step.Vary(cl, text); err != nil {
				err = fmt.Errorf("%s %s: %w", flag, value, err)
			}
		}
	}
	if p.gpu != "" {
		vary("--gpu", p.gpu, "gpu="+p.gpu)
	}
	if other.Rate > 0 {
		text := fmt.Sprintf("network.gbps=%g", other.Rate.Gbps())
		if other.Count > 0 {
			text = fmt.Sprintf("nics=%d,%s", other.Count, text)
		}
		vary("--nic", p.nic, text)
	}
	for i, text := range p.set {
		key, _, _ := strings.Cut(text, "=")
		if slices.ContainsFunc(p.set[:i], func(s string) bool { return strings.HasPrefix(s, key+"=") }) {
			return nil, fmt.Errorf("--set %s: %s is set twice; leave one out", text, key)
		}
		if !nets && !p.mapped && err == nil && step.OfNetwork(text) {
			return nil, fmt.Errorf("--set %s has no effect: one node takes part, and nothing leaves it; leave it out", text)
		}
		vary("--set", text, text)
	}
	if err == nil && !p.mapped {
		e.notes.resolved(newResolvedCluster(cl, changed))
	}
	return cl, err
}

// requireGPUs refuses a cluster without GPUs, which is mostly the machine that somebody sits at.
func (p *placement) requireGPUs(cl *cluster.Cluster) error {
	for h := range cl.Hosts {
		if t := cl.TypeOf(h); t != nil && t.Count(cluster.GPU) > 0 {
			return nil
		}
	}
	if p.cluster != "" {
		if named := len(cl.Hosts); named > 0 && cl.Hosts[0].Type < 0 {
			return fmt.Errorf("-c %s: it names %s and not what they are; busbar map %s HOSTLIST=PRESET -o site.yaml says it "+
				"(%.80s=dgx-h100), then -c site.yaml", p.cluster, wording.Plural(named, "node"), p.cluster, hostNames(cl))
		}
		return fmt.Errorf("-c %s: no node of it has a GPU; nothing to predict", p.cluster)
	}
	return fmt.Errorf("no cluster given, and this machine (%s) has no GPU; give one with -c: a preset (busbar list "+
		"presets lists them), a cluster file, or any file that busbar map reads", cl.Name)
}

// hostNames are a cluster's hosts as a hostlist.
func hostNames(cl *cluster.Cluster) string {
	var names []string
	for _, h := range cl.Hosts[:min(len(cl.Hosts), 64)] {
		names = append(names, h.Name)
	}
	return cluster.FormatHosts(names)
}

// nodesOf is how many nodes a layout has, as it counts them: hosts, or trays of a rack.
func nodesOf(cl *cluster.Cluster, l nccl.Layout) int {
	if trays, gpus := perHost(cl); trays > 1 && gpus > 0 {
		seen := map[[2]int]bool{}
		for _, r := range l {
			seen[[2]int{r.Host, cl.TypeOf(r.Host).Devices[r.GPU].Tray}] = true
		}
		return len(seen)
	}
	return hostsOf(l)
}

// hostsOf is how many hosts a layout has.
func hostsOf(l nccl.Layout) int {
	seen := map[int]bool{}
	for _, r := range l {
		seen[r.Host] = true
	}
	return len(seen)
}

// parseSettings are settings of NCCL by name, all of which predictions follow.
func parseSettings(list []string) (map[string]string, error) {
	settings := map[string]string{}
	for _, s := range list {
		k, v, ok := strings.Cut(s, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("--env %s; expected KEY=VALUE", s)
		}
		settings[k] = v
	}
	if idle := predict.EnvironmentNotes(settings); len(idle) > 0 {
		return nil, fmt.Errorf("--env: %s; leave it out", strings.Join(idle, "; "))
	}
	return settings, nil
}

// parseNCCL is a release of NCCL; nothing is the newest known.
func (e *Env) parseNCCL(text string) (nccl.Version, error) {
	if text == "" {
		return nccl.Newest, nil
	}
	v, err := nccl.ParseVersion(text)
	if err == nil {
		return v, nil
	}
	if near, ok := nccl.Nearest(text); ok {
		e.note(fmt.Sprintf("the rules of NCCL %.20s are not known; those of %s are taken, which is nearest", text, near))
		return near, nil
	}
	return v, fmt.Errorf("--nccl: %w", err)
}

// checkTuner refuses the tuner plugin where NCCL loads none.
func checkTuner(asked bool, v nccl.Version) error {
	if asked && !v.TunerPlugins() {
		return fmt.Errorf("--tuner with NCCL %s: NCCL loads tuner plugins from 2.19 on; expected a newer --nccl, or leave "+
			"--tuner out", v)
	}
	return nil
}
