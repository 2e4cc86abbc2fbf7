package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/internal/words"
)

// FormatVersion is the version of the JSON and YAML forms of a cluster.
const FormatVersion = 1

// Host is one node of the cluster.
type Host struct {
	Name string // "" in a Fragment: the source does not say
	Type int    // index into Types; -1 in a Fragment: the source does not say
	// IDs are the names that only this machine's parts have.
	IDs []Identity
	// Trays are the names of the hosts that ByRack made this one of, in the order of its trays. It is not written.
	Trays []string
	// Out is why a scheduler gives the host no jobs, as it held when it was read; nil where none says so. In a Fragment an
	// Out without a state says that it does give it jobs.
	Out *Out
}

// Nameless reports that the host is an adapter of a fabric that carries no host's name, so that it was named by its
// GUID: ca-b83fd203000a0003. It is no node of its own but the NIC of one.
func (h *Host) Nameless() bool {
	guid, ok := strings.CutPrefix(h.Name, "ca-")
	return ok && len(guid) == 16 && strings.Trim(guid, "0123456789abcdef") == ""
}

// loneAdapters counts the hosts that are adapters without a host's name; 0 where all are, which is then all that is
// known of nodes, and where no switch parts them, so that each is at the end of another's cable.
func (c *Cluster) loneAdapters() (n int) {
	if len(c.Network.Switches) == 0 && len(c.Network.Links) > 0 {
		return 0
	}
	for _, h := range c.Hosts {
		if h.Nameless() {
			n++
		}
	}
	return n % max(len(c.Hosts), 1)
}

// Out is a scheduler's word on a host that gets no jobs.
type Out struct {
	State  string `json:"state" yaml:"state"`                       // in words: drained, down, not responding
	Reason string `json:"reason,omitempty" yaml:"reason,omitempty"` // as whoever drained it wrote it; "" unknown
}

// Identity ties a device of a host's type to the one part in that machine.
type Identity struct {
	Device   string            `json:"device" yaml:"device"` // name in the type: gpu0
	UUID     string            `json:"uuid,omitempty" yaml:"uuid,omitempty"`
	Port     int               `json:"port,omitempty" yaml:"port,omitempty"` // for GUID, LID and counters of a NIC port
	GUID     string            `json:"guid,omitempty" yaml:"guid,omitempty"`
	LID      int               `json:"lid,omitempty" yaml:"lid,omitempty"`
	Counters map[string]uint64 `json:"counters,omitempty" yaml:"counters,omitempty"`
}

// Warning is something a reader or a join noticed: a contradiction, a line it
// could not use, a figure it had to assume. It is data, never a log line.
type Warning struct {
	Source string `json:"source,omitempty" yaml:"source,omitempty"` // file or tool, with line where there is one
	Where  string `json:"where,omitempty" yaml:"where,omitempty"`   // "node7/gpu0"
	Text   string `json:"text" yaml:"text"`
	// ID, Severity and Fix are those of a finding, where the source itself says that something is wrong.
	ID       string `json:"id,omitempty" yaml:"id,omitempty"`
	Severity string `json:"severity,omitempty" yaml:"severity,omitempty"`
	Fix      string `json:"fix,omitempty" yaml:"fix,omitempty"`
}

func (w Warning) String() string {
	s := w.Text
	if w.Where != "" {
		s = w.Where + ": " + s
	}
	if w.Source != "" {
		s = w.Source + ": " + s
	}
	return s
}

// Cluster is the model.
type Cluster struct {
	Name     string
	Types    []*NodeType
	Hosts    []Host
	Network  Network
	Sources  []string
	Warnings []Warning
	// Calibration is nil where nothing was fitted to measurements of this cluster.
	Calibration *Calibration
}

// Fragment is what one source says: a partial cluster. Hosts may be without a
// name ("this kind of node") or without a type (-1, "a node of that name").
type Fragment struct {
	Format string // "nvidia-smi topo -m"
	Source string // file name, or the tool for a live machine
	Cluster
}

