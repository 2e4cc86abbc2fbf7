package cluster

import (
	"cmp"
	"fmt"
)

// Cluster turns the written form into the model. An error names the place:
// "types[0] dgx-a100: links[3]: b: no device gpu9".
func (d *Document) Cluster() (*Cluster, error) { return d.ClusterWithin(nil) }

// ClusterWithin is Cluster for a document that may cost so much.
func (d *Document) ClusterWithin(b *Budget) (*Cluster, error) {
	b = b.orDefault()
	if d.Version > FormatVersion {
		return nil, fmt.Errorf("version %d: this busbar reads versions up to %d; use a newer one", d.Version, FormatVersion)
	}
	c := &Cluster{Name: d.Name}
	types := map[string]int{}
	for i := range d.Types {
		t, err := d.Types[i].NodeType()
		if err != nil {
			return nil, fmt.Errorf("types[%d] %s: %w", i, d.Types[i].Name, err)
		}
		if err := b.TakeType(t); err != nil {
			return nil, fmt.Errorf("types[%d] %s: %w", i, d.Types[i].Name, err)
		}
		if _, ok := types[t.Name]; ok || t.Name == "" {
			return nil, fmt.Errorf("types[%d]: name %q is empty or taken", i, t.Name)
		}
		types[t.Name] = len(c.Types)
		c.Types = append(c.Types, t)
	}
	hosts := map[string]int{}
	for i, n := range d.Nodes {
		if err := c.AddNodes(b, n, types, hosts); err != nil {
			return nil, fmt.Errorf("nodes[%d]: %w", i, err)
		}
	}
	if err := c.AddRecords(b, &d.Records, d.Unavailable, hosts); err != nil {
		return nil, err
	}
	if err := c.LoadNetwork(b, &d.Network, hosts); err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	return c, nil
}

// AddNodes adds a run of hosts. Types and hosts are given by name with their index; the new hosts are added to those.
func (c *Cluster) AddNodes(b *Budget, n NodesDoc, types, hosts map[string]int) error {
	names, err := b.ParseNodes(n.Hosts)
	if err != nil {
		return fmt.Errorf("hosts: %w", err)
	}
	typ := -1
	if n.Type != "" {
		var ok bool
		if typ, ok = types[n.Type]; !ok {
			return fmt.Errorf("type: no node type %q among types", n.Type)
		}
	}
	for _, name := range names {
		if _, ok := hosts[name]; ok {
			return fmt.Errorf("hosts: %q is listed twice", name)
		}
		hosts[name] = len(c.Hosts)
		c.Hosts = append(c.Hosts, Host{Name: name, Type: typ})
	}
	return nil
}

// AddRecords adds what a document says beside types, hosts and the network; hosts are given by name with their index.
func (c *Cluster) AddRecords(b *Budget, d *Records, unavailable []UnavailableDoc, hosts map[string]int) error {
	if err := d.Calibration.Check(); err != nil {
		return fmt.Errorf("calibration: %w", err)
	}
	c.Calibration, c.Sources, c.Warnings = d.Calibration, d.Sources, d.Warnings
	for i, id := range d.Identities {
		if i%1024 == 0 {
			if err := b.Stopped(); err != nil {
				return err
			}
		}
		h, ok := hosts[id.Host]
		if !ok {
			return fmt.Errorf("identities[%d]: host: no host %q among nodes", i, id.Host)
		}
		c.Hosts[h].IDs = append(c.Hosts[h].IDs, id.Identity)
	}
	for i := range unavailable {
		u := &unavailable[i]
		if u.State == "" {
			return fmt.Errorf("unavailable[%d]: no state; expected one such as drained", i)
		}
		names, err := b.orDefault().ParseHosts(u.Hosts)
		if err != nil {
			return fmt.Errorf("unavailable[%d]: hosts: %w", i, err)
		}
		for _, name := range names {
			h, ok := hosts[name]
			if !ok {
				return fmt.Errorf("unavailable[%d]: hosts: no host %q among nodes", i, name)
			}
			c.Hosts[h].Out = &u.Out
		}
	}
	return nil
}

