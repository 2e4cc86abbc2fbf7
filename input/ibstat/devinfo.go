package ibstat

import (
	"io"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/internal/lines"
	"busbar.dev/unit"
)

// MatchDevinfo reports whether ibv_devinfo's output is somewhere in the text.
func MatchDevinfo(data []byte) bool {
	return lines.Find(data, "hca_id:", func(line string) bool { return hcaLine(line) != "" })
}

// hcaLine reads "hca_id:	mlx4_0".
func hcaLine(line string) string {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "hca_id:")
	if rest = strings.TrimSpace(rest); ok && deviceName(rest) {
		return strings.Clone(rest)
	}
	return ""
}

// ReadDevinfo reads ibv_devinfo's output. Rates are in it with -v only.
func ReadDevinfo(name string, r io.Reader) (*cluster.Fragment, error) {
	d := devinfo{hosts: hosts{format: "ibv_devinfo", source: name}}
	if err := d.read(r, d.line); err != nil {
		return nil, err
	}
	d.finish()
	return d.fragment("no adapters; expected ibv_devinfo's output, such as hca_id: mlx5_0; give the whole output of " +
		"ibv_devinfo -v")
}

type devinfo struct {
	hosts
	c     *card
	p     *cluster.Port
	lanes int
	lane  float64 // Gb/s
}

// finish closes the port and the card at hand.
func (d *devinfo) finish() {
	d.closePort()
	d.addCard(d.c)
	d.c = nil
}

// closePort turns width and speed into a rate.
func (d *devinfo) closePort() {
	if d.p != nil && d.lanes > 0 && d.lane > 0 {
		d.p.Rate = cluster.FromRead(unit.Rate(float64(d.lanes)*d.lane)*unit.Gbps, d.format)
	}
	d.p, d.lanes, d.lane = nil, 0, 0
}

func (d *devinfo) line(line string, num int) {
	if label := hcaLine(line); label != "" {
		d.finish()
		d.c = &card{label: label, line: num}
		return
	}
	key, value, ok := keyValue(line)
	if d.c == nil || !ok {
		return
	}
	if key == "port" {
		d.closePort()
		n, _ := strconv.Atoi(value)
		d.p = d.c.addPort(n)
		return
	}
	if !d.c.infoCard(key, value) && d.p != nil {
		d.infoPort(key, value)
	}
}

// infoCard takes a line about the adapter as a whole.
func (c *card) infoCard(key, value string) bool {
	switch key {
	case "fw_ver":
		c.firmware = word(value)
	case "node_guid":
		c.guid = board.GUID(value)
	case "vendor_id":
		c.vendor = strings.ToLower(strings.TrimPrefix(word(value), "0x"))
	case "vendor_part_id":
		if n, err := strconv.ParseUint(value, 10, 32); err == nil {
			c.part = strconv.FormatUint(n, 10)
		}
	case "phys_port_cnt":
		c.stated, _ = strconv.Atoi(value)
	default:
		return false
	}
	return true
}

func (d *devinfo) infoPort(key, value string) {
	switch key {
	case "state":
		d.p.State = state(value)
	case "active_mtu":
		d.p.MTU = mtu(value, d.format)
	case "port_lid":
		d.p.LID = lid(value)
	case "link_layer":
		d.p.Layer = layer(value)
	case "active_width": // 4X (2)
		n, _, _ := strings.Cut(value, "X")
		if v, err := strconv.Atoi(n); err == nil && v > 0 && v <= 12 {
			d.lanes = v
		}
	case "active_speed": // 25.0 Gbps (32)
		n, _, _ := strings.Cut(value, " ")
		if v, err := strconv.ParseFloat(n, 64); err == nil && v > 0 && v <= 1e4 {
			d.lane = v
		}
	case "gid[  0]", "gid[ 0]", "gid[0]": // with -v: fe80:…, RoCE v1
		gid, _, _ := strings.Cut(value, ",")
		d.p.GUID = board.PortGUID(gid)
	}
}
