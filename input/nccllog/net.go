package nccllog

import (
	"strconv"
	"strings"

	"busbar.dev/cluster"
)

// network reads "Using network AWS Libfabric".
func (c *collector) network(r *Record) bool {
	name := strings.TrimSpace(strings.TrimPrefix(r.Text, "Using network "))
	if name == "" || len(name) > 80 {
		return false
	}
	if name, _, _ = strings.Cut(name, " ["); !c.networks.add(name, r.At, 1000) {
		c.drop("networks")
	}
	return true
}

// bootstrap reads "Bootstrap : Using eth0:10.0.0.1<0>"; 2.7 and before list
// several with numbers, of which the first is used.
func (c *collector) bootstrap(r *Record) bool {
	_, v, _ := strings.Cut(r.Text, "Using ")
	f := strings.Fields(v)
	if len(f) == 0 || !strings.Contains(f[0], ":") {
		return false
	}
	v = f[0]
	if strings.HasPrefix(v, "[") {
		_, v, _ = strings.Cut(v, "]")
	}
	if h := c.hosts[r.Host]; h != nil && h.Bootstrap == "" {
		h.Bootstrap = c.intern(v)
	}
	return true
}

// setting reads "NCCL_IB_HCA set by environment to mlx5". A whole number ends in
// a full stop.
func (c *collector) setting(r *Record) bool {
	name, value := "", ""
	for _, key := range []string{" set by environment to ", " set to ", " environment variable to "} {
		if n, v, ok := strings.Cut(r.Text, key); ok {
			name, value = n[strings.LastIndexByte(n, ' ')+1:], v
			break
		}
	}
	if value, _, _ = strings.Cut(value, " "); name == "" || strings.ToUpper(name) != name || !strings.Contains(name, "_") || len(name) > 80 {
		return false
	}
	if v, ok := strings.CutSuffix(value, "."); ok {
		if _, err := strconv.ParseInt(v, 10, 64); err == nil {
			value = v
		}
	}
	key := [2]string{name, value}
	if i, ok := c.env[key]; ok {
		c.log.Env[i].N++
		return true
	}
	if len(c.env) >= maxEnv {
		c.drop("settings")
		return true
	}
	name, value = c.intern(name), strings.Clone(value[:min(len(value), maxTextLen)])
	c.env[[2]string{name, value}] = len(c.log.Env)
	c.log.Env = append(c.log.Env, Env{name, value, 1, r.Host, r.At})
	return true
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

// net reads what a network says about its devices; other lines of it are noted.
func (c *collector) net(r *Record) bool {
	net, rest, ok := strings.Cut(strings.TrimPrefix(r.Text, "NET/"), ":")
	net, rest = strings.TrimSpace(net), strings.TrimSpace(rest)
	if !ok {
		c.note(r)
		return true
	}
	switch {
	case strings.HasPrefix(rest, "Using [") && (strings.HasPrefix(rest, "Using [RO]") || strings.Contains(rest, ":")):
		c.using(r, net, strings.TrimPrefix(rest, "Using "))
		return true
	case strings.HasPrefix(rest, "GPU Direct RDMA"):
		return c.gdr(r, net, rest)
	case strings.HasPrefix(rest, "Made virtual device"):
		return c.virtual(r, net, rest)
	case strings.HasPrefix(rest, "[") && strings.Contains(rest, "speed="):
		return c.detail(r, net, rest)
	}
	c.note(r)
	return true
}

// using reads the list of devices: "[0]mlx5_0:1/IB/SHARP [1]mlx5_1:1/RoCE [RO];
// OOB eth0:10.0.0.1<0>", or "[0]eth0:10.0.0.1<0>" for sockets. Releases 2.20 to
// 2.23 print fused devices as "[2]={[2] mlx5_2:1/IB, [3] mlx5_3:1/IB}".
func (c *collector) using(r *Record, net, list string) {
	list, _, _ = strings.Cut(list, ";")
	index := -1
	for _, word := range strings.FieldsFunc(strings.ReplaceAll(list, "]", "] "), func(r rune) bool { return r == ' ' || r == ',' || r == '{' || r == '}' || r == '=' }) {
		if strings.HasPrefix(word, "[") {
			index = number(strings.Trim(word, "[]"))
			continue
		}
		name, tail, ok := strings.Cut(word, ":")
		if !ok {
			continue
		}
		n := c.nic(r, net, name)
		if n == nil {
			continue
		}
		n.Index = index
		if addr, _, ok := strings.Cut(tail, "<"); ok { // a socket
			n.Addr = c.intern(addr)
			continue
		}
		port, layer, _ := strings.Cut(tail, "/")
		port, _, _ = strings.Cut(port, ":") // 2.30 adds rail and plane
		n.Port = max(number(port), 0)
		layer, sharp := strings.CutSuffix(layer, "/SHARP")
		n.Layer, n.SHARP = c.intern(layer), n.SHARP || sharp
	}
}

// gdr reads "GPU Direct RDMA Enabled for HCA 0 'mlx5_0'", with "(DMABUF)" or
// "(nvidia-peermem)" and a small letter in plugins, "(no module)" at the end in
// old releases.
func (c *collector) gdr(r *Record, net, rest string) bool {
	_, name, ok := strings.Cut(rest, "'")
	if !ok {
		return false
	}
	name, _, closed := strings.Cut(name, "'")
	low := strings.ToLower(rest)
	enabled, disabled := strings.Contains(low, "enabled"), strings.Contains(low, "disabled")
	if enabled == disabled || strings.ContainsAny(name, " \t") {
		return false
	}
	if !closed { // some plugins leave the second quote out, and a torn name looks the same
		if _, known := c.nics[[3]string{r.Host, net, name}]; !known {
			return true
		}
	}
	if strings.Contains(name, "+") {
		return true // a fused device
	}
	if n := c.nic(r, net, name); n != nil && n.GDR != cluster.Yes { // one way to reach the GPU is enough
		n.GDR = cluster.Bool(enabled)
	}
	return true
}

// virtual reads "Made virtual device [0] name=mlx5_0 speed=400000 ndevs=1"; a
// fused one is named a+b and is no device of the host.
func (c *collector) virtual(r *Record, net, rest string) bool {
	name, speed, devs := field(rest, "name="), number(field(rest, "speed=")), field(rest, "ndevs=")
	if name == "" || devs == "" {
		return false
	}
	if devs == "1" && !strings.Contains(name, "+") {
		if n := c.nic(r, net, name); n != nil && speed > 0 {
			n.Mbps = speed
		}
	}
	return true
}

// detail reads "[2] mlx5_2:uverbs2:1/RoCE provider=Mlx5 speed=400000 context=…
// pciPath=/sys/devices/…/0000:3b:00.0 ar=0".
func (c *collector) detail(r *Record, net, rest string) bool {
	head, rest, ok := strings.Cut(rest, "]")
	f := strings.Fields(rest)
	if !ok || len(f) < 2 {
		return false
	}
	parts := strings.Split(f[0], ":")
	n := c.nic(r, net, parts[0])
	if n == nil {
		return true
	}
	if n.Index < 0 {
		n.Index = number(strings.TrimPrefix(head, "["))
	}
	port, layer, _ := strings.Cut(parts[len(parts)-1], "/")
	if n.Layer == "" && layer != "" {
		n.Layer, n.Port = c.intern(layer), max(number(port), 0)
	}
	if speed := number(field(rest, "speed=")); speed > 0 {
		n.Mbps = speed
	}
	n.setPCI(c, field(rest, "pciPath="))
	return true
}

// populateNICs reads "ncclTopoPopulateNics : Filled mlx5_0 in topo with
// pciPath=/sys/devices/… keep=1 coll=(null)".
func (c *collector) populateNICs(r *Record) bool {
	_, rest, ok := strings.Cut(r.Text, "Filled ")
	name, _, _ := strings.Cut(rest, " ")
	if !ok || name == "" {
		return false
	}
	for _, net := range []string{"IB", "Socket"} {
		if i, known := c.nics[[3]string{r.Host, net, name}]; known {
			c.log.NICs[i].setPCI(c, field(rest, "pciPath="))
		}
	}
	return true
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

// result reads "init.cc:82 -> 3": a function that passes an error on.
func (c *collector) result(r *Record) bool {
	word, rest, _ := strings.Cut(r.Text, " ")
	code, ok := strings.CutPrefix(rest, "-> ")
	if !ok || !isSource(word) {
		return false
	}
	code, _, _ = strings.Cut(code, " ")
	if number(code) < 0 {
		return false
	}
	if !c.returns.add(word+" -> "+code, r.At, maxShapes) {
		c.drop("returns")
	}
	return true
}
