package ibstat

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/num"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
	"busbar.dev/unit"
)

// device is the name of an adapter, within the kernel's limit.
const device = `([\w.:-]{1,64})`

// Format is the output of one of the tools: headings, and below them lines of a key and its value.
type Format struct {
	name  string
	token string         // in every heading
	head  *lazyre.Regexp // of an adapter: its name, and the number of the port that the lines below are about
	port  *lazyre.Regexp // of a port below it
	// missing is said of a text without a heading.
	missing string
}

// Stat is ibstat. It says CA: 'mlx5_0' when it was asked for one port.
var Stat = &Format{
	name: "ibstat", token: " '",
	head:    lazyre.New(`^(?:CA|iWARP RNIC):? '` + device + `'$`),
	port:    lazyre.New(`(?i)^port (\d+):$`),
	missing: "no adapters; expected ibstat's output, such as CA 'mlx5_0' with its ports; give the whole output of ibstat",
}

// Status is ibstatus: a block for each port.
var Status = &Format{
	name: "ibstatus", token: "Infiniband device '",
	head: lazyre.New(`^Infiniband device '` + device + `' port ([1-9]|[1-5]\d|6[0-4]) status:$`),
	port: lazyre.New(`^$`), // none: a heading has it
	missing: "no ports; expected ibstatus' output, such as Infiniband device 'mlx5_0' port 1 status:; give the whole " +
		"output of ibstatus",
}

// Devinfo is ibv_devinfo. Rates are in it with -v only.
var Devinfo = &Format{
	name: "ibv_devinfo", token: "hca_id:",
	head:    lazyre.New(`^hca_id:\s*` + device + `$`),
	port:    lazyre.New(`(?i)^port:\s*(\d+)$`),
	missing: "no adapters; expected ibv_devinfo's output, such as hca_id: mlx5_0; give the whole output of ibv_devinfo -v",
}

// RDMA is rdma link: a line for each port.
var RDMA = &Format{
	name: "rdma link", token: "physical_state",
	head: lazyre.New(`^(?:link |\d+/\d+: )` + device +
		`/(\d+):? (?P<subnet>subnet_prefix )?(?:\S+ lid (?P<port_lid>\d+) ` +
		`(?:sm_lid (?P<sm_lid>\d+) )?lmc \d+ )?state (?P<state>\w+) physical_state`),
	port: lazyre.New(`^$`),
	missing: "no ports; expected the output of rdma link, such as link mlx5_0/1 state ACTIVE physical_state LINK_UP; " +
		"give the whole output of rdma link",
}

// Match reports whether the tool's output is somewhere in the text.
func (f *Format) Match(data []byte) bool {
	return lines.Find(data, f.token, func(line string) bool { return f.head.MatchString(strings.TrimSpace(line)) })
}

// Read reads the tool's output.
func (f *Format) Read(name string, r io.Reader) (*cluster.Fragment, error) {
	var h hosts
	var c *card
	p := new(cluster.Port)
	err := lines.Each(name, r, func(at int, line string) error {
		line = strings.TrimSpace(line)
		if m := f.head.FindStringSubmatch(line); m != nil {
			if h.addCard(c); h.count > maxCards {
				return fmt.Errorf("%s:%d: more than %d adapters; expected the output of %s on a few hosts; split the file", name,
					at, maxCards, f.name)
			}
			c, p = newCard(m[1], at), new(cluster.Port)
			if len(m) > 2 {
				p = c.addPort(m[2])
			}
			for i, key := range slices.Backward(f.head.SubexpNames()) { // the state before what depends on it
				if key != "" {
					c.set(p, key, m[i], f.name)
				}
			}
			return nil
		}
		if c == nil {
			return nil
		}
		if m := f.port.FindStringSubmatch(line); len(m) > 1 {
			p = c.addPort(m[1])
			return nil
		}
		key, value, _ := strings.Cut(line, ":")
		c.set(p, strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value), f.name)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if h.addCard(c); h.count == 0 {
		return nil, fmt.Errorf("%s: %s", name, f.missing)
	}
	frag := &cluster.Fragment{Format: f.name, Source: name}
	h.addTo(frag)
	return frag, nil
}

// set takes the value of a key of the card, or of its port at hand. source is the name of the tool.
func (c *card) set(p *cluster.Port, key, v, source string) {
	switch key {
	case "ca type", "iwarp rnic type":
		c.Model = board.Fact(word(v), source)
	case "firmware version", "fw_ver":
		c.NIC.Firmware = word(v)
	case "node guid", "node_guid":
		c.UUID = board.GUID(v)
	case "port guid":
		p.GUID = board.GUID(v)
	case "number of ports", "phys_port_cnt":
		c.stated = num.Int(v)
	case "state":
		setState(p, strings.ToLower(v))
	case "subnet":
		if p.Layer = "Ethernet"; v != "" {
			p.Layer = "InfiniBand"
		}
	case "link layer", "link_layer": // in full; ibstatus and simulators say IB
		switch strings.ToLower(v) {
		case "infiniband", "ib":
			p.Layer = "InfiniBand"
		case "ethernet":
			p.Layer = "Ethernet"
		}
	case "rate":
		rate, speed := board.PortRate(v)
		p.Rate, p.Speed = board.Fact(rate, source), speed
	case "base lid", "port_lid": // 59 or 0x3b; 0 means none
		n, _ := strconv.ParseUint(v, 0, 16)
		p.LID = int(n)
	case "sm lid", "sm_lid":
		n, err := strconv.ParseUint(v, 0, 16)
		if err == nil && n > 0 && p.State == cluster.Up {
			c.managers = append(c.managers, strconv.FormatUint(n, 10))
		}
	case "default gid", "gid[  0]", "gid[ 0]", "gid[0]": // fe80:…, and with -v fe80:…, RoCE v1
		gid, _, _ := strings.Cut(v, ",")
		p.GUID = board.PortGUID(gid)
	case "active_mtu": // 4096 (5)
		first, _, _ := strings.Cut(v, " ")
		p.MTU = board.Fact(num.Or(first, 256, 1<<16, 0), source)
	case "vendor_id":
		c.vendor = strings.ToLower(strings.TrimPrefix(word(v), "0x"))
	case "vendor_part_id":
		if n, err := strconv.ParseUint(v, 10, 32); err == nil {
			c.part = strconv.FormatUint(n, 10)
		}
	case "active_width": // 4X (2)
		lanes, _, _ := strings.Cut(v, "X")
		c.lanes = num.Or(lanes, 1, 12, 0)
	case "active_speed": // of a lane: 25.0 Gbps (32)
		speed, _ := board.PortRate(v)
		p.Rate = board.Fact(unit.Rate(c.lanes)*speed, source)
	}
}

// setState reads active, 4: active and port_active (4).
func setState(p *cluster.Port, v string) {
	switch {
	case strings.Contains(v, "down"), v == "nop":
		p.State = cluster.Down
	case strings.Contains(v, "init"), strings.Contains(v, "armed"), strings.Contains(v, "defer"):
		p.State = cluster.Init
	case strings.Contains(v, "active"):
		p.State = cluster.Up
	}
}

// word bounds a value that is kept as text: one word, printable, short.
func word(s string) string {
	s, _, _ = strings.Cut(s, " ")
	if s = s[:min(len(s), maxName)]; strings.ContainsFunc(s, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		return ""
	}
	return s
}
