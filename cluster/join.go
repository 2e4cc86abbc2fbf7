package cluster

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Join merges what several sources say into one cluster. Hosts are matched by
// name (short against full domain names too, and without case), devices by PCI address, then UUID,
// then label, then index. A node without a host name describes every named host,
// or becomes node0 when there is none. What two sources say differently becomes a
// Warning that names both; the better origin is kept, the earlier source between
// equals. The fragments are not changed.
func Join(frags ...*Fragment) *Cluster {
	c, _ := JoinWithin(nil, frags...) // a nil budget has nothing to stop it
	return c
}

// JoinWithin is Join for fragments that may cost so much, and that ends with the question that they are for.
func JoinWithin(b *Budget, frags ...*Fragment) (*Cluster, error) {
	hosts := 0 // no fewer than the largest source has
	for _, f := range frags {
		hosts = max(hosts, len(f.Hosts))
	}
	j := joiner{
		budget: b, typeNames: map[string]bool{}, byName: make(map[string]int, hosts), parts: make([][]part, 0, hosts),
		merged: map[string]*mergedType{}, shapes: map[[32]byte]int{},
		placed: map[int]placed{},
	}
	j.out.Hosts = slices.Grow(j.out.Hosts, hosts)
	sources := map[string]bool{}
	for i, f := range frags {
		if f.Name != "" && j.out.Name == "" {
			j.out.Name = f.Name
		}
		// A file that was written from sources names those; itself it would add once
		// more every time it is read and written.
		from := f.Sources
		if len(from) == 0 {
			from = []string{f.title()}
		}
		for _, s := range from {
			if s != "" && !sources[s] {
				sources[s] = true
				j.out.Sources = append(j.out.Sources, s)
			}
		}
		j.out.Warnings = append(j.out.Warnings, f.Warnings...)
		j.calibration(f)
		j.addHosts(i, f)
	}
	if err := j.spreadAnonymous(frags); err != nil {
		return nil, err
	}
	j.resolveTypes(frags)
	j.joinNetworks(frags)
	if j.stopped() {
		return nil, j.stop
	}
	return &j.out, nil
}

// stopped tells that nobody waits for the cluster any more; what is joined by then is of no use.
func (j *joiner) stopped() bool {
	if j.stop == nil {
		j.stop = j.budget.Stopped()
	}
	return j.stop != nil
}

// title names a fragment for messages.
func (f *Fragment) title() string {
	switch {
	case f.Source == "":
		return f.Format
	case f.Format == "" || f.Format == f.Source:
		return f.Source
	}
	return f.Source + " (" + f.Format + ")"
}

// part is one source's word on a host.
type part struct{ frag, host int }

type joiner struct {
	budget    *Budget
	stop      error // why to end
	typeNames map[string]bool

	out    Cluster
	byName map[string]int
	parts  [][]part // per host of out
	anon   []part
	merged map[string]*mergedType // by the parts' types
	shapes map[[32]byte]int       // by structure: index into out.Types
	// clashes are what sources of one host say differently.
	clashes []disagreement
	// hostMap[f][h] lists the hosts of out that host h of fragment f became.
	hostMap [][][]int
	// mergedOf and from say, per host of out, how its type came about.
	mergedOf []*mergedType
	from     [][]part
	placed   map[int]placed // by host
	moved    []clash
}

// ShortHost is a host's name without its domain: "node7" and "node7.cluster.local" are one. Addresses stay whole.
func ShortHost(name string) string {
	short, _, ok := strings.Cut(name, ".")
	if !ok || short == "" || strings.Trim(short, "0123456789") == "" {
		return name
	}
	return short
}

// hostKey is what the names of one host have in common: case is none of it, for DNS has none.
func hostKey(name string) string { return strings.ToLower(ShortHost(name)) }

func (j *joiner) addHosts(frag int, f *Fragment) {
	j.hostMap = append(j.hostMap, make([][]int, len(f.Hosts)))
	for h := range f.Hosts {
		host := &f.Hosts[h]
		if host.Name == "" {
			j.anon = append(j.anon, part{frag, h})
			continue
		}
		at, ok := j.byName[hostKey(host.Name)]
		if !ok {
			at = j.newHost(host.Name)
		}
		j.take(at, part{frag, h}, f)
	}
}

func (j *joiner) newHost(name string) int {
	at := len(j.out.Hosts)
	j.byName[hostKey(name)] = at
	j.out.Hosts = append(j.out.Hosts, Host{Name: name, Type: -1})
	j.parts = append(j.parts, nil)
	return at
}

