package ibstat

import (
	"io"
	"net/netip"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lines"
)

// gidRow is a row of show_gids: mlx5_0 1 3 0000:…:ffff:0a00:0001 10.0.0.1 v2 ens1f0np0, without an IPv4 address where
// there is none.
type gidRow struct {
	device  string
	port    int
	version string // v1, v2: RoCE; "" over InfiniBand
	netdev  string
}

// MatchGIDs reports whether show_gids' table is in the text.
func MatchGIDs(data []byte) bool {
	return lines.Find(data, ":", func(line string) bool {
		_, ok := gidLine(line)
		return ok
	})
}

func gidLine(line string) (r gidRow, ok bool) {
	f := strings.Fields(line)
	if len(f) < 4 || len(f) > 7 || !deviceName(f[0]) || strings.Count(f[3], ":") < 2 {
		return r, false
	}
	port, err1 := strconv.Atoi(f[1])
	_, err2 := strconv.ParseUint(f[2], 10, 16)
	_, err3 := netip.ParseAddr(f[3])
	if err1 != nil || err2 != nil || err3 != nil || port < 1 || port > maxPorts {
		return r, false
	}
	r = gidRow{device: f[0], port: port}
	for i, w := range f[4:] {
		switch {
		case w == "v1" || w == "v2":
			r.version = w
		case r.version != "" && i == len(f)-5:
			r.netdev = w
		}
	}
	return r, true
}

// ReadGIDs reads show_gids' table: which network interface belongs to which RDMA device, and that its ports speak RoCE.
func ReadGIDs(name string, r io.Reader) (*cluster.Fragment, error) {
	h := hosts{format: "show_gids", source: name}
	var c *card
	var old []string // devices without a RoCE v2 address
	v2 := map[string]bool{}
	err := h.read(r, func(line string, at int) {
		row, ok := gidLine(line)
		if !ok {
			return
		}
		if c == nil || c.label != row.device {
			h.addCard(c)
			c = &card{label: row.device, line: at}
		}
		p := c.port(row.port)
		if p == nil {
			p = c.addPort(row.port)
		}
		if p == nil {
			return
		}
		if row.version != "" {
			p.Layer = "Ethernet"
			if _, known := v2[row.device]; !known {
				v2[row.device] = false
				old = append(old, row.device)
			}
			v2[row.device] = v2[row.device] || row.version == "v2"
		}
		if row.netdev != "" {
			p.Label = row.netdev
		}
	})
	if err != nil {
		return nil, err
	}
	h.addCard(c)
	f, err := h.fragment("no addresses; expected show_gids' table, such as mlx5_0 1 3 0000:…:ffff:0a00:0001 10.0.0.1 " +
		"v2 ens1f0np0; give its whole output")
	if err != nil {
		return nil, err
	}
	for _, d := range old {
		if !v2[d] {
			f.Warnf(0, d, "has RoCE v1 addresses only, which are not routed: NCCL needs a RoCE v2 entry (NCCL_IB_GID_INDEX)")
		}
	}
	return f, nil
}
