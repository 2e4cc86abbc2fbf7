package hub

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/fleet"
	"busbar.dev/fleet/health"
	"busbar.dev/hardware"
	"busbar.dev/input/clusterfile"
	"busbar.dev/predict"
)

// model is the fleet as one cluster, made again when a node's map changed.
type model struct {
	mu      sync.Mutex // guards following
	changes uint64
	of      *cluster.Cluster
	made    time.Time
	took    time.Duration
	// assumed is the same with what predictions cannot do without, nil until it is asked for.
	assumed  *cluster.Cluster
	assuming error
}

// predictable is the fleet as one cluster, with what no map says assumed as busbar predict does. It must not be
// changed.
func (h *Hub) predictable() (*cluster.Cluster, error) {
	h.Cluster()
	m := &h.model
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.assumed == nil {
		list, _ := h.view.allMaps()
		m.assumed = join(list, h.view.network)
		_, m.assuming = predict.Assume(m.assumed, predict.Given{}, len(m.assumed.Hosts) > 1)
	}
	return m.assumed, m.assuming
}

// Cluster is the fleet as one cluster: the maps of all nodes that have not left, joined and completed.
// It must not be changed.
func (h *Hub) Cluster() *cluster.Cluster {
	m := &h.model
	m.mu.Lock()
	defer m.mu.Unlock()
	// A thousand nodes take seconds: while they come one after the other, it is made again now and then.
	list, changes := h.view.allMaps()
	if m.of == nil || changes != m.changes && time.Since(m.made) > 5*m.took {
		began := time.Now()
		m.of, m.changes, m.assumed = join(list, h.view.network), changes, nil
		m.made = time.Now()
		m.took = m.made.Sub(began)
	}
	return m.of
}

// nodeMap is what a node said that it has.
type nodeMap struct {
	name fleet.Name
	text json.RawMessage
}

// allMaps are those of nodes that have not left, and how often they changed.
func (v *View) allMaps() (list []nodeMap, changes uint64) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, n := range sortedNames(v.nodes) {
		if s := v.nodes[n]; s.joined != nil && !s.left {
			list = append(list, nodeMap{n, s.mapped})
		}
	}
	return list, v.changes
}

// join makes one cluster of many maps. Nodes whose maps read alike share one reading.
func join(list []nodeMap, network *cluster.Cluster) *cluster.Cluster {
	c := &cluster.Cluster{Name: "fleet"}
	var frags []*cluster.Fragment
	var warnings []cluster.Warning
	if network != nil {
		frags = append(frags, &cluster.Fragment{Format: "cluster file", Source: network.Name, Cluster: *network})
	}
	for _, m := range list {
		f, err := readMap(m)
		if err != nil {
			warnings = append(warnings, cluster.Warning{Source: string(m.name), Text: "its map cannot be read: " + err.Error()})
			f = &cluster.Fragment{Format: "agent", Source: string(m.name)}
			f.Hosts = []cluster.Host{{Name: string(m.name), Type: -1}}
		}
		frags = append(frags, f)
	}
	if len(frags) > 0 {
		c = cluster.Join(frags...)
		hardware.Complete(c)
		c.Name = "fleet"
	}
	c.Warnings = append(c.Warnings, warnings...)
	return c
}

// oneNode is what a node may say of itself. Its network is not taken from it.
var oneNode = cluster.Limits{
	Hosts: 1, Names: 64, Devices: 4 * cluster.MaxEnds, Pairs: cluster.MaxEnds * cluster.MaxEnds, Switches: 1024,
	Links: 1 << 16, Steps: 1 << 28,
}

var errNoMap = errors.New("it said none")

// readMap reads one node's map. Whatever host it names, it is the node's own: a node speaks for
// itself alone.
func readMap(m nodeMap) (*cluster.Fragment, error) {
	if len(m.text) == 0 {
		return nil, errNoMap
	}
	b := cluster.NewBudget(oneNode, nil)
	f, err := clusterfile.ReadWithin(b, string(m.name), bytes.NewReader(m.text))
	if err == nil {
		err = b.Keep(f)
	}
	if err != nil {
		return nil, err
	}
	if len(f.Hosts) != 1 {
		return nil, fmt.Errorf("it describes %d hosts; one is expected", len(f.Hosts))
	}
	f.Hosts[0].Name = string(m.name)
	f.Source = string(m.name)
	f.Sources, f.Calibration = nil, nil
	for i, w := range f.Warnings {
		f.Warnings[i] = cluster.Warning{Source: string(m.name), Text: says(m.name, w.Text)}
	}
	f.Network = cluster.Network{}
	return f, nil
}

// leavesOf is the switch that each host of a network hangs on. Where its NICs hang on several, as in
// networks with rails, it has none.
func leavesOf(c *cluster.Cluster) map[string]string {
	out := map[string]string{}
	if c == nil {
		return out
	}
	for _, l := range c.Network.Links {
		if l.A.Switch < 0 || !l.B.ToHosts() {
			continue
		}
		name := c.Network.Switches[l.A.Switch].Name
		for _, s := range l.B.Hosts {
			for i := s.First; i < s.First+s.N && i < len(c.Hosts); i++ {
				host := c.Hosts[i].Name
				if old, known := out[host]; known && old != name {
					out[host] = ""
					continue
				}
				out[host] = name
			}
		}
	}
	return out
}

// place says whose peers a node is among: nodes with the same GPUs and NICs are built alike. A map
// of one node knows no leaves; a cluster file may.
func place(m nodeMap, leaf string) (health.Place, error) {
	f, err := readMap(m)
	if errors.Is(err, errNoMap) {
		err = nil
	}
	if err != nil || f == nil || len(f.Types) != 1 {
		return health.Place{Leaf: leaf}, err
	}
	t := f.Types[0]
	count := map[string]int{}
	for _, d := range t.Devices {
		switch d.Kind {
		case cluster.GPU, cluster.NIC:
			count[fmt.Sprintf("%v %.60s", d.Kind, d.Model.Value)]++
		}
	}
	var text bytes.Buffer
	for _, k := range slices.Sorted(maps.Keys(count)) {
		fmt.Fprintf(&text, "%d×%s ", count[k], k)
	}
	return health.Place{Leaf: leaf, Type: cut(text.String())}, nil
}
