package k8s

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/switchtree"
)

// Accelerator is the key for accelerator domains, as topograph has had it since 1.0.
const Accelerator = "accelerator.topograph.run/domain"

// Fabric is the key for switches of a tier, as topograph has had it since 1.0.
func Fabric(t cluster.Tier) string { return tierPrefixes[1] + strconv.Itoa(int(t)) }

// labelValue is a name as the value of a label; longer ones become what topograph makes of them, so that both name a
// switch alike.
func labelValue(name string) string {
	const most = 63
	if len(name) <= most {
		return switchtree.Plain(name, most)
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, name) // cannot fail
	return fmt.Sprintf("x%x", h.Sum64())
}

// WriteLabels writes the network as labels of nodes: a stream of Node objects
// that hold a name and labels and can be applied on the server's side.
//
// A label names one leaf per node. The leaves of a pod in a rail-optimised
// network, all of which every node hangs on, share a value, and so do spines
// that share leaves; a comment says what each such value stands for. Groupings
// that were read from labels go back under the keys they came with, others are
// written as the accelerator domain. A node that is an NVLink domain of several
// hosts is such a domain, and each of these hosts a node. Names are in lower
// case, as kubelets register them; hosts whose names no node can have, and nodes
// of which nothing is known, are named in comments.
func WriteLabels(w io.Writer, c *cluster.Cluster) error {
	var notes bytes.Buffer
	c, labels, err := labelled(&notes, c)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	b.WriteString("# Node labels, written by busbar; use with kubectl apply --server-side -f FILE\n")
	_, _ = notes.WriteTo(b) // Flush says what fails
	for i := range c.Hosts {
		if len(labels[i]) == 0 {
			continue
		}
		fmt.Fprintf(b, "---\napiVersion: v1\nkind: Node\nmetadata:\n  name: %q\n  labels:\n", c.Hosts[i].Name)
		for _, k := range slices.Sorted(maps.Keys(labels[i])) {
			fmt.Fprintf(b, "    %s: %q\n", k, labels[i][k])
		}
	}
	return b.Flush()
}

// WriteTopology writes the object by which Kueue knows the levels that WriteLabels labels: those that all labelled
// nodes have, the widest first and the host name last. Kueue takes no node that lacks one.
func WriteTopology(w io.Writer, c *cluster.Cluster) error {
	c, labels, err := labelled(io.Discard, c)
	if err != nil {
		return err
	}
	var levels []string
	nodes, has := 0, map[string]int{}
	for i := range c.Hosts {
		nodes += min(1, len(labels[i]))
		for k := range labels[i] {
			has[k]++
		}
	}
	for t := cluster.Tier(60); t >= cluster.Leaf; t-- {
		levels = append(levels, Fabric(t))
	}
	levels = slices.DeleteFunc(append(levels, Accelerator), func(k string) bool { return has[k] == 0 || has[k] < nodes })
	if len(levels) == 0 {
		return fmt.Errorf("no switch or NVLink domain is known of all of %d nodes; expected a source of the network",
			len(c.Hosts))
	}
	if most := 15; len(levels) > most { // of 16 with the host name
		levels = levels[len(levels)-most:]
	}
	_, err = fmt.Fprintf(w, "# Levels for Kueue, written by busbar; busbar map -o kube writes the labels of nodes.\n"+
		"apiVersion: "+
		"kueue.x-k8s.io/v1beta2\nkind: Topology\nmetadata:\n  name: busbar\nspec:\n  levels:\n    - nodeLabel: %s\n",
		strings.Join(append(levels, hostname), "\n    - nodeLabel: "))
	return err
}

