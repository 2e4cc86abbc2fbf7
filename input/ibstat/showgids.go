package ibstat

import (
	"io"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
)

// gidRow is a row of show_gids: mlx5_0 1 3 0000:…:ffff:0a00:0001 10.0.0.1 v2 ens1f0np0, without an IPv4 address where
// there is none, and without a version over InfiniBand.
var gidRow = lazyre.New(`^\s*` + device + `\s+(\d+)\s+\d+\s+(?:[[:xdigit:]]{4}:){7}[[:xdigit:]]{4}` +
	`(?:\s+[\d.]+)?(?:\s+(v[12])(?:\s+(\S+))?)?\s*$`)

// MatchGIDs reports whether show_gids' table is in the text.
func MatchGIDs(data []byte) bool { return lines.Find(data, ":", gidRow.MatchString) }

// ReadGIDs reads show_gids' table: which network interface belongs to which RDMA device, and that its ports speak RoCE.
func ReadGIDs(name string, r io.Reader) (*cluster.Fragment, error) {
	h := hosts{format: "show_gids", source: name}
	var c *card
	var roce []string // devices with a RoCE address
	v2 := map[string]bool{}
	err := h.read(r, func(line string, at int) {
		m := gidRow.FindStringSubmatch(line)
		if m == nil {
			return
		}
		if c == nil || c.Label != m[1] {
			h.addCard(c)
			c = newCard(m[1], at)
		}
		p := c.addPort(m[2])
		if m[3] != "" {
			p.Layer = "Ethernet"
			if _, known := v2[c.Label]; !known {
				roce = append(roce, c.Label)
			}
			v2[c.Label] = v2[c.Label] || m[3] == "v2"
		}
		if m[4] != "" {
			p.Label = m[4]
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
	for _, d := range roce {
		if !v2[d] {
			f.Warnf(0, d, "has RoCE v1 addresses only, which are not routed: NCCL needs a RoCE v2 entry (NCCL_IB_GID_INDEX)")
		}
	}
	return f, nil
}
