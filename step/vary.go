package step

import (
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/unit"
)

// Vary is a cluster with some of its network changed, by a text: nic=100G (every NIC and cable; network.gbps=100 is the
// same), nics=4 (or nics_per_node), gdr=on, or several with commas.
func Vary(c *cluster.Cluster, text string) (*cluster.Cluster, error) {
	for _, one := range strings.Split(text, ",") {
		var err error
		if c, err = varied(c, one); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func varied(c *cluster.Cluster, text string) (*cluster.Cluster, error) {
	key, value, _ := strings.Cut(strings.TrimSpace(text), "=")
	switch key {
	case "network.gbps", "nic":
		gbps, err := strconv.ParseFloat(value, 64)
		if key == "nic" {
			var port hardware.PortSpeed
			if strings.HasSuffix(value, "G") {
				value += "b/s"
			}
			port, err = hardware.ParsePortSpeed(value)
			gbps = port.Rate.Gbps()
		}
		if err != nil || !(gbps >= 0.001 && gbps <= 1e6) {
			return nil, fmt.Errorf("%q; expected the rate of a NIC, such as nic=400G or network.gbps=400", value)
		}
		have, _ := NodePorts(c.TypeOf(0))
		if have == 0 {
			return nil, fmt.Errorf("the rate of the cluster's NICs is not known, so that it cannot be changed")
		}
		n, _ := Faster(c, gbps/have.Gbps(), Ports, Trunks)
		return n, nil
	case "nics_per_node", "nics":
		k, err := strconv.Atoi(value)
		if err != nil || k < 1 {
			return nil, fmt.Errorf("%q; expected a number of NICs", value)
		}
		n, ok := WithPorts(c, k)
		if !ok {
			return nil, fmt.Errorf("nodes have fewer than %d NICs; describe more of them in a cluster file", k)
		}
		return n, nil
	}
	yes, said := map[string]cluster.Tri{"on": cluster.Yes, "off": cluster.No}[value]
	switch {
	case key == "gdr" && said:
		n, some := hardware.WithGPUDirect(c, cluster.Maybe, yes)
		n, more := hardware.WithGPUDirect(n, cluster.Yes+cluster.No-yes, yes)
		if !some && !more {
			return nil, fmt.Errorf("gdr is %s already, as far as it is known; leave it out", value)
		}
		return n, nil
	case key == "p2p" && said:
		return hardware.WithPeerAccess(c, yes, cluster.Spec), nil
	}
	return nil, fmt.Errorf("%q cannot be set; expected nic=100G, nics=4, gdr=on or off, p2p=on or off",
		strings.TrimSpace(text))
}

// NodePorts is the rate of the slowest live port of a node's NICs, and how many ports are live.
func NodePorts(t *cluster.NodeType) (slowest unit.Rate, count int) {
	for _, p := range livePorts(t) {
		if r := p.Rate.Value; count == 0 || r < slowest {
			slowest = r
		}
		count++
	}
	return slowest, count
}

// livePorts are the ports of a node's NICs that are up, with a known rate.
func livePorts(t *cluster.NodeType) []*cluster.Port {
	if t == nil {
		return nil
	}
	var list []*cluster.Port
	for i := range t.Devices {
		if nic := t.Devices[i].NIC; nic != nil {
			for k := range nic.Ports {
				if p := &nic.Ports[k]; p.State != cluster.Down && p.Rate.Value > 0 {
					list = append(list, p)
				}
			}
		}
	}
	return list
}