// take notes that a source speaks of a host. What a scheduler says of it is kept from the last that says anything: a
// file has what held once.
func (j *joiner) take(host int, p part, f *Fragment) {
	if out := f.Hosts[p.host].Out; out != nil {
		if j.out.Hosts[host].Out = out; out.State == "" {
			j.out.Hosts[host].Out = nil
		}
	}
	j.parts[host] = append(j.parts[host], p)
	j.hostMap[p.frag][p.host] = append(j.hostMap[p.frag][p.host], host)
}

// spreadAnonymous gives the nodes without a host name to every named host, or
// makes one host of them. Several nameless nodes in one fragment are several nodes. An adapter
// without a host's name is none of them: it is part of one that others name.
func (j *joiner) spreadAnonymous(frags []*Fragment) error {
	if len(j.anon) == 0 {
		return nil
	}
	if len(j.out.Hosts) > 0 {
		if err := j.budget.takeSpread(len(j.anon), len(j.out.Hosts)); err != nil {
			return err
		}
		lone := j.out.loneAdapters() > 0
		for _, p := range j.anon {
			for h := range j.out.Hosts {
				if !lone || !j.out.Hosts[h].Nameless() {
					j.take(h, p, frags[p.frag])
				}
			}
		}
		return nil
	}
	seen := make([]int, len(frags))
	for _, p := range j.anon {
		name := fmt.Sprintf("node%d", seen[p.frag])
		seen[p.frag]++
		at, ok := j.byName[hostKey(name)]
		if !ok {
			at = j.newHost(name)
		}
		j.take(at, p, frags[p.frag])
	}
	return nil
}

// mergedType is the outcome of merging one combination of types. names maps,
// per part, a device's name there to its name in the merged type, nics a NIC's position to that in the merged type.
type mergedType struct {
	index int
	names []map[string]string
	nics  [][]int
	ids   []Identity
}

func (j *joiner) resolveTypes(frags []*Fragment) {
	var key strings.Builder
	j.mergedOf = make([]*mergedType, len(j.out.Hosts))
	j.from = make([][]part, len(j.out.Hosts))
	for h := range j.out.Hosts {
		if j.stopped() {
			return
		}
		key.Reset()
		var types []typed
		var from []part
		for _, p := range j.parts[h] {
			f := frags[p.frag]
			if t := f.TypeOf(p.host); t != nil {
				types = append(types, typed{t, f.title()})
				from = append(from, p)
				fmt.Fprintf(&key, "%d.%d ", p.frag, f.Hosts[p.host].Type)
			}
		}
		if len(types) == 0 {
			for _, p := range j.parts[h] {
				j.out.Hosts[h].IDs = append(j.out.Hosts[h].IDs, frags[p.frag].Hosts[p.host].IDs...)
			}
			continue
		}
		if known := j.withUUIDs(frags, types, from); known {
			fmt.Fprintf(&key, "host %d", h) // parts are matched by this host's own names
		}
		m := j.merged[key.String()]
		if m == nil {
			m = j.merge(types, j.out.Hosts[h].Name)
			j.merged[key.String()] = m
		}
		j.out.Hosts[h].Type = m.index
		j.mergedOf[h], j.from[h] = m, from
		j.out.Hosts[h].IDs = mergeIDs(m, frags, from)
	}
	j.out.Warnings = append(j.out.Warnings, gathered(j.clashes)...)
}

// mostAlike warnings of one kind are told one by one.
const mostAlike = 3

// gathered are warnings, with the first of a kind for all where they are many: sources of two machines under one name
// differ in every device.
func gathered(list []disagreement) (out []Warning) {
	hosts := map[string][]string{}
	for _, w := range list {
		host, _, _ := strings.Cut(w.Where, "/")
		hosts[w.kind] = append(hosts[w.kind], host)
	}
	for _, w := range list {
		alike := hosts[w.kind]
		switch {
		case w.kind != "" && alike == nil:
			continue // told with the first
		case w.kind != "" && len(alike) > mostAlike:
			w.Text += fmt.Sprintf("; so do %d more on %s", len(alike)-1, FormatHosts(slices.Compact(alike)))
			hosts[w.kind] = nil
		}
		out = append(out, w.Warning)
	}
	return out
}

