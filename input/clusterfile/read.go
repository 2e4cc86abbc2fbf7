package clusterfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"busbar/cluster"
	"busbar/hardware"
)

// Limits on what a file may cost. Hosts are lists, so a file of this size
// describes more nodes than exist.
const (
	maxFile    = 32 << 20
	maxAliases = 100
	maxCount   = 1_000_000
)

// format names the source in messages.
const format = "cluster file"

var (
	yamlNodes = regexp.MustCompile(`(?m)^nodes:[ \t]*(#.*)?\r?$|^nodes:[ \t]*\[`)
	yamlHosts = regexp.MustCompile(`(?m)^[ \t]*(-[ \t]+)?[{]?[ \t]*"?(hosts|count)"?:`)
	foreign   = regexp.MustCompile(`(?m)^[ \t]*(apiVersion|kind): *\S*(/|Node|List|Cluster|Job)`)
	alias     = regexp.MustCompile(`(?m)[:,\[-][ \t]*\*[A-Za-z0-9_]`)
)

// Match reports whether the text is a cluster file, or the JSON of one.
func Match(data []byte) bool {
	if isJSON(data) {
		head := data[:min(len(data), 1<<20)]
		return bytes.Contains(head, []byte(`"types"`)) && bytes.Contains(head, []byte(`"version"`)) && bytes.Contains(data, []byte(`"nodes"`))
	}
	// The plain search first: the expressions are slow on long texts.
	if len(data) > maxFile || !bytes.HasPrefix(data, []byte("nodes:")) && !bytes.Contains(data, []byte("\nnodes:")) {
		return false
	}
	return yamlNodes.Match(data) && yamlHosts.Match(data) && !foreign.Match(data)
}

func isJSON(data []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) }

// Read reads a cluster file.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: larger than %d MiB; list hosts as hostlists, e.g. gpu[001-512]", name, maxFile>>20)
	}
	var c *cluster.Cluster
	if isJSON(data) {
		c, err = readJSON(data)
	} else {
		c, err = readYAML(data)
	}
	if err != nil {
		return nil, fmt.Errorf("%s:%w", name, err)
	}
	return &cluster.Fragment{Format: format, Source: name, Cluster: *c}, nil
}

func readJSON(data []byte) (*cluster.Cluster, error) {
	var d cluster.Document
	if err := json.Unmarshal(data, &d); err != nil {
		var syntax *json.SyntaxError
		line := 1
		if errors.As(err, &syntax) {
			line += bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n"))
		}
		return nil, fmt.Errorf("%d: %w", line, err)
	}
	c, err := d.Cluster()
	if err != nil {
		return nil, fmt.Errorf(" %w", err)
	}
	return c, nil
}

func readYAML(data []byte) (*cluster.Cluster, error) {
	if n := len(alias.FindAllIndex(data, maxAliases+1)); n > maxAliases {
		return nil, fmt.Errorf(" more than %d YAML aliases; write the values out", maxAliases)
	}
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, yamlError(err)
	}
	if len(tree.Docs) > 1 {
		return nil, fmt.Errorf(" %d YAML documents; a cluster file is one", len(tree.Docs))
	}
	var f file
	if err := yaml.UnmarshalWithOptions(data, &f, yaml.Strict()); err != nil {
		return nil, yamlError(err)
	}
	return (&reading{file: &f, tree: tree}).cluster()
}

// yamlError keeps the parser's own message, which shows the line, and puts the
// line number in front where it belongs.
func yamlError(err error) error {
	text := yaml.FormatError(err, false, true)
	if m := regexp.MustCompile(`^\[(\d+):\d+\] `).FindStringSubmatch(text); m != nil {
		return fmt.Errorf("%s: %s", m[1], strings.TrimRight(text[len(m[0]):], "\n"))
	}
	return fmt.Errorf(" %s", strings.TrimRight(text, "\n"))
}

// reading turns the form into the model and knows where each part stands.
type reading struct {
	file *file
	tree *ast.File
	out  cluster.Cluster
	// types maps a name used under nodes to the type's index.
	types map[string]int
}