// labelled is a cluster as schedulers count its nodes, and their labels. What is worth a comment goes to b.
func labelled(b io.Writer, c *cluster.Cluster) (*cluster.Cluster, []map[string]string, error) {
	if len(c.Hosts) == 0 {
		return nil, nil, fmt.Errorf("the cluster has no hosts, and labels are about hosts; add a source that names them")
	}
	c, trays := switchtree.ByTray(c)
	c, dropped := switchtree.Keep(c, nodeName)
	if len(c.Hosts) == 0 {
		return nil, nil, fmt.Errorf("no host has a name that a Kubernetes node can have (%q); expected lower-case letters, "+
			"digits, dashes and dots", dropped[0])
	}
	if trays != "" {
		fmt.Fprintf(b, "# %s\n", trays)
	}
	if len(dropped) > 0 {
		fmt.Fprintf(b, "# Left out, for names that no node can have or that repeat: %d hosts, %q and so on.\n", len(dropped),
			dropped[0])
	}
	labels := make([]map[string]string, len(c.Hosts))
	for i := range labels {
		labels[i] = map[string]string{}
	}
	fabricLabels(b, c, labels)
	groupLabels(c, labels)
	var bare []string
	for i := range c.Hosts {
		if len(labels[i]) == 0 {
			bare = append(bare, c.Hosts[i].Name)
		}
	}
	if len(bare) > 0 {
		fmt.Fprintf(b, "# No source says where these are: %s\n", cluster.FormatHosts(bare))
	}
	return c, labels, nil
}

// fabricLabels labels hosts with the switches above them.
func fabricLabels(b io.Writer, c *cluster.Cluster, labels []map[string]string) {
	f := switchtree.Groups(c)
	used := map[string]bool{}
	value := make([]string, len(f.Groups))
	for i := range f.Groups {
		g := &f.Groups[i]
		value[i] = switchtree.Unique(labelValue(g.Name), used)
		if len(g.Members) < 2 {
			continue
		}
		fmt.Fprintf(b, "# %s stands for %s\n", value[i], g.List(c))
	}
	for i := range f.Groups {
		for _, h := range f.Groups[i].Hosts {
			for at := i; at >= 0; at = f.Groups[at].Up {
				// A group without members was made up to join others.
				if g := &f.Groups[at]; len(g.Members) > 0 {
					labels[h][Fabric(g.Tier)] = value[at]
				}
			}
		}
	}
}

// groupLabels labels hosts with the groupings they are in.
func groupLabels(c *cluster.Cluster, labels []map[string]string) {
	n := &c.Network
	up := slices.Repeat([]int{-1}, len(n.Switches))
	for _, l := range n.Links {
		if !l.A.ToHosts() && !l.B.ToHosts() && n.Switches[l.A.Switch].Domain && n.Switches[l.B.Switch].Domain &&
			up[l.B.Switch] < 0 {
			up[l.B.Switch] = l.A.Switch
		}
	}
	for _, l := range n.Links {
		if l.A.ToHosts() || !l.B.ToHosts() || !n.Switches[l.A.Switch].Domain {
			continue
		}
		for at, steps := l.A.Switch, 0; at >= 0 && steps < 64; at, steps = up[at], steps+1 {
			key, val, ok := strings.Cut(n.Switches[at].Label, "=")
			if !ok || !isKey(key) || switchtree.Plain(val, 63) != val {
				continue
			}
			for h := range l.B.EachHost(len(labels)) {
				if labels[h][key] == "" {
					labels[h][key] = val
				}
			}
		}
	}
	used := map[string]bool{}
	for _, d := range switchtree.Domains(c) {
		sw := &n.Switches[d.Switch]
		if key, _, ok := strings.Cut(sw.Label, "="); ok && isKey(key) {
			continue
		}
		val := switchtree.Unique(labelValue(strings.TrimSuffix(sw.Name, " (group)")), used)
		for _, h := range d.Hosts {
			if labels[h][Accelerator] == "" {
				labels[h][Accelerator] = val
			}
		}
	}
}

// isKey reports whether a text is the key of a label: a domain, a slash, a name.
func isKey(s string) bool {
	domain, name, ok := strings.Cut(s, "/")
	return ok && dnsName.MatchString(domain) && switchtree.Plain(name, 63) == name
}

// dnsName is a DNS name as Kubernetes wants it.
var dnsName = lazyre.New(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// nodeName is the name under which a kubelet registers a host, "" when it
// cannot.
func nodeName(host string) string {
	if n := strings.ToLower(host); len(n) <= 253 && dnsName.MatchString(n) {
		return n
	}
	return ""
}
