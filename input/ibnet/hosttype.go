package ibnet

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"

	"busbar.dev/cluster"
)

// nicPorts appends an adapter's ports by number to an empty list. Ports that it states and that no
// line mentions have nothing on them, if the scan saw the adapter at all.
func (b *building) nicPorts(ports []cluster.Port, nic adapter) []cluster.Port {
	stated, cabled := 0, false
	for _, n := range nic.nodes {
		nd := &b.nodes[n]
		stated = max(stated, nd.ports)
		for p := nd.first; p >= 0; p = b.ports[p].next {
			pt := &b.ports[p]
			is, could, state := pt.is, pt.could, pt.state
			if q := pt.peer; q >= 0 {
				cabled = true
				is = is.or(b.ports[q].is)
			}
			ports = append(ports, cluster.Port{
				Num: int(pt.num), Rate: is.fact(b.format), Max: could.fact(b.format), State: state,
				Layer: "InfiniBand", Speed: is.String(),
			})
		}
	}
	// More than a card's few ports can only be a mistake; they are not made up.
	const most = 4
	for num := 1; num <= stated && stated <= most; num++ {
		if !slices.ContainsFunc(ports, func(p cluster.Port) bool { return p.Num == num }) {
			p := cluster.Port{Num: num, Layer: "InfiniBand"}
			if cabled {
				p.State = cluster.Down
			}
			ports = append(ports, p)
		}
	}
	slices.SortFunc(ports, func(x, y cluster.Port) int { return x.Num - y.Num })
	return ports
}

// model is the maker's part number, MT and the device id in decimal, as ibstat
// prints it.
func (n *node) model(source string) cluster.Fact[string] {
	const mellanox = 0x2c9
	if n.vendor != mellanox || n.device == 0 {
		return cluster.Fact[string]{}
	}
	return cluster.FromRead("MT"+strconv.Itoa(int(n.device)), source)
}

// shape writes what tells one type from another: whatever nodeType puts into one.
func (b *building) shape(key []byte, m *machine) []byte {
	for _, nic := range m.nics {
		nd := &b.nodes[nic.nodes[0]]
		key = append(key, nic.label...)
		key = append(key, 0)
		key = binary.BigEndian.AppendUint32(key, nd.vendor)
		key = binary.BigEndian.AppendUint32(key, nd.device)
		b.scratch = b.nicPorts(b.scratch[:0], nic)
		for _, p := range b.scratch {
			key = append(key, byte(p.Num>>8), byte(p.Num), byte(p.State))
			key = append(key, p.Speed...)
			key = binary.BigEndian.AppendUint64(key, math.Float64bits(float64(p.Max.Value)))
		}
		key = append(key, 0xff)
	}
	return key
}

// nodeType makes the type of a host: its adapters, of whose place inside the host
// the fabric knows nothing.
func (b *building) nodeType(m *machine) *cluster.NodeType {
	t := &cluster.NodeType{Devices: make([]cluster.Device, 0, len(m.nics))}
	speed, same := "", true
	for k, nic := range m.nics {
		ports := b.nicPorts(nil, nic)
		for _, p := range ports {
			if p.Speed != "" && speed == "" {
				speed = p.Speed
			}
			same = same && (p.Speed == speed || p.State == cluster.Down)
		}
		t.Devices = append(t.Devices, cluster.Device{
			Kind: cluster.NIC, Name: "nic" + strconv.Itoa(k), Index: -1, Label: nic.label, Parent: -1,
			Model: b.nodes[nic.nodes[0]].model(b.format),
			NIC:   &cluster.NICInfo{Kind: cluster.InfiniBand, Ports: ports},
		})
	}
	t.Name = fmt.Sprintf("ib-%dnic", len(m.nics))
	if same && speed != "" {
		t.Name += "-" + speed
	}
	return t
}