// withUUIDs puts the UUIDs that the sources gave for the host into copies of its
// types, so that devices can be matched by them. That is done only when two
// sources have some, since hosts with their own copies cannot share a merge.
func (j *joiner) withUUIDs(frags []*Fragment, types []typed, from []part) bool {
	has := 0
	for k, p := range from {
		ids := frags[p.frag].Hosts[p.host].IDs
		if slices.ContainsFunc(ids, func(id Identity) bool { return id.UUID != "" }) ||
			slices.ContainsFunc(types[k].t.Devices, func(d Device) bool { return d.UUID != "" }) {
			has++
		}
	}
	if has < 2 {
		return false
	}
	for k, p := range from {
		t := types[k].t.clone()
		for _, id := range frags[p.frag].Hosts[p.host].IDs {
			if d := t.ByName(id.Device); d >= 0 && t.Devices[d].UUID == "" {
				t.Devices[d].UUID = id.UUID
			}
		}
		types[k].t = t
	}
	return true
}

// merge merges the types of one host and finds or adds the result.
func (j *joiner) merge(types []typed, host string) *mergedType {
	t, names, warnings := mergeTypes(types, j.stopped)
	for _, w := range warnings {
		w.Where = strings.TrimSuffix(host+"/"+w.Where, "/")
		j.clashes = append(j.clashes, w)
	}
	m := &mergedType{names: names, ids: t.takeIDs(), nics: make([][]int, len(types))}
	here := t.Of(NIC)
	for k, ty := range types {
		for pos, d := range ty.t.Of(NIC) {
			name := names[k][ty.t.Devices[d].Name]
			if at := slices.IndexFunc(here, func(h int) bool { return t.Devices[h].Name == name }); at >= 0 {
				pos = at
			}
			m.nics[k] = append(m.nics[k], pos)
		}
	}
	shape := t.shape()
	if at, ok := j.shapes[shape]; ok {
		m.index = at
		return m
	}
	if t.Name == "" {
		t.Name = fmt.Sprintf("type%d", len(j.out.Types))
	}
	for j.typeNames[t.Name] {
		t.Name += "'"
	}
	j.typeNames[t.Name] = true
	m.index = len(j.out.Types)
	j.out.Types = append(j.out.Types, t)
	j.shapes[shape] = m.index
	return m
}

// shape is a hash of everything but the type's own name.
func (t *NodeType) shape() [32]byte {
	d := t.doc()
	d.Name = ""
	b, err := json.Marshal(&d)
	if err != nil {
		// Only a NaN or infinite figure can do this; such a type equals no other.
		b = []byte(err.Error() + t.Name)
	}
	return sha256.Sum256(b)
}

// takeIDs moves what belongs to one machine out of the type.
func (t *NodeType) takeIDs() []Identity {
	var ids []Identity
	for i := range t.Devices {
		d := &t.Devices[i]
		if d.UUID != "" {
			ids = append(ids, Identity{Device: d.Name, UUID: d.UUID})
			d.UUID = ""
		}
		if d.NIC == nil {
			continue
		}
		nic := *d.NIC
		nic.Ports = append([]Port(nil), nic.Ports...)
		for k := range nic.Ports {
			p := &nic.Ports[k]
			if p.GUID != "" || p.LID != 0 || len(p.Counters) > 0 {
				ids = append(ids, Identity{Device: d.Name, Port: p.Num, GUID: p.GUID, LID: p.LID, Counters: p.Counters})
			}
			p.GUID, p.LID, p.Counters = "", 0, nil
		}
		d.NIC = &nic
	}
	return ids
}

// mergeIDs collects a host's identities: those its types carried, and those the
// sources gave for the host, under the merged names.
func mergeIDs(m *mergedType, frags []*Fragment, from []part) []Identity {
	type key struct {
		device string
		port   int
	}
	var ids []Identity
	at := map[key]int{}
	add := func(id Identity) {
		k := key{id.Device, id.Port}
		if i, known := at[k]; known {
			new(merging).joinFields("", &ids[i], &id)
			return
		}
		at[k] = len(ids)
		ids = append(ids, id)
	}
	for _, id := range m.ids {
		add(id)
	}
	for k, p := range from {
		for _, id := range frags[p.frag].Hosts[p.host].IDs {
			if n, ok := m.names[k][id.Device]; ok {
				id.Device = n
			}
			add(id)
		}
	}
	return ids
}

// Equal reports whether two types are the same but for their names.
func (t *NodeType) Equal(o *NodeType) bool { return t.shape() == o.shape() }

// Types finds the types of a fragment by what is in them.
type Types map[[32]byte]int

// AddNode is [Fragment.AddNode] for a node whose type is that of another where they are equal.
func (x Types) AddNode(f *Fragment, host string, t *NodeType) {
	shape := t.shape()
	at, ok := x[shape]
	if !ok {
		at = len(f.Types)
		x[shape] = at
		f.Types = append(f.Types, t)
	}
	f.Hosts = append(f.Hosts, Host{Name: host, Type: at})
}
