package nccllog

import (
	"strconv"
	"strings"

	"busbar.dev/cluster"
)

// parseNetwork reads "Using network AWS Libfabric".
func parseNetwork(r *Record) any {
	name := strings.TrimSpace(strings.TrimPrefix(r.Text, "Using network "))
	if name == "" || len(name) > 80 {
		return nil
	}
	name, _, _ = strings.Cut(name, " [")
	return network(name)
}

func (c *collector) network(r *Record, name network) {
	if !c.networks.countText(string(name), r.At, 1000) {
		c.drop("networks")
	}
}

// parseBootstrap reads "Bootstrap : Using eth0:10.0.0.1<0>"; 2.7 and before list
// several with numbers, of which the first is used.
func parseBootstrap(r *Record) any {
	_, v, _ := strings.Cut(r.Text, "Using ")
	f := strings.Fields(v)
	if len(f) == 0 || !strings.Contains(f[0], ":") {
		return nil
	}
	v = f[0]
	if strings.HasPrefix(v, "[") {
		_, v, _ = strings.Cut(v, "]")
	}
	return bootstrap(v)
}

func (c *collector) bootstrap(r *Record, v bootstrap) {
	if h := c.hosts[r.Host]; h != nil && h.Bootstrap == "" {
		h.Bootstrap = c.intern(string(v))
	}
}

// parseSetting reads "NCCL_IB_HCA set by environment to mlx5". A whole number ends in
// a full stop.
func parseSetting(r *Record) any {
	name, value := "", ""
	for _, key := range []string{" set by environment to ", " set to ", " environment variable to "} {
		if n, v, ok := strings.Cut(r.Text, key); ok {
			name, value = n[strings.LastIndexByte(n, ' ')+1:], v
			break
		}
	}
	if value, _, _ = strings.Cut(value, " "); name == "" || strings.ToUpper(name) != name ||
		!strings.Contains(name, "_") || len(name) > 80 {
		return nil
	}
	if v, ok := strings.CutSuffix(value, "."); ok {
		if _, err := strconv.ParseInt(v, 10, 64); err == nil {
			value = v
		}
	}
	return &Setting{name, value}
}

func (c *collector) setting(r *Record, s *Setting) {
	if i, ok := c.env[*s]; ok {
		c.log.Env[i].N++
		return
	}
	if len(c.env) >= maxEnv {
		c.drop("settings")
		return
	}
	kept := Setting{c.intern(s.Name), strings.Clone(s.Value[:min(len(s.Value), maxTextLen)])}
	c.env[kept] = len(c.log.Env)
	c.log.Env = append(c.log.Env, Env{kept.Name, kept.Value, 1, r.Host, r.At})
}

// nic returns the entry of a device, or nil when there are too many.
func (c *collector) nic(r *Record, net, name string) *NIC {
	if name == "" || len(name) > 64 || len(net) > 64 {
		return nil
	}
	key := [3]string{r.Host, net, name}
	i, ok := c.nics[key]
	if !ok {
		if len(c.nics) >= maxNICs {
			c.drop("NICs")
			return nil
		}
		key = [3]string{r.Host, c.intern(net), c.intern(name)}
		i = len(c.log.NICs)
		c.nics[key] = i
		c.log.NICs = append(c.log.NICs, NIC{Host: r.Host, Net: key[1], Name: key[2], Index: -1, First: r.At})
	}
	return &c.log.NICs[i]
}

// parseNet reads what a network says about its devices; other lines of it are noted.
func parseNet(r *Record) any {
	net, rest, ok := strings.Cut(strings.TrimPrefix(r.Text, "NET/"), ":")
	net, rest = strings.TrimSpace(net), strings.TrimSpace(rest)
	if !ok {
		return note{}
	}
	switch {
	case strings.HasPrefix(rest, "Using [") && (strings.HasPrefix(rest, "Using [RO]") || strings.Contains(rest, ":")):
		return parseDevices(net, strings.TrimPrefix(rest, "Using "))
	case strings.HasPrefix(rest, "GPU Direct RDMA"):
		return parseGDR(net, rest)
	case strings.HasPrefix(rest, "Made virtual device"):
		return parseVirtual(net, rest)
	case strings.HasPrefix(rest, "[") && strings.Contains(rest, "speed="):
		return parseDetail(net, rest)
	}
	return note{}
}

// parseDevices reads the list of devices: "[0]mlx5_0:1/IB/SHARP [1]mlx5_1:1/RoCE [RO];
// OOB eth0:10.0.0.1<0>", or "[0]eth0:10.0.0.1<0>" for sockets. Releases 2.20 to
// 2.23 print fused devices as "[2]={[2] mlx5_2:1/IB, [3] mlx5_3:1/IB}".
func parseDevices(net, list string) any {
	d := &deviceList{net: net}
	list, _, _ = strings.Cut(list, ";")
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
		n := NIC{Name: name, Index: index, Port: -1}
		if addr, _, ok := strings.Cut(tail, "<"); ok { // a socket
			n.Addr = addr
			d.nics = append(d.nics, n)
			continue
		}
		port, layer, _ := strings.Cut(tail, "/")
		port, _, _ = strings.Cut(port, ":") // 2.30 adds rail and plane
		n.Port = max(number(port), 0)
		n.Layer, n.SHARP = strings.CutSuffix(layer, "/SHARP")
		d.nics = append(d.nics, n)
	}
	return d
}

