package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"busbar/cluster"
	"busbar/hardware"
	"busbar/input"
	"busbar/input/sysfs"
	"busbar/report"
)

// load turns the words of a command line into a cluster: files, presets, folders,
// standard input, or this machine when there are none. Figures that no source
// gives are filled from the catalogue.
func (e *env) load(words []string, o common) (*cluster.Cluster, error) {
	var frags []*cluster.Fragment
	if len(words) == 0 {
		live, err := e.thisMachine(o)
		if err != nil {
			return nil, err
		}
		frags = live
	}
	for _, w := range words {
		f, err := e.source(w)
		if err != nil {
			return nil, err
		}
		if o.Verbose {
			for _, g := range f {
				fmt.Fprintf(e.stderr, "%s: read as %s\n", w, g.Format)
			}
		}
		frags = append(frags, f...)
	}
	c := cluster.Join(frags...)
	hardware.Complete(c)
	if c.Name == "" {
		c.Name = nameOf(words, c)
	}
	return c, nil
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
func (e *env) source(word string) ([]*cluster.Fragment, error) {
	if word == "-" {
		return input.Read("standard input", e.stdin)
	}
	host, name := "", word
	if h, rest, ok := strings.Cut(word, "="); ok && h != "" && !strings.ContainsAny(h, "/.") && !exists(word) {
		host, name = h, rest
	}
	name, count, err := cutCount(name)
	if err != nil {
		return nil, err
	}
	frags, err := e.open(host, name, count)
	if err != nil {
		return nil, err
	}
	for _, f := range frags {
		if host != "" {
			if err := nameHost(f, host); err != nil {
				return nil, fmt.Errorf("%s: %w", word, err)
			}
		}
	}
	if count > 0 {
		frags, err = repeat(frags, name, count)
	}
	return frags, err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// cutCount splits FILE:8. A name that exists as it stands has no count.
func cutCount(name string) (string, int, error) {
	i := strings.LastIndexByte(name, ':')
	if i < 0 || exists(name) {
		return name, 0, nil
	}
	n, err := strconv.Atoi(name[i+1:])
	if err != nil || n < 1 || n > hardware.MaxNodes {
		return "", 0, fmt.Errorf("%s: after the colon %q; expected a number of nodes from 1 to %d", name, name[i+1:], hardware.MaxNodes)
	}
	return name[:i], n, nil
}

// open reads a preset, a folder or a file.
func (e *env) open(host, name string, count int) ([]*cluster.Fragment, error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		f, err := sysfs.Read(host, os.DirFS(name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return []*cluster.Fragment{f}, nil
	case errors.Is(err, fs.ErrNotExist):
		c, perr := hardware.Preset(name, max(count, 1))
		if perr == nil && count == 0 {
			c, perr = hardware.Preset(name, 0)
		}
		if perr != nil {
			return nil, fmt.Errorf("%s: no such file, and as a preset: %w", name, perr)
		}
		return []*cluster.Fragment{{Cluster: *c}}, nil
	case err != nil:
		return nil, cannotError{err}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, cannotError{err}
	}
	defer f.Close()
	return input.Read(name, f)
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
// A preset has its count already.
func repeat(frags []*cluster.Fragment, name string, count int) ([]*cluster.Fragment, error) {
	if len(frags) == 1 && frags[0].Format == "" {
		return frags, nil
	}
	c := cluster.Join(frags...)
	if len(c.Hosts) != 1 {
		return nil, fmt.Errorf("%s:%d: the file describes %d nodes; a count is for a file about one", name, count, len(c.Hosts))
	}
	stem := "node"
	hosts := make([]cluster.Host, count)
	for i := range hosts {
		hosts[i] = cluster.Host{Name: fmt.Sprintf("%s%d", stem, i), Type: c.Hosts[0].Type}
	}
	c.Hosts = hosts
	f := &cluster.Fragment{Format: frags[0].Format, Source: name, Cluster: *c}
	f.Sources = nil
	return []*cluster.Fragment{f}, nil
}

// thisMachine reads /sys and asks the GPU tools that are installed.
func (e *env) thisMachine(o common) ([]*cluster.Fragment, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, cannotError{err}
	}
	f, err := sysfs.Read(host, os.DirFS("/"))
	if err != nil {
		return nil, cannotError{fmt.Errorf("this machine: %w", err)}
	}
	f.Source = "this machine"
	frags := []*cluster.Fragment{f}
	for _, tool := range [][]string{
		{"nvidia-smi", "-q", "-x"},
		{"nvidia-smi", "topo", "-m"},
		{"nvidia-smi", "topo", "-p2p", "r"},
		{"nvidia-smi", "nvlink", "--status"},
		{"rocm-smi", "--showtopo"},
	} {
		frags = append(frags, e.ask(host, tool, o, f)...)
	}
	return frags, nil
}

// toolTime bounds a child process; nvidia-smi on a sick driver can hang for ever.
const toolTime = 20 * time.Second

// ask runs an installed tool and reads what it prints. A tool that is not there
// is no news; one that fails is a warning.
func (e *env) ask(host string, tool []string, o common, to *cluster.Fragment) []*cluster.Fragment {
	path, err := exec.LookPath(tool[0])
	if err != nil {
		return nil
	}
	name := strings.Join(tool, " ")
	done := e.progress(o, "asking "+name)
	defer done()
	ctx, cancel := context.WithTimeout(e.ctx, toolTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, tool[1:]...).Output()
	if err != nil {
		to.Warnings = append(to.Warnings, cluster.Warning{Source: name, Text: fmt.Sprintf("gave no answer: %v", err)})
		return nil
	}
	if len(bytes.TrimSpace(out)) == 0 {
		return nil // nvidia-smi nvlink on a GPU without NVLink
	}
	frags, err := input.Read(name, bytes.NewReader(out))
	if err != nil {
		to.Warnings = append(to.Warnings, cluster.Warning{Source: name, Text: err.Error()})
		return nil
	}
	for _, f := range frags {
		if len(f.Hosts) == 1 {
			f.Hosts[0].Name = host
		}
	}
	return frags
}

// progress shows a line on a terminal while something takes its time; the
// function it returns takes it away again.
func (e *env) progress(o common, text string) func() {
	if o.Quiet || !isTerminal(e.stderr) {
		return func() {}
	}
	fmt.Fprintf(e.stderr, "\r\x1b[K%s …", text)
	return func() { fmt.Fprint(e.stderr, "\r\x1b[K") }
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// text is how text goes to w: colour and width only on a terminal.
func (e *env) text(w io.Writer) report.TextOptions {
	o := report.TextOptions{}
	if f, ok := w.(*os.File); ok && isTerminal(w) {
		o.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			o.Width = width
		}
	}
	return o
}

// writeFile writes a file whole or not at all.
func writeFile(name string, write func(io.Writer) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(name), ".busbar-*")
	if err != nil {
		return cannotError{err}
	}
	defer os.Remove(tmp.Name())
	if err := write(tmp); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Chmod(0o644); err != nil {
		tmp.Close()
		return cannotError{err}
	}
	if err := tmp.Close(); err != nil {
		return cannotError{err}
	}
	if err := os.Rename(tmp.Name(), name); err != nil {
		return cannotError{err}
	}
	return nil
}
