// Package k8s reads what Kubernetes knows about a cluster's topology and writes
// networks as node labels.
//
// It reads Node objects ("kubectl get nodes -o yaml" or "-o json", one node, a list or several documents; "kubectl
// describe node") and Kueue's manifests, of which a Topology says which labels are levels. Labels that
// name switches become switches, labels that name other groupings (accelerator domains, racks, zones) become groupings,
// and capacities and GPU labels become devices. Manifests without nodes are no error: the levels are a warning. Other
// kinds of object are ignored. YAML anchors and aliases are refused.
package k8s

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/warn"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/switchtree"
	"busbar.dev/internal/yamldoc"
)

const (
	kueue           = "kueue.x-k8s.io/"
	formatNodes     = "Kubernetes nodes"
	formatManifests = "Kubernetes topology manifests"
)

// Parts of objects that are long and say nothing of topology.
var skipped = strings.Fields("managedFields images volumesAttached volumesInUse daemonEndpoints")

// Match reports whether the text holds Node objects or Kueue's manifests.
func Match(data []byte) bool {
	s := string(data)
	return strings.Contains(s, "apiVersion") && (strings.Contains(s, kueue) || nodeKind.Match(data))
}

// nodeKind is kind: Node, also with quotes, NodeList, or in compact JSON.
var nodeKind = lazyre.New(`kind"*: *"?Node(List|["\s,}]|$)`)

// Read reads Node objects and manifests.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	docs, err := yamldoc.Read(name, r, skipped...)
	if err != nil {
		return nil, err
	}
	return fragment(name, docs)
}

func fragment(name string, docs []yamldoc.Value) (*cluster.Fragment, error) {
	f := &cluster.Fragment{Format: formatNodes, Source: name}
	o := objects{f: f, named: map[string]bool{}, said: map[string]*repeated{}}
	for i := range docs {
		o.object(&docs[i], 0)
	}
	if o.known == 0 {
		return nil, fmt.Errorf("%s: no Node object and no topology manifest; expected the output of kubectl get nodes -o "+
			"yaml (or json)", name)
	}
	if err := o.fillFragment(); err != nil {
		return nil, err
	}
	warn.Limit(f)
	return f, nil
}

// objects collects what the documents say.
type objects struct {
	f      *cluster.Fragment
	known  int // objects of a kind we read
	nodes  []node
	named  map[string]bool
	levels []levels
	said   map[string]*repeated
	texts  []string // of said, in order
}

// levels are the label keys of a Topology, outermost first.
type levels struct {
	keys []string
	line int
	text string
}

// repeated is a warning and how many nodes it is about.
type repeated struct {
	first *node
	count int
}

// warn keeps one warning for all nodes of which the same is to be said.
func (o *objects) warn(n *node, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if r := o.said[text]; r != nil {
		r.count++
		return
	}
	o.said[text] = &repeated{n, 1}
	o.texts = append(o.texts, text)
}

func (o *objects) flush() {
	for _, text := range o.texts {
		r := o.said[text]
		where := r.first.name
		if r.count > 1 {
			where = fmt.Sprintf("%s and %d more", where, r.count-1)
		}
		o.f.Warnf(r.first.line, where, "%s", text)
	}
}

// node is one node: its name, its labels and its capacities.
type node struct {
	name     string
	line     int
	labels   *yamldoc.Value
	capacity *yamldoc.Value
}

func (n *node) label(key string) string { return n.labels.Get(key).Str() }

// maxLists is how deep lists of lists are followed.
const maxLists = 4

// object reads one object, or the items of a list.
func (o *objects) object(v *yamldoc.Value, depth int) {
	if depth > maxLists {
		return
	}
	for _, item := range slices.Concat(v.List(), v.Get("items").List()) {
		o.object(&item, depth+1)
	}
	kind, api := v.Get("kind").Str(), v.Get("apiVersion").Str()
	switch {
	case kind == "NodeList":
		o.known++
	case v.Get("items").List() != nil || strings.HasSuffix(kind, "List"):
	case kind == "Node":
		o.known++
		n := node{
			name: v.Get("metadata", "name").Str(), line: v.LineNum(), labels: v.Get("metadata", "labels"),
			capacity: v.Get("status", "capacity"),
		}
		if len(n.capacity.Map()) == 0 { // a shortened text
			n.capacity = v.Get("status", "allocatable")
		}
		if o.node(n) {
			o.health(&n, v)
		}
	case strings.HasPrefix(api, kueue), v.Get("metadata", "labels", kueue+"queue-name") != nil: // a job has a queue
		o.known++
		if kind == "Topology" {
			o.topology(v)
		}
	}
}

// node takes in a node, and reports whether it is a new one.
func (o *objects) node(n node) bool {
	switch {
	case n.name == "":
		o.f.Warnf(n.line, "", "a node without metadata.name; skipped")
	case o.named[n.name]:
		o.f.Warnf(n.line, n.name, "listed again; kept the first")
	case len(o.nodes) >= cluster.MaxHosts:
		o.f.Warnf(n.line, n.name, "more than %d nodes; skipped", cluster.MaxHosts)
	default:
		o.named[n.name] = true
		o.nodes = append(o.nodes, n)
		return true
	}
	return false
}

// fillFragment turns what was collected into the fragment.
func (o *objects) fillFragment() error {
	if len(o.nodes) == 0 {
		o.f.Format = formatManifests
		text := "no nodes in it; "
		for _, l := range o.levels {
			text += l.text + "; "
		}
		o.f.Warnf(0, "", "%sgive the nodes with kubectl get nodes -o yaml", text)
		return nil
	}
	for _, l := range o.levels {
		o.f.Warnf(l.line, "", "%s", l.text)
	}
	t := switchtree.New()
	t.Overlap = true
	for i := range o.nodes {
		t.Host(o.nodes[i].name)
	}
	o.place(t)
	if err := t.Fill(o.f); err != nil {
		return err
	}
	o.types()
	o.flush()
	return nil
}