// errAt is an error about the value at a YAML path.
func (r *reading) errAt(path string, err error) error {
	if p, perr := yaml.PathString(path); perr == nil {
		if n, nerr := p.FilterFile(r.tree); nerr == nil && n != nil && n.GetToken() != nil {
			return fmt.Errorf("%d: %s: %w", n.GetToken().Position.Line, strings.TrimPrefix(path, "$."), err)
		}
	}
	return fmt.Errorf(" %s: %w", strings.TrimPrefix(path, "$."), err)
}

func (r *reading) cluster() (*cluster.Cluster, error) {
	f := r.file
	if f.Version > cluster.FormatVersion {
		return nil, r.errAt("$.version", fmt.Errorf("%d: this busbar reads versions up to %d; use a newer one", f.Version, cluster.FormatVersion))
	}
	r.types = map[string]int{}
	r.out = cluster.Cluster{Name: f.Name, Benches: f.Benches, Sources: f.Sources, Warnings: f.Warnings}
	if len(f.Nodes) == 0 {
		return nil, r.errAt("$.nodes", errors.New("no nodes; expected a list such as\n  - hosts: gpu[001-016]\n    type: dgx-h100"))
	}
	hosts := map[string]int{}
	for i := range f.Nodes {
		if err := r.nodes(i, hosts); err != nil {
			return nil, err
		}
	}
	for i, id := range f.Identities {
		h, ok := hosts[id.Host]
		if !ok {
			return nil, r.errAt(fmt.Sprintf("$.identities[%d].host", i), fmt.Errorf("no host %q under nodes", id.Host))
		}
		r.out.Hosts[h].IDs = append(r.out.Hosts[h].IDs, cluster.Identity{Device: id.Device, UUID: id.UUID, Port: id.Port, GUID: id.GUID, LID: id.LID, Counters: id.Counters})
	}
	if err := r.network(); err != nil {
		return nil, err
	}
	return &r.out, nil
}

func (r *reading) nodes(i int, hosts map[string]int) error {
	n := &r.file.Nodes[i]
	path := fmt.Sprintf("$.nodes[%d]", i)
	names, err := r.hostNames(n, path)
	if err != nil {
		return err
	}
	typ := -1
	if n.Type != "" {
		if typ, err = r.typeIndex(n.Type); err != nil {
			if _, ok := r.file.Types[n.Type]; ok {
				return err // it says where in the type
			}
			return r.errAt(path+".type", err)
		}
	}
	for _, name := range names {
		if _, ok := hosts[name]; ok {
			return r.errAt(path, fmt.Errorf("host %q is listed twice", name))
		}
		hosts[name] = len(r.out.Hosts)
		r.out.Hosts = append(r.out.Hosts, cluster.Host{Name: name, Type: typ})
	}
	return nil
}

func (r *reading) hostNames(n *nodesForm, path string) ([]string, error) {
	switch {
	case n.Hosts != "" && n.Count != 0:
		return nil, r.errAt(path, errors.New("both hosts and count; give one"))
	case n.Hosts != "":
		names, err := cluster.ParseHosts(n.Hosts)
		if err != nil {
			return nil, r.errAt(path+".hosts", err)
		}
		return names, nil
	case n.Count < 1 || n.Count > maxCount:
		return nil, r.errAt(path, fmt.Errorf("count %d and no hosts; expected hosts: gpu[001-016], or a count from 1 to %d", n.Count, maxCount))
	}
	names := make([]string, n.Count)
	for i := range names {
		names[i] = fmt.Sprintf("node%d", len(r.out.Hosts)+i)
	}
	return names, nil
}

// typeIndex finds or makes the type of a name: the file's own first, then a preset.
func (r *reading) typeIndex(name string) (int, error) {
	if i, ok := r.types[name]; ok {
		return i, nil
	}
	var t *cluster.NodeType
	var err error
	if form, ok := r.file.Types[name]; ok {
		if form == nil {
			return -1, r.errAt("$.types."+name, errors.New("empty; expected preset, gpus or devices"))
		}
		if t, err = form.nodeType(name); err != nil {
			return -1, r.errAt("$.types."+name, err)
		}
	} else if t, err = hardware.Node(name); err != nil {
		return -1, fmt.Errorf("no type %q in this file and no such preset: %w", name, err)
	}
	r.types[name] = len(r.out.Types)
	r.out.Types = append(r.out.Types, t)
	return r.types[name], nil
}