// NodeType turns the written form of a type into the model.
func (d *TypeDoc) NodeType() (*NodeType, error) {
	t := &NodeType{Name: d.Name, Preset: d.Preset, Trays: d.Trays, Tree: d.Tree, Devices: make([]Device, len(d.Devices))}
	at := make(map[string]int, len(d.Devices))
	for i, v := range d.Devices {
		at[v.Name] = i
	}
	var err error // the first one
	find := func(name string) int {
		i, ok := at[name]
		if !ok && err == nil {
			err = fmt.Errorf("no device %q", name)
		}
		return i
	}
	for i, v := range d.Devices {
		dev := &t.Devices[i]
		*dev = Device{
			Kind: v.Kind, Name: v.Name, Index: -1, Label: v.Label, Parent: -1, Tray: v.Tray, Model: v.Model,
			PCIID: v.PCIID, CPU: v.CPU, GPU: v.GPU, NIC: v.NIC,
		}
		if v.Index != nil {
			dev.Index = *v.Index
		}
		if v.Parent != "" {
			if dev.Parent = find(v.Parent); err != nil {
				return nil, fmt.Errorf("devices[%d] %s: parent: %w", i, v.Name, err)
			}
		}
		if v.PCI != "" {
			if dev.PCI, err = ParsePCI(string(v.PCI)); err != nil {
				return nil, fmt.Errorf("devices[%d] %s: %w", i, v.Name, err)
			}
		}
	}
	for i, l := range d.Links {
		link := l.Link
		link.A, link.B = find(l.A), find(l.B)
		if err = cmp.Or(err, link.checkWidth()); err != nil {
			return nil, fmt.Errorf("links[%d]: %w", i, err)
		}
		t.Links = append(t.Links, link)
	}
	for i, p := range d.Pairs {
		pair := p.Pair
		if pair.A, pair.B = find(p.From), find(p.To); err != nil {
			return nil, fmt.Errorf("pairs[%d]: %w", i, err)
		}
		t.Pairs = append(t.Pairs, pair)
	}
	return t, t.Check()
}

// LoadNetwork sets the network from its written form; hosts are given by name with their index.
func (c *Cluster) LoadNetwork(b *Budget, d *NetworkDoc, hosts map[string]int) error {
	b = b.orDefault()
	if err := b.TakeSwitches(len(d.Switches)); err != nil {
		return err
	}
	if err := CheckBlockSizes(d.BlockSizes); err != nil {
		return fmt.Errorf("block_sizes: %w", err)
	}
	n := &c.Network
	*n = d.Network
	if err := n.loadScheduler(b, d.Scheduler); err != nil {
		return err
	}
	switches := map[string]int{}
	for i, s := range d.Switches {
		if _, ok := switches[s.Name]; ok || s.Name == "" {
			return fmt.Errorf("switches[%d]: name %q is empty or taken", i, s.Name)
		}
		switches[s.Name] = i
		sw := Switch{s.Name, s.Label, s.GUID, s.Model, s.Tier, -1, s.Ports, s.Count, s.Latency, s.Reduction, s.Domain, s.LID}
		if s.Rail != nil {
			sw.Rail = *s.Rail
		}
		n.Switches = append(n.Switches, sw)
	}
	for i, l := range d.Links {
		a, errA := l.A.end(b, switches, hosts)
		z, errB := l.B.end(b, switches, hosts)
		if errA != nil || errB != nil {
			return fmt.Errorf("links[%d]: %w", i, cmp.Or(errA, errB))
		}
		if l.Rate.Value < 0 || l.Rate.Known() && l.Rate.Value == 0 {
			return fmt.Errorf("links[%d]: rate %v; expected more than zero", i, l.Rate.Value)
		}
		if l.Lanes < 0 || l.Lanes > maxLanes {
			return fmt.Errorf("links[%d]: lanes: %d; expected 1 to %d, or nothing when unknown", i, l.Lanes, maxLanes)
		}
		link := l.NetLink
		link.A, link.B = a, z
		n.Links = append(n.Links, link)
	}
	return nil
}

// loadScheduler sets the scheduler's switches. Those above may come after those below.
func (n *Network) loadScheduler(b *Budget, list []SchedulerSwitchDoc) error {
	if err := b.TakeSwitches(len(list)); err != nil {
		return err
	}
	known := map[string]bool{}
	for i, s := range list {
		if known[s.Name] || s.Name == "" {
			return fmt.Errorf("scheduler[%d]: name %q is empty or taken", i, s.Name)
		}
		known[s.Name] = true
		var hosts []string
		if s.Hosts != "" {
			var err error
			if hosts, err = b.ParseHosts(s.Hosts); err != nil {
				return fmt.Errorf("scheduler[%d]: hosts: %w", i, err)
			}
		}
		n.Scheduler = append(n.Scheduler, SchedulerSwitch{s.Name, s.Up, hosts})
	}
	for i, s := range list {
		if s.Up != "" && !known[s.Up] {
			return fmt.Errorf("scheduler[%d]: up: no switch %q among scheduler", i, s.Up)
		}
	}
	return nil
}

func (e EndDoc) end(b *Budget, switches, hosts map[string]int) (End, error) {
	out := End{Switch: -1, NIC: -1, Port: e.Port}
	if e.NIC != nil {
		out.NIC = *e.NIC
	}
	if e.Switch != "" {
		i, ok := switches[e.Switch]
		if !ok {
			return out, fmt.Errorf("no switch %q", e.Switch)
		}
		out.Switch = i
		return out, nil
	}
	if e.Hosts == "" {
		return out, nil // the other end of a loose port
	}
	names, err := b.ParseHosts(e.Hosts)
	if err != nil {
		return out, fmt.Errorf("hosts: %w", err)
	}
	for _, name := range names {
		h, ok := hosts[name]
		if !ok {
			return out, fmt.Errorf("no host %q among nodes", name)
		}
		out.Hosts = AppendSpan(out.Hosts, Span{h, 1})
	}
	return out, nil
}