// Warnf adds a warning that carries the fragment's source. line 0 means the
// whole source.
func (f *Fragment) Warnf(line int, where, format string, args ...any) {
	src := cmp.Or(f.Source, f.Format)
	if line > 0 {
		src = fmt.Sprintf("%s:%d", src, line)
	}
	f.Warnings = append(f.Warnings, Warning{Source: src, Where: where, Text: fmt.Sprintf(format, args...)})
}

// AddNode appends a node of its own type: the usual shape of a fragment.
func (f *Fragment) AddNode(host string, t *NodeType) {
	f.Types = append(f.Types, t)
	f.Hosts = append(f.Hosts, Host{Name: host, Type: len(f.Types) - 1})
}

// HostIndex finds a host by name, or -1. It is linear; build a map to ask often.
func (c *Cluster) HostIndex(name string) int {
	return slices.IndexFunc(c.Hosts, func(h Host) bool { return h.Name == name })
}

// SameHost reports whether two names are those of one host: one may lack its domain.
func SameHost(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	sa, da, _ := strings.Cut(a, ".")
	sb, db, _ := strings.Cut(b, ".")
	return strings.EqualFold(sa, sb) && (da == "" || db == "")
}

// HostsNamed are the hosts that names mean, each as an index or -1. Names may lack their domain, or have one that the
// cluster's lack.
func (c *Cluster) HostsNamed(names []string) []int {
	byName := map[string][]int{}
	for i := range c.Hosts {
		key := hostKey(c.Hosts[i].Name)
		byName[key] = append(byName[key], i)
	}
	list := make([]int, len(names))
	for i, n := range names {
		list[i] = -1
		for _, h := range byName[hostKey(n)] {
			if SameHost(c.Hosts[h].Name, n) {
				list[i] = h
				break
			}
		}
	}
	return list
}

// TypeOf returns the type of a host, or nil when nobody described it.
func (c *Cluster) TypeOf(host int) *NodeType {
	if host < 0 || host >= len(c.Hosts) {
		return nil
	}
	t := c.Hosts[host].Type
	if t < 0 || t >= len(c.Types) {
		return nil
	}
	return c.Types[t]
}

// Partial is in the warning of a reader whose text shows a part of a network: what it lacks tells nothing.
const Partial = "a part of a fabric"

// Summary counts what is there.
type Summary struct {
	Nodes       int `json:"nodes"`
	GPUs        int `json:"gpus"`
	NICs        int `json:"nics"`
	GPUsPerNode int `json:"gpus_per_node"` // of the node type with most nodes that has any
	Switches    int `json:"switches"`
	NodeTypes   int `json:"node_types"`
}

// Parts are the counts in words, without what there is none of.
func (s Summary) Parts() (parts []string) {
	for _, n := range []struct {
		n    int
		noun string
	}{{s.Nodes, "node"}, {s.GPUs, "GPU"}, {s.NICs, "NIC"}, {s.Switches, "switch"}} {
		if n.n > 0 {
			parts = append(parts, words.Plural(n.n, n.noun))
		}
	}
	return parts
}

// Summary counts nodes, GPUs, NICs and switches. Adapters without a host's name are no nodes beside those that have
// one.
func (c *Cluster) Summary() Summary {
	s := Summary{Nodes: len(c.Hosts) - c.loneAdapters(), NodeTypes: len(c.Types)}
	count := make([]int, len(c.Types))
	for _, h := range c.Hosts {
		if h.Type >= 0 && h.Type < len(count) {
			count[h.Type]++
		}
	}
	most := 0
	for i, t := range c.Types {
		g := t.Count(GPU)
		s.GPUs += g * count[i]
		s.NICs += t.Count(NIC) * count[i]
		if g > 0 && count[i] > most {
			most, s.GPUsPerNode = count[i], g
		}
	}
	for i := range c.Network.Switches {
		if !c.Network.Switches[i].Domain {
			s.Switches += max(c.Network.Switches[i].Count, 1)
		}
	}
	return s
}
