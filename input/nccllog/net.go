package nccllog

import (
	"cmp"
	"strings"

	"busbar.dev/cluster"
)

// Devices is what a line says about devices of a network.
type Devices struct {
	Net    string // "": any of NCCL's own
	NICs   []NIC
	OOB    string // the address that the processes meet at
	listed bool   // it is the network's own list
	weak   bool   // the name may be torn: only a device that is known
}

// parseBootstrap reads "Bootstrap : Using eth0:10.0.0.1<0>".
func parseBootstrap(r *Record) any {
	_, using, _ := strings.Cut(r.Text, "Using ")
	name, addr, ok := strings.Cut(strings.TrimLeft(using, " "), ":")
	if !ok || strings.Contains(name, " ") {
		return nil
	}
	addr, _, _ = strings.Cut(addr, "<")
	return &Devices{OOB: addr}
}

// parseNet reads what a network says about its devices; of its other lines nothing is used.
func parseNet(r *Record) any {
	if word, _, _ := strings.Cut(r.Text[len("NET/"):], " "); strings.Trim(word, "-0123456789abcdefABCDEF") == "" {
		return nil // a row of paths that lost its end
	}
	net, rest, _ := strings.Cut(strings.TrimPrefix(r.Text, "NET/"), ":")
	net, rest = strings.TrimSpace(net), strings.TrimSpace(rest)
	switch {
	case strings.HasPrefix(rest, "Using [") && (strings.HasPrefix(rest, "Using [RO]") || strings.Contains(rest, ":")):
		return ParseDevices(net, strings.TrimPrefix(rest, "Using "))
	case strings.HasPrefix(rest, "GPU Direct RDMA"):
		return parseGDR(net, rest)
	case strings.HasPrefix(rest, "Made virtual device"):
		return parseVirtual(net, rest)
	case strings.HasPrefix(rest, "[") && strings.Contains(rest, "speed="):
		return parseDetail(net, rest)
	}
	return note("")
}

// ParseDevices reads the list of devices: "[0]mlx5_0:1/IB/SHARP [1]mlx5_1:1/RoCE [RO];
// OOB eth0:10.0.0.1<0>", or "[0]eth0:10.0.0.1<0>" for sockets. Releases 2.20 to
// 2.23 print fused devices as "[2]={[2] mlx5_2:1/IB, [3] mlx5_3:1/IB}".
func ParseDevices(net, list string) *Devices {
	d := &Devices{Net: net, listed: true}
	list, oob, _ := strings.Cut(list, ";")
	_, oob, _ = strings.Cut(oob, ":")
	d.OOB, _, _ = strings.Cut(oob, "<")
	index := -1
	for _, word := range strings.FieldsFunc(strings.ReplaceAll(list, "]", "] "),
		func(r rune) bool { return r == ' ' || r == ',' || r == '{' || r == '}' || r == '=' }) {
		if strings.HasPrefix(word, "[") {
			index = number(strings.Trim(word, "[]"))
			continue
		}
		name, tail, ok := strings.Cut(word, ":")
		if !ok {
			continue
		}
		n := NIC{Name: name, Index: index}
		if addr, _, ok := strings.Cut(tail, "<"); ok { // a socket
			n.Addr = addr
		} else {
			port, layer, _ := strings.Cut(tail, "/")
			port, _, _ = strings.Cut(port, ":") // 2.30 adds rail and plane
			n.Port = max(number(port), 0)
			n.Layer, n.SHARP = strings.CutSuffix(layer, "/SHARP")
		}
		d.NICs = append(d.NICs, n)
	}
	return d
}

// parseGDR reads "GPU Direct RDMA Enabled for HCA 0 'mlx5_0'", with "(DMABUF)" or
// "(nvidia-peermem)" and a small letter in plugins, "(no module)" at the end in
// old releases.
func parseGDR(net, rest string) any {
	_, name, ok := strings.Cut(rest, "'")
	name, _, closed := strings.Cut(name, "'")
	low := strings.ToLower(rest)
	enabled := strings.Contains(low, "enabled")
	if !ok || enabled == strings.Contains(low, "disabled") || strings.ContainsAny(name, " \t") {
		return nil
	}
	if strings.Contains(name, "+") {
		return note("") // a fused device
	}
	// some plugins leave the second quote out, and a torn name looks the same
	return &Devices{Net: net, NICs: []NIC{{Name: name, Index: -1, GDR: cluster.Bool(enabled)}}, weak: !closed}
}

