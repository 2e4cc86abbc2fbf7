package cluster

// Document is the written form of the cluster. The matrix of every type is
// computed into it.
func (c *Cluster) Document() *Document {
	d, _ := c.DocumentWithin(nil) // a nil budget has nothing to stop it
	return d
}

// DocumentWithin is Document that ends with the question that it is for.
func (c *Cluster) DocumentWithin(b *Budget) (*Document, error) {
	d := &Document{
		Version: FormatVersion, Name: c.Name,
		Records: Records{Calibration: c.Calibration, Sources: c.Sources, Warnings: c.Warnings},
		Types:   make([]TypeDoc, len(c.Types)), Nodes: c.runs(), Unavailable: c.unavailable(),
	}
	for i, t := range c.Types {
		if err := b.Stopped(); err != nil {
			return nil, err
		}
		d.Types[i] = t.doc()
		d.Types[i].Matrix = new(t.Matrix())
		d.Types[i].Nearest = t.nearestDoc()
	}
	for _, h := range c.Hosts {
		for _, id := range h.IDs {
			d.Identities = append(d.Identities, HostIdentityDoc{h.Name, id})
		}
	}
	var err error
	d.Network, err = c.networkDoc(b)
	return d, err
}

// runs groups neighbouring hosts of one type into hostlists.
func (c *Cluster) runs() []NodesDoc {
	runs := []NodesDoc{}
	for i := 0; i < len(c.Hosts); {
		k := i
		var names []string
		for ; k < len(c.Hosts) && c.Hosts[k].Type == c.Hosts[i].Type; k++ {
			names = append(names, c.Hosts[k].Name)
		}
		n := NodesDoc{Hosts: FormatHosts(names)}
		if t := c.TypeOf(i); t != nil {
			n.Type = t.Name
		}
		runs = append(runs, n)
		i = k
	}
	return runs
}

// unavailable groups the hosts that a scheduler gives no jobs by state and reason.
func (c *Cluster) unavailable() []UnavailableDoc {
	outs, hosts := c.OutOfService()
	var list []UnavailableDoc
	for i, o := range outs {
		list = append(list, UnavailableDoc{FormatHosts(hosts[i]), o})
	}
	return list
}

// OutOfService are the states of hosts that a scheduler gives no jobs, in the order of the hosts, with those of each.
func (c *Cluster) OutOfService() (outs []Out, hosts [][]string) {
	at := map[Out]int{}
	for i := range c.Hosts {
		h := &c.Hosts[i]
		if h.Out == nil {
			continue
		}
		k, ok := at[*h.Out]
		if !ok {
			k = len(outs)
			at[*h.Out], outs, hosts = k, append(outs, *h.Out), append(hosts, nil)
		}
		hosts[k] = append(hosts[k], h.Name)
	}
	return outs, hosts
}

func (t *NodeType) doc() TypeDoc {
	d := TypeDoc{Name: t.Name, Preset: t.Preset, Trays: t.Trays, Tree: t.Tree, Devices: make([]DeviceDoc, len(t.Devices))}
	name := func(i int) string {
		if i < 0 || i >= len(t.Devices) {
			return ""
		}
		return t.Devices[i].Name
	}
	for i := range t.Devices {
		v := &t.Devices[i]
		d.Devices[i] = DeviceDoc{
			Kind: v.Kind, Name: v.Name, Index: some(v.Index), Label: v.Label, PCI: v.PCI, Parent: name(v.Parent), Tray: v.Tray,
			Model: v.Model, PCIID: v.PCIID, CPU: v.CPU, GPU: v.GPU, NIC: v.NIC,
		}
	}
	for _, l := range t.Links {
		d.Links = append(d.Links, LinkDoc{name(l.A), name(l.B), l})
	}
	for _, p := range t.Pairs {
		d.Pairs = append(d.Pairs, PairDoc{name(p.A), name(p.B), p})
	}
	return d
}

// nearestDoc lists the way of every GPU to the network.
func (t *NodeType) nearestDoc() []NearDoc {
	share := map[int]Share{}
	for _, s := range t.Shares() {
		for _, g := range s.GPUs {
			share[g] = s
		}
	}
	var list []NearDoc
	for _, n := range t.Nearest() {
		d := NearDoc{GPU: t.Devices[n.GPU].Name, NICs: []string{}, Class: n.Class.String()}
		for _, k := range n.NICs {
			d.NICs = append(d.NICs, t.Devices[k].Name)
		}
		if s, ok := share[n.GPU]; ok {
			d.SharedBy, d.Share = len(s.GPUs), s.Each
		}
		list = append(list, d)
	}
	return list
}

// some turns a number whose -1 means unknown into one whose absence does.
func some(i int) *int {
	if i < 0 {
		return nil
	}
	return &i
}

func (c *Cluster) networkDoc(b *Budget) (NetworkDoc, error) {
	n := &c.Network
	d := NetworkDoc{Network: *n}
	d.Network.Scheduler, d.Network.Switches, d.Network.Links = nil, nil, nil // they are written by name
	for _, s := range n.Switches {
		d.Switches = append(d.Switches, SwitchDoc{
			s.Name, s.Label, s.GUID, s.Model, s.Tier, some(s.Rail), s.Ports, s.Count, s.Latency, s.Reduction, s.Domain, s.LID,
		})
	}
	for _, s := range n.Scheduler {
		d.Scheduler = append(d.Scheduler, SchedulerSwitchDoc{s.Name, s.Up, FormatHosts(s.Hosts)})
	}
	end := func(e End) EndDoc {
		if !e.ToHosts() {
			return EndDoc{Switch: n.Switches[e.Switch].Name, Port: e.Port}
		}
		var names []string
		for h := range e.EachHost(len(c.Hosts)) {
			names = append(names, c.Hosts[h].Name)
		}
		return EndDoc{Hosts: FormatHosts(names), NIC: some(e.NIC), Port: e.Port}
	}
	for _, l := range n.Links {
		if err := b.Stopped(); err != nil {
			return d, err
		}
		d.Links = append(d.Links, NetLinkDoc{end(l.A), end(l.B), l})
	}
	return d, nil
}
