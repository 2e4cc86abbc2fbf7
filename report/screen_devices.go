package report

import (
	"fmt"
	"math"

	"busbar.dev/cluster"
	"busbar.dev/internal/svg"
	"busbar.dev/internal/words"
)

// Sizes of nodes that show their devices.
const (
	maxDeviceRow  = 1300.0 // width beyond which nodes are boxes
	maxDeviceHost = 16
	devicesPerRow = 18
	devicePitch   = 26.0
	deviceH       = 19.0
	deviceRowH    = 22.0
	nodeGap       = 14.0
	maxDevices    = 144 // of a kind in one node
)

// fewHosts reports whether there is room for the devices of every node.
func fewHosts(c *cluster.Cluster) bool {
	if len(c.Hosts) == 0 || len(c.Hosts) > maxDeviceHost {
		return false
	}
	w := 0.0
	for h := range c.Hosts {
		t := c.TypeOf(h)
		if t == nil {
			return false
		}
		w += nodeSize(t).w + nodeGap
	}
	return w <= maxDeviceRow
}

// nodeSize is the box that a node needs for its devices.
func nodeSize(t *cluster.NodeType) box {
	gpus, nics := min(t.Count(cluster.GPU), maxDevices), min(t.Count(cluster.NIC), maxDevices)
	n := min(max(gpus, nics, 4), devicesPerRow)
	return box{w: float64(n)*devicePitch + 18, h: 64 + deviceRowH*float64(deviceRows(gpus)+deviceRows(nics))}
}

func deviceRows(n int) int { return (n + devicesPerRow - 1) / devicesPerRow }

// deviceRow is nodes that show their NICs and, below them, their GPUs.
type deviceRow struct {
	*hostRow
	nodes []deviceNode
}

type deviceNode struct {
	host       int
	name       string
	t          *cluster.NodeType
	box        box
	nics, gpus []box
}

func newDeviceRow(net *strip, row *hostRow) *deviceRow {
	c := net.v.c
	r := &deviceRow{hostRow: row, nodes: make([]deviceNode, len(c.Hosts))}
	for h := range c.Hosts {
		r.nodes[h] = deviceNode{host: h, name: c.Hosts[h].Name, t: c.TypeOf(h), box: nodeSize(c.TypeOf(h))}
	}
	return r
}

func (r *deviceRow) width() float64 {
	w := -nodeGap
	for i := range r.nodes {
		w += r.nodes[i].box.w + nodeGap
	}
	return w
}

func (r *deviceRow) lay(x, y, w float64) float64 {
	gap := math.Min(80, (w-r.width())/float64(len(r.nodes)+1)) + nodeGap
	x += (w - r.width() - (gap-nodeGap)*float64(len(r.nodes)-1)) / 2
	bottom := y
	for i := range r.nodes {
		n := &r.nodes[i]
		n.lay(x, y)
		x += n.box.w + gap
		bottom = math.Max(bottom, n.box.bottom())
	}
	return bottom
}

func (n *deviceNode) lay(x, y float64) {
	n.box.x, n.box.y = x, y
	row := func(count int, top float64) []box {
		if count = min(count, maxDevices); count == 0 {
			return nil
		}
		pitch := (n.box.w - 16) / float64(min(devicesPerRow, count))
		w := math.Min(24, pitch-2)
		list := make([]box, count)
		for i := range list {
			list[i] = box{x + 8 + (float64(i%devicesPerRow)+0.5)*pitch - w/2, top + deviceRowH*float64(i/devicesPerRow), w, deviceH}
		}
		return list
	}
	nics := n.t.Count(cluster.NIC)
	n.nics = row(nics, y+8)
	n.gpus = row(n.t.Count(cluster.GPU), y+28+deviceRowH*float64(deviceRows(min(nics, maxDevices))))
}

// port is where the cable of a NIC ends: at the NIC, or at the node where NICs stand in several rows.
func (n *deviceNode) port(nic int) *box {
	if len(n.nics) > devicesPerRow {
		return &n.box
	}
	for i, d := range n.t.Of(cluster.NIC) {
		if d == nic {
			return &n.nics[i]
		}
	}
	return nil
}

func (r *deviceRow) wires(cloud *box) []wire {
	routes := cluster.NewRoutes(r.net.v.c)
	var out []wire
	for i := range r.nodes {
		out = append(out, r.net.hostCables(routes, cloud, r.nodes[i].host, r.nodes[i].port)...)
	}
	return out
}

func (r *deviceRow) draw(pic *picture) {
	for i := range r.nodes {
		r.nodes[i].draw(pic)
	}
}

func (n *deviceNode) draw(pic *picture) {
	b := n.box
	gpus, nics := n.t.Of(cluster.GPU), n.t.Of(cluster.NIC)
	pic.Open("host devices", fmt.Sprintf("%s: %s, %s", n.name, words.Plural(len(gpus), "GPU"), words.Plural(len(nics), "NIC")))
	if n.name != "" {
		pic.about("node/" + n.name)
	}
	pic.Rect(b.x, b.y, b.w, b.h, 6, svg.Paint{Fill: panelFill, Stroke: idleLine, Width: 1.3})
	ty := svg.Type{Size: boxType, Fill: ink, Anchor: svg.Middle, Bold: true}
	pic.Text(b.mid(), b.bottom()-6, svg.FitEnds(n.name, ty, b.w-8), ty)
	pic.Close()
	if joined := fastSets(n.t); len(joined) > 0 {
		pic.note(joined[0].kind.String())
		pic.Open("link "+joined[0].kind.String(), joined[0].name+" between the GPUs")
		pic.about("bus/" + n.name)
		pic.Line(b.x+8, b.bottom()-24, b.right()-8, b.bottom()-24, svg.Paint{Stroke: linkColor(joined[0].kind), Width: 3})
		pic.Close()
	}
	n.devices(pic, "nic", nics, n.nics, svg.Paint{Fill: netFill, Stroke: netViol, Width: 1.2})
	n.devices(pic, "gpu", gpus, n.gpus, svg.Paint{Fill: nvFill, Stroke: nvGreen, Width: 1.2})
}

// devices paints the devices of a kind by their numbers.
func (n *deviceNode) devices(pic *picture, class string, ids []int, at []box, paint svg.Paint) {
	titles := deviceTitles(n.t)
	ty := svg.Type{Size: smallType, Fill: ink, Anchor: svg.Middle}
	for i, b := range at {
		look, dev := paint, &n.t.Devices[ids[i]]
		if nicDown(dev) {
			look.Fill, look.Stroke, look.Dash = redBg, red, degradedDashes
		}
		pic.Open(class, titles[ids[i]]+" of "+n.name+", "+dev.Model.Value)
		pic.about(deviceKey(n.name, n.t, ids[i]))
		pic.Rect(b.x, b.y, b.w, b.h, 3, look)
		if b.w > 13 {
			pic.Text(b.mid(), b.y+13.5, fmt.Sprint(i), ty)
		}
		pic.Close()
	}
}

func (r *deviceRow) captions() []caption {
	list := r.hostRow.captions()
	list[0].y = r.nodes[0].box.y + r.nodes[0].box.h/2
	return list
}