// parseVirtual reads "Made virtual device [0] name=mlx5_0 speed=400000 ndevs=1"; a
// fused one is named a+b and is no device of the host.
func parseVirtual(net, rest string) any {
	name, speed, devs := field(rest, "name="), number(field(rest, "speed=")), field(rest, "ndevs=")
	if name == "" || devs == "" {
		return nil
	}
	if devs != "1" || strings.Contains(name, "+") {
		return note("")
	}
	return &Devices{Net: net, NICs: []NIC{{Name: name, Index: -1, Mbps: max(speed, 0)}}}
}

// parseDetail reads "[2] mlx5_2:uverbs2:1/RoCE provider=Mlx5 speed=400000 context=…
// pciPath=/sys/devices/…/0000:3b:00.0 ar=0".
func parseDetail(net, rest string) any {
	head, rest, ok := strings.Cut(rest, "]")
	f := strings.Fields(rest)
	if !ok || len(f) < 2 {
		return nil
	}
	parts := strings.Split(f[0], ":")
	port, layer, _ := strings.Cut(parts[len(parts)-1], "/")
	return &Devices{Net: net, NICs: []NIC{{
		Name: parts[0], Index: number(strings.TrimPrefix(head, "[")), Port: max(number(port), 0), Layer: layer,
		Mbps: max(number(field(rest, "speed=")), 0), PCI: sysPCI(rest),
	}}}
}

// parseNICPath reads "ncclTopoPopulateNics : Filled mlx5_0 in topo with
// pciPath=/sys/devices/… keep=1 coll=(null)".
func parseNICPath(r *Record) any {
	name := field(r.Text, "Filled ")
	if name == "" {
		return nil
	}
	return &Devices{NICs: []NIC{{Name: name, Index: -1, PCI: sysPCI(r.Text)}}, weak: true}
}

// devices adds what a line says to what is known of its devices.
func (c *Reader) devices(r *Record, d *Devices) {
	nets := []string{d.Net}
	if d.Net == "" {
		nets = []string{"IB", "Socket"}
	}
	for i := range d.NICs {
		for _, net := range nets {
			if n := c.nic(r.Host, net, d.NICs[i].Name, d.weak); n != nil {
				c.describe(n, &d.NICs[i], d.listed)
			}
		}
	}
}

// nic returns the entry of a device, nil when it is not known and weakly named, or there are too many.
func (c *Reader) nic(host, net, name string, weak bool) *NIC {
	i, ok := c.nics[[3]string{host, net, name}]
	if !ok {
		if weak || name == "" || len(name) > 64 || len(net) > 64 {
			return nil
		}
		if len(c.nics) >= maxNICs {
			c.drop("NICs")
			return nil
		}
		key := [3]string{host, c.intern(net), c.intern(name)}
		i = len(c.log.NICs)
		c.nics[key] = i
		c.log.NICs = append(c.log.NICs, NIC{Host: host, Net: key[1], Name: key[2], Index: -1})
	}
	return &c.log.NICs[i]
}

// describe adds what a line says of a device. The network's list counts more than other lines.
func (c *Reader) describe(n, from *NIC, listed bool) {
	if listed || n.Index < 0 {
		n.Index = from.Index
	}
	if listed && from.Addr == "" || n.Layer == "" && from.Layer != "" {
		n.Layer, n.Port = c.intern(from.Layer), from.Port
	}
	if from.Addr != "" {
		n.Addr = c.intern(from.Addr)
	}
	n.SHARP = n.SHARP || from.SHARP
	n.Mbps, n.PCI = cmp.Or(from.Mbps, n.Mbps), cmp.Or(n.PCI, from.PCI)
	if n.GDR != cluster.Yes { // one way to reach the GPU is enough
		n.GDR = cmp.Or(from.GDR, n.GDR)
	}
}

// sysPCI is the last part of a path in sysfs. NCCL cuts the function off, so
// that two ports of one card have one address.
func sysPCI(text string) (p cluster.PCI) {
	if path := field(text, "pciPath="); strings.HasPrefix(path, "/sys/") {
		p, _ = cluster.ParsePCI(path[strings.LastIndexByte(path, '/')+1:])
	}
	return p
}

// field returns the word after a key such as "speed=".
func field(s, key string) string {
	_, v, _ := strings.Cut(s, key)
	v, _, _ = strings.Cut(v, " ")
	return v
}
