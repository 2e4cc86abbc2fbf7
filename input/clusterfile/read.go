package clusterfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
	"busbar.dev/internal/yamldoc"
	"busbar.dev/unit"
)

// Limits on what a file may cost. Hosts are lists, so a file of this size
// describes more nodes than exist.
const (
	maxFile  = 64 << 20
	maxCount = 1_000_000
)

// format names the source in messages.
const format = "cluster file"

var (
	yamlHosts = lazyre.New(`(?m)(^|[-{,[])[ \t]*"?(hosts?|count|gpus|preset)"?:`)
	yamlEmpty = lazyre.New(`(?m)^nodes:[ \t]*\[[ \t]*\]`) // as Write has it where no host is known
	jsonEmpty = lazyre.New(`"nodes"\s*:\s*\[\s*\]`)
	firstKey  = lazyre.New(`^(?:[ \t]*(?:#[^\n]*)?\r?\n|---[ \t]*\r?\n)*[a-z_]+:`) // after comments and empty lines
	foreign   = lazyre.New(`(?m)^[ \t]*(apiVersion|kind): *\S*(/|Node|List|Cluster|Job)`)
)

// Match reports whether the text is a cluster file, or the JSON of one. A YAML
// text with keys of ours at its beginning is taken as one even when it is wrong,
// so that the error can say what is wrong with it.
func Match(data []byte) bool {
	if isJSON(data) {
		if !lines.Has(data, `"nodes"`) || lines.Has(data, `"apiVersion"`) {
			return false
		}
		return lines.Has(data, `"hosts"`) || lines.Has(data, `"version"`) && jsonEmpty.Match(data)
	}
	// The plain search first: the expressions are slow on long texts.
	if len(data) > maxFile || !topLevel(data, "nodes:", "node:", "hosts:", "types:", "network:") {
		return false
	}
	return (yamlHosts.Match(data) || yamlEmpty.Match(data)) && !foreign.Match(data)
}

// Resembles reports a YAML text that has a key of ours at its first level and nothing else that Match looks for, as
// where a key below is misspelt.
func Resembles(data []byte) bool {
	return len(data) <= maxFile && firstKey.Match(data) && topLevel(data, "nodes:", "types:", "network:") &&
		!foreign.Match(data)
}

// topLevel reports whether a line begins with one of the keys.
func topLevel(data []byte, keys ...string) bool {
	return slices.ContainsFunc(keys,
		func(k string) bool { return bytes.HasPrefix(data, []byte(k)) || lines.Has(data, "\n"+k) })
}

func isJSON(data []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) }

// Read reads a cluster file.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	return ReadWithin(cluster.NewBudget(cluster.Limits{}, nil), name, r)
}

// ReadWithin reads a cluster file that may cost so much.
func ReadWithin(b *cluster.Budget, name string, r io.Reader) (*cluster.Fragment, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: larger than %d MiB; list hosts as hostlists, e.g. gpu[001-512]", name, maxFile>>20)
	}
	var c *cluster.Cluster
	if isJSON(data) && lines.Has(data, `"version"`) {
		c, err = readJSON(b, data) // what busbar map --json wrote
	} else {
		c, err = readYAML(b, string(data))
	}
	if err != nil {
		return nil, fmt.Errorf("%s:%w", name, err)
	}
	return &cluster.Fragment{Format: format, Source: name, Cluster: *c}, nil
}

func readJSON(b *cluster.Budget, data []byte) (*cluster.Cluster, error) {
	var d cluster.Document
	if err := json.Unmarshal(unit.InSeconds(data), &d); err != nil {
		var syntax *json.SyntaxError
		line := 1
		if errors.As(err, &syntax) {
			line += bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n"))
		}
		return nil, fmt.Errorf("%d: %w", line, err)
	}
	c, err := d.ClusterWithin(b)
	if err != nil {
		return nil, fmt.Errorf(" %w", err)
	}
	return c, nil
}

func readYAML(b *cluster.Budget, text string) (*cluster.Cluster, error) {
	docs, err := yamldoc.Parse(text)
	if err != nil {
		return nil, yamlError(err)
	}
	if len(docs) > 1 {
		return nil, fmt.Errorf("%d: %d YAML documents; a cluster file is one", docs[1].Line, len(docs))
	}
	r := &reading{budget: b, file: &file{}, doc: &yamldoc.Value{Line: 1}}
	if len(docs) == 1 {
		r.doc = &docs[0]
	}
	if err := yamldoc.Decode(r.doc, r.file); err != nil {
		return nil, yamlError(err)
	}
	return r.cluster()
}

// ofType is a key of a type that stands under nodes.
var ofType = lazyre.New(
	`^nodes\[\d+\]\.(preset|gpus|nvlink|nics|sockets|cores_per_socket|gpus_per_switch|mtu|devices)$`)

// yamlError puts the line first, as all errors of a file have it.
func yamlError(err error) error {
	var at *yamldoc.Error
	if !errors.As(err, &at) {
		return fmt.Errorf(" %w", err)
	}
	if at.Path != "" {
		hint := ""
		if ofType.MatchString(at.Path) {
			hint = "; it belongs to a type (types: NAME: gpus: 4 x A100-SXM4-80GB), and nodes name the type (type: NAME)"
		}
		return fmt.Errorf("%d: %s: %s%s", at.Line, at.Path, at.Text, hint)
	}
	return fmt.Errorf("%d: %s", at.Line, at.Text)
}

