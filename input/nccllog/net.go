package nccllog

import (
	"cmp"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
)

// Devices is what a line says about devices of a network.
type Devices struct {
	Net    string // "": any of NCCL's own
	NICs   []NIC
	OOB    string // the address that the processes meet at
	listed bool   // it is the network's own list
	weak   bool   // the name may be torn: only a device that is known
}

// deviceLines are lines about one device, tried in order. Names in quotes may be torn where the second one is missing,
// which some plugins leave out.
var deviceLines = []shape{
	// Bootstrap : Using eth0:10.0.0.1<0>
	{prefix: "Bootstrap", within: "Using ", parse: device(`Using +[^\s:]+:(?P<oob>[^<]*)`, false)},
	// NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0', with (DMABUF), (nvidia-peermem) or (no module)
	{
		prefix: "NET/", within: "'",
		parse: device(`^NET/(?P<net>[^:]*?) *: *GPU Direct RDMA .*?(?i:(?P<gdr>enabled|disabled)).*?'`+
			`(?P<name>[^'\s]+)(?:'|$)`, false),
	},
	// NET/IB : Made virtual device [0] name=mlx5_0 speed=400000 ndevs=1
	{
		prefix: "NET/", within: " ndevs=1",
		parse: device(`^NET/(?P<net>[^:]*?) *: *Made virtual device.* name=(?P<name>\S+) speed=(?P<mbps>\d+)`+
			`.* ndevs=1\b`, false),
	},
	// NET/IB: [2] mlx5_2:uverbs2:1/RoCE provider=Mlx5 speed=400000 context=… pciPath=/sys/devices/…/0000:3b:00.0 ar=0
	{
		prefix: "NET/", within: "speed=",
		parse: device(`^NET/(?P<net>[^:]*?) *: *\[(?P<index>\d+)\] *(?P<name>[^:\s]+)(?::\S*)?:(?P<port>\d+)/`+
			`(?P<layer>\S+) .*speed=(?P<mbps>\d+)(?:.*pciPath=/sys/\S*/(?P<pci>\S+))?`, false),
	},
	{prefix: "NET/OFI ", within: " nics)", parse: parseOFI},
	// ncclTopoPopulateNics : Filled mlx5_0 in topo with pciPath=/sys/devices/… keep=1 coll=(null)
	{
		prefix: "ncclTopoPopulateNics", within: "pciPath=",
		parse: device(`Filled (?P<name>\S+) (?:.*pciPath=/sys/\S*/(?P<pci>\S+))?`, true),
	},
}

// providers are those of libfabric that drive NICs, and the networks that these are of.
var providers = map[string]cluster.NetKind{"efa": cluster.EFA, "cxi": cluster.Slingshot}

var ofiLine = lazyre.New(`rovider is (\w+)\b.*\(found (\d{1,2}) nics\)`)

// parseOFI reads "NET/OFI Selected Provider is efa (found 4 nics)", which names none of them.
func parseOFI(r *Record) any {
	m := ofiLine.FindStringSubmatch(r.Text)
	if m == nil || providers[m[1]] == "" {
		return nil
	}
	d := &Devices{Net: "OFI", listed: true}
	for i := range number(m[2]) {
		d.NICs = append(d.NICs, NIC{Name: m[1] + strconv.Itoa(i), Index: i, Layer: m[1]})
	}
	return d
}

// device reads a line by the named groups of an expression. A fused device is named a+b and is none of the host.
func device(pattern string, weak bool) func(r *Record) any {
	line := lazyre.New(pattern)
	return func(r *Record) any {
		g := line.Groups(r.Text)
		switch {
		case g == nil:
			return nil
		case g["name"] == "":
			return &Devices{OOB: g["oob"]}
		case strings.Contains(g["name"], "+"):
			return note("")
		}
		n := NIC{
			Name: g["name"], Index: number(g["index"]), Port: max(number(g["port"]), 0), Layer: g["layer"],
			Mbps: max(number(g["mbps"]), 0),
		}
		torn := weak
		if gdr := g["gdr"]; gdr != "" {
			n.GDR = cluster.Bool(strings.EqualFold(gdr, "enabled"))
			torn = !strings.Contains(r.Text, n.Name+"'")
		}
		n.PCI, _ = cluster.ParsePCI(g["pci"]) // two ports of one card have one address: NCCL cuts the function off
		return &Devices{Net: g["net"], NICs: []NIC{n}, weak: torn}
	}
}

// parseNet reads the list of a network's devices; of its other lines nothing is used.
func parseNet(r *Record) any {
	if word, _, _ := strings.Cut(r.Text[len("NET/"):], " "); strings.Trim(word, "-0123456789abcdefABCDEF") == "" {
		return nil // a row of paths that lost its end
	}
	net, rest, _ := strings.Cut(strings.TrimPrefix(r.Text, "NET/"), ":")
	rest = strings.TrimSpace(rest)
	if strings.HasPrefix(rest, "GPU Direct RDMA") {
		return nil // of a device whose name is lost
	}
	list, ok := strings.CutPrefix(rest, "Using [")
	if ok && (strings.HasPrefix(list, "RO]") || strings.Contains(list, ":")) {
		return ParseDevices(strings.TrimSpace(net), "["+list)
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
