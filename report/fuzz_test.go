package report

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// FuzzShow builds clusters of every odd shape out of bytes, three for a part, and
// gives them to everything that shows one.
func FuzzShow(f *testing.F) {
	f.Add([]byte("\x00\x01\x00\x00\x02\x01\x00\x05\x02\x00\x06\x02\x09\x03\x04\x0c\x02\x00\x0d\x01\x02"))
	f.Add([]byte("\x00\x07\x00\x00\x05\x00\x00\x05\x00\x09\x01\x05\x09\x02\x05\x0b\x12\x00\x0c\x33\x00\x0d\x21\x07\x0e\x11\x01"))
	// A switch of NVLinks on the PCIe bus has a bar, but no column of its own.
	f.Add([]byte("\x00\xed\xed\xed\xed\x0e\xd3\xcf9\xdaI\x18"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 600 {
			return
		}
		c := fromBytes(data)
		for _, typ := range c.Types {
			if typ.Check() != nil {
				return
			}
		}
		var pic bytes.Buffer
		for _, err := range []error{Text(io.Discard, c, TextOptions{}), Matrix(io.Discard, c), Drawing(c).SVG(&pic)} {
			if err != nil {
				t.Error(err)
			}
		}
		shapes(t, pic.Bytes())
		shapes(t, drawScene(t, NewScene(c)))
	})
}

// fromBytes reads (what, x, y) triples: devices of a kind below an earlier one,
// links, hosts, switches, cables.
func fromBytes(data []byte) *cluster.Cluster {
	c := &cluster.Cluster{Name: "fuzz", Types: []*cluster.NodeType{{Name: "t"}}}
	t, net := c.Types[0], &c.Network
	for ; len(data) >= 3; data = data[3:] {
		what, x, y := data[0]%16, int(data[1]), int(data[2])
		switch {
		case what < 8:
			d := cluster.Device{Kind: cluster.Kind(x % 8), Index: -1, Parent: y%(len(t.Devices)+1) - 1, Tray: int(what) % 3}
			switch d.Kind {
			case cluster.GPU:
				d.GPU = &cluster.GPUInfo{SM: y, Memory: spec(unit.Bytes(y) * unit.GiB)}
			case cluster.NIC:
				d.NIC = &cluster.NICInfo{Ports: []cluster.Port{{
					Num: 1, State: cluster.State(y % 4), Rate: spec(unit.Rate(y) * unit.GBps),
				}}}
			}
			t.Add(d)
		case what < 11 && len(t.Devices) > 1:
			l := cluster.Link{
				A: x % len(t.Devices), B: y % len(t.Devices), Kind: cluster.LinkKind(x % 9), OneWay: what == 10,
				Lanes: y % 20, MaxLanes: x % 20, GTs: float64(y % 40), MaxGTs: float64(x % 40),
			}
			if l.A == l.B {
				continue
			}
			if x%3 > 0 {
				l.Rate = spec(unit.Rate(x) * unit.GBps)
			}
			t.Connect(l)
		case what == 11:
			t.Trays = y
			for range x % 40 {
				c.Hosts = append(c.Hosts, cluster.Host{Name: fmt.Sprintf("h%d", len(c.Hosts)), Type: y%2 - 1})
			}
		case what == 12:
			for range x % 50 {
				net.Switches = append(net.Switches, cluster.Switch{
					Name: fmt.Sprintf("s%d", len(net.Switches)), Tier: cluster.Tier(y%5 - 1),
					Rail: y%4 - 1, Count: y % 3, Domain: y%7 == 6,
				})
			}
		default:
			l := cluster.NetLink{A: cluster.End{Switch: x}, B: cluster.End{Switch: y}, State: cluster.State(x % 4), Count: y % 5}
			if what == 13 {
				l.B = cluster.End{Switch: -1, NIC: y%3 - 1, Hosts: []cluster.Span{{First: y % 8, N: y}}}
			}
			if len(net.Switches) == 0 || l.A.Switch >= len(net.Switches) || l.B.Switch >= len(net.Switches) {
				continue
			}
			if x%2 > 0 {
				l.Rate = spec(unit.Rate(x) * unit.GBps)
			}
			net.Links = append(net.Links, l)
		}
	}
	return c
}

// TestHostileNames draws a cluster whose every text is markup or control
// characters.
func TestHostileNames(t *testing.T) {
	evil := "<script>alert('&\"')</script>\x00\x1b[31m\xff\n]]>"
	c := railed(dgxH100(), 3, 1)
	c.Name = evil
	for i := range c.Hosts {
		c.Hosts[i].Name = evil
	}
	for i := range c.Types[0].Devices {
		d := &c.Types[0].Devices[i]
		d.Label, d.Model = evil, spec(evil)
	}
	for i := range c.Network.Switches {
		c.Network.Switches[i].Name, c.Network.Switches[i].Model = evil, evil
	}
	c.Sources = []string{evil}
	shapes(t, draw(t, c))
	shapes(t, drawScene(t, NewScene(c)))
	shapes(t, drawScene(t, NodeScene(c, 0)))
	var out bytes.Buffer
	for _, err := range []error{Text(&out, c, TextOptions{}), Matrix(&out, c)} {
		if err != nil {
			t.Error(err)
		}
	}
	if i := bytes.IndexAny(out.Bytes(), "\x00\x1b"); i >= 0 {
		t.Errorf("a control character got through: %q", out.Bytes()[max(0, i-20):i+5])
	}
}

// TestOddTrees shows nodes that no machine looks like but a file can describe.
func TestOddTrees(t *testing.T) {
	gpuOnGPU := newMachine("gpu on gpu")
	g := gpuOnGPU.add(cluster.GPU, -1, cluster.Device{})
	gpuOnGPU.add(cluster.GPU, g, cluster.Device{})
	gpuOnGPU.add(cluster.NIC, g, cluster.Device{})

	sockets := newMachine("sockets only")
	s := sockets.add(cluster.Socket, -1, cluster.Device{})
	sockets.add(cluster.GPU, s, cluster.Device{})
	sockets.add(cluster.Socket, -1, cluster.Device{})

	trays := newMachine("trays on paper")
	trays.Trays = 1 << 40
	trays.add(cluster.GPU, -1, cluster.Device{Tray: 1 << 39})

	noPorts := newMachine("nic without ports")
	noPorts.add(cluster.NIC, -1, cluster.Device{NIC: &cluster.NICInfo{}})
	noPorts.add(cluster.NVSwitch, -1, cluster.Device{})

	for _, m := range []machine{gpuOnGPU, sockets, trays, noPorts, newMachine("nothing")} {
		for _, n := range []int{1, 2, 50} {
			c := alone(m.NodeType, n)
			checkPicture(t, m.Name, draw(t, c))
			checkPicture(t, m.Name+" on a page", drawScene(t, NewScene(c)))
			for _, err := range []error{Text(io.Discard, c, TextOptions{}), Matrix(io.Discard, c)} {
				if err != nil {
					t.Error(err)
				}
			}
		}
	}
}