// reading turns the form into the model and knows where each part stands.
type reading struct {
	budget *cluster.Budget
	file   *file
	doc    *yamldoc.Value
	out    cluster.Cluster
	// types maps a name used under nodes to the type's index.
	types map[string]int
	hosts map[string]int
}

// inner is a place that an error of the model starts with, inside the value it is
// about: "links[3]: ", "devices[0] gpu0: ", "gpus: ".
var inner = lazyre.New(`^(\w+)(?:\[(\d+)\](?: [^ :]+)?)?: `)

// errAt is an error about the value at a path of keys and positions, or about a
// value inside it that the error names.
func (r *reading) errAt(err error, path ...any) error {
	text := err.Error()
	for m := inner.FindStringSubmatch(text); m != nil; m = inner.FindStringSubmatch(text) {
		next := append(path[:len(path):len(path)], m[1])
		if i, err := strconv.Atoi(m[2]); err == nil {
			next = append(next, i)
		}
		if _, _, ok := r.doc.Place(next...); ok {
			path = next
		} else if len(path) == 0 || m[1] != path[len(path)-1] {
			break
		}
		text = text[len(m[0]):]
	}
	line, name, _ := r.doc.Place(path...)
	return fmt.Errorf("%d: %s: %s", line, name, text)
}

func (r *reading) cluster() (*cluster.Cluster, error) {
	f := r.file
	if f.Version > cluster.FormatVersion {
		return nil,
			r.errAt(fmt.Errorf("%d: this busbar reads versions up to %d; use a newer one", f.Version, cluster.FormatVersion),
				"version")
	}
	r.types, r.hosts = map[string]int{}, map[string]int{}
	r.out.Name = f.Name
	// Switches alone, or benchmarks, are a cluster of which no node is known: then
	// the file says so.
	if n := r.doc.Get("nodes"); len(f.Nodes) == 0 && (n == nil || n.Kind != yamldoc.List) {
		return nil,
			r.errAt(errors.New("no nodes; expected a list such as\n  - hosts: gpu[001-016]\n    type: dgx-h100"), "nodes")
	}
	for i := range f.Nodes {
		if err := r.nodes(i); err != nil {
			return nil, err
		}
	}
	if err := r.out.AddRecords(r.budget, &f.Records, f.Unavailable, r.hosts); err != nil {
		return nil, r.errAt(err)
	}
	if err := r.network(); err != nil {
		return nil, err
	}
	return &r.out, nil
}

func (r *reading) nodes(i int) error {
	n := &r.file.Nodes[i]
	switch {
	case n.Hosts != "" && n.Count != 0:
		return r.errAt(errors.New("both hosts and count; give one"), "nodes", i)
	case strings.ContainsAny(n.Hosts, "{}*?$()\"'"):
		return r.errAt(fmt.Errorf("%q is no host name; ranges are written in square brackets: gpu[1-4]", n.Hosts), "nodes", i,
			"hosts")
	case n.Hosts == "" && (n.Count < 1 || n.Count > maxCount):
		return r.errAt(fmt.Errorf("count %d and no hosts; expected hosts: gpu[001-016], or a count from 1 to %d", n.Count,
			maxCount), "nodes", i)
	case n.Hosts == "":
		n.Hosts = fmt.Sprintf("node[%d-%d]", len(r.out.Hosts), len(r.out.Hosts)+n.Count-1)
	}
	if n.Type != "" {
		if _, err := r.typeIndex(n.Type); err != nil {
			if _, ok := r.file.Types[n.Type]; ok {
				return err // it says where in the type
			}
			return r.errAt(err, "nodes", i, "type")
		}
	}
	if err := r.out.AddNodes(r.budget, n.NodesDoc, r.types, r.hosts); err != nil {
		return r.errAt(err, "nodes", i)
	}
	return nil
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
			return -1, r.errAt(errors.New("empty; expected preset, gpus or devices"), "types", name)
		}
		if t, err = form.nodeType(name); err != nil {
			return -1, r.errAt(err, "types", name)
		}
		if err := r.noZeroLanes(name); err != nil {
			return -1, err
		}
	} else if t, err = hardware.Node(name); err != nil {
		return -1, fmt.Errorf("no type %q in this file and no such preset: %w", name, err)
	}
	if err := r.budget.TakeType(t); err != nil {
		return -1, err
	}
	r.types[name] = len(r.out.Types)
	r.out.Types = append(r.out.Types, t)
	return r.types[name], nil
}

// noZeroLanes refuses a width that is written as zero: the model has zero for
// what nobody said.
func (r *reading) noZeroLanes(typ string) error {
	for i, l := range r.doc.Get("types", typ, "links").List() {
		for _, key := range []string{"lanes", "max_lanes", "gts", "max_gts"} {
			v := l.Get(key)
			if v == nil {
				continue
			}
			if f, err := strconv.ParseFloat(v.Text, 64); err == nil && f == 0 {
				return r.errAt(errors.New("0; leave it out when it is unknown"), "types", typ, "links", i, key)
			}
		}
	}
	return nil
}