func (c *collector) devices(r *Record, d *deviceList) {
	for i := range d.nics {
		from := &d.nics[i]
		n := c.nic(r, d.net, from.Name)
		if n == nil {
			continue
		}
		n.Index = from.Index
		if from.Port < 0 { // a socket
			n.Addr = c.intern(from.Addr)
			continue
		}
		n.Port, n.Layer, n.SHARP = from.Port, c.intern(from.Layer), n.SHARP || from.SHARP
	}
}

// gdrState is whether a NIC reaches GPU memory.
type gdrState struct {
	net, name string
	on        bool
	open      bool // without its second quote, so that the name may be torn
}

// parseGDR reads "GPU Direct RDMA Enabled for HCA 0 'mlx5_0'", with "(DMABUF)" or
// "(nvidia-peermem)" and a small letter in plugins, "(no module)" at the end in
// old releases.
func parseGDR(net, rest string) any {
	_, name, ok := strings.Cut(rest, "'")
	if !ok {
		return nil
	}
	name, _, closed := strings.Cut(name, "'")
	low := strings.ToLower(rest)
	enabled, disabled := strings.Contains(low, "enabled"), strings.Contains(low, "disabled")
	if enabled == disabled || strings.ContainsAny(name, " \t") {
		return nil
	}
	return &gdrState{net, name, enabled, !closed}
}

func (c *collector) gdr(r *Record, g *gdrState) {
	if g.open { // some plugins leave the second quote out, and a torn name looks the same
		if _, known := c.nics[[3]string{r.Host, g.net, g.name}]; !known {
			return
		}
	}
	if strings.Contains(g.name, "+") {
		return // a fused device
	}
	if n := c.nic(r, g.net, g.name); n != nil && n.GDR != cluster.Yes { // one way to reach the GPU is enough
		n.GDR = cluster.Bool(g.on)
	}
}

// deviceDetail is what a network says about one device.
type deviceDetail struct {
	net, path string
	NIC
}

// parseVirtual reads "Made virtual device [0] name=mlx5_0 speed=400000 ndevs=1"; a
// fused one is named a+b and is no device of the host.
func parseVirtual(net, rest string) any {
	name, speed, devs := field(rest, "name="), number(field(rest, "speed=")), field(rest, "ndevs=")
	if name == "" || devs == "" {
		return nil
	}
	if devs != "1" || strings.Contains(name, "+") {
		return known{}
	}
	return &deviceDetail{net, "", NIC{Name: name, Index: -1, Mbps: speed}}
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
	d := &deviceDetail{
		net, field(rest, "pciPath="),
		NIC{Name: parts[0], Index: number(strings.TrimPrefix(head, "[")), Mbps: number(field(rest, "speed="))},
	}
	port, layer, _ := strings.Cut(parts[len(parts)-1], "/")
	d.Layer, d.Port = layer, max(number(port), 0)
	return d
}

func (c *collector) detail(r *Record, d *deviceDetail) {
	n := c.nic(r, d.net, d.Name)
	if n == nil {
		return
	}
	if n.Index < 0 {
		n.Index = d.Index
	}
	if n.Layer == "" && d.Layer != "" {
		n.Layer, n.Port = c.intern(d.Layer), d.Port
	}
	if d.Mbps > 0 {
		n.Mbps = d.Mbps
	}
	n.setPCI(c, d.path)
}

// nicPath is where in sysfs NCCL found a NIC.
type nicPath struct{ name, path string }

// parseNICPath reads "ncclTopoPopulateNics : Filled mlx5_0 in topo with
// pciPath=/sys/devices/… keep=1 coll=(null)".
func parseNICPath(r *Record) any {
	_, rest, ok := strings.Cut(r.Text, "Filled ")
	name, _, _ := strings.Cut(rest, " ")
	if !ok || name == "" {
		return nil
	}
	return &nicPath{name, field(rest, "pciPath=")}
}

func (c *collector) nicPath(r *Record, p *nicPath) {
	for _, net := range []string{"IB", "Socket"} {
		if i, known := c.nics[[3]string{r.Host, net, p.name}]; known {
			c.log.NICs[i].setPCI(c, p.path)
		}
	}
}

// setPCI takes the last part of a path in sysfs. NCCL cuts the function off, so
// that two ports of one card have one address.
func (n *NIC) setPCI(c *collector, path string) {
	if n.PCI != "" || !strings.HasPrefix(path, "/sys/") {
		return
	}
	if p, err := cluster.ParsePCI(path[strings.LastIndexByte(path, '/')+1:]); err == nil {
		n.PCI = cluster.PCI(c.intern(string(p)))
	}
}

// field returns the word after a key such as "speed=".
func field(s, key string) string {
	_, v, ok := strings.Cut(s, key)
	if !ok {
		return ""
	}
	v, _, _ = strings.Cut(v, " ")
	return v
}

func parseReturn(r *Record) any {
	word, rest, _ := strings.Cut(r.Text, " ")
	code, ok := strings.CutPrefix(rest, "-> ")
	if !ok || !isSource(word) {
		return nil
	}
	code, _, _ = strings.Cut(code, " ")
	if number(code) < 0 {
		return nil
	}
	return &returned{word, code}
}

func (c *collector) returned(r *Record, m *returned) {
	if !c.returns.countText(m.place+" -> "+m.code, r.At, maxShapes) {
		c.drop("returns")
	}
}
