package step

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/predict"
	"busbar.dev/unit"
)

// changes are what can be set of a cluster, by its key: a change of its value, or why that changes nothing.
var changes = []struct {
	key, also, example string
	change             func(c *cluster.Cluster, value string) (*cluster.Cluster, error)
}{
	{"nic", "network.gbps", "nic=100G", varyRate},
	{"nics", "nics_per_node", "nics=4", varyNICs},
	{"gdr", "", "gdr=on or gdr=off", varyGPUDirect},
	{"p2p", "", "p2p=on or p2p=off", varyPeers},
	{"nvlink", "", "nvlink=off", varyNVLink},
	{"oversubscription", "", "oversubscription=4:1", varyTrunks},
	{"gpu", "", "gpu=h200", varyGPU},
	{"gpu.memory", "", "gpu.memory=141G", varyMemory},
	{"power", "gpu.power", "power=500W", varyPower},
}

// Vary is a cluster with some of it changed, by a text: nic=100G (every NIC and cable), nics=4 (of a node), gdr=on, or
// several with commas. A change that would change nothing is an error.
func Vary(c *cluster.Cluster, text string) (*cluster.Cluster, error) {
	for _, one := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(one), "=")
		var known []string
		found := false
		for _, x := range changes {
			known = append(known, x.example)
			if key != x.key && key != x.also || key == "" {
				continue
			}
			if key == "network.gbps" {
				value += "Gb/s"
			}
			var err error
			if c, err = x.change(c, value); err != nil {
				return nil, err
			}
			found = true
		}
		if !found {
			return nil, fmt.Errorf("%q cannot be set; expected %s", strings.TrimSpace(one), strings.Join(known, ", "))
		}
	}
	return c, nil
}

// OfNetwork reports a change of what joins nodes, which one node does not see.
func OfNetwork(text string) bool {
	key, _, _ := strings.Cut(strings.TrimSpace(text), "=")
	return strings.HasPrefix(key, "nic") || key == "network.gbps" || key == "gdr" || key == "oversubscription"
}

func varyRate(c *cluster.Cluster, value string) (*cluster.Cluster, error) {
	port, err := hardware.ParsePortSpeed(value)
	if gbps := port.Rate.Gbps(); err != nil || !(gbps >= 0.001 && gbps <= 1e6) {
		return nil, fmt.Errorf("%q; expected the rate of a NIC, such as nic=400G or network.gbps=400", value)
	}
	have, _ := NodePorts(c.TypeOf(0))
	if have == 0 {
		return nil, errors.New("the rate of the cluster's NICs is not known, so that it cannot be changed; --nic states it")
	}
	n, _ := Faster(c, port.Rate.Gbps()/have.Gbps(), Ports, Trunks)
	return n, nil
}

func varyNICs(c *cluster.Cluster, value string) (*cluster.Cluster, error) {
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

// onOff is what a value says.
var onOff = map[string]cluster.Tri{"on": cluster.Yes, "off": cluster.No}

func varyGPUDirect(c *cluster.Cluster, value string) (*cluster.Cluster, error) {
	to, said := onOff[value]
	if !said {
		return nil, fmt.Errorf("gdr=%s; expected gdr=on or gdr=off", value)
	}
	n, some := hardware.WithGPUDirect(c, cluster.Maybe, to)
	n, more := hardware.WithGPUDirect(n, cluster.Yes+cluster.No-to, to)
	if !some && !more {
		return nil, fmt.Errorf("gdr=%s changes nothing: that is how every NIC is already, as far as it is known", value)
	}
	return n, nil
}

func varyPeers(c *cluster.Cluster, value string) (*cluster.Cluster, error) {
	to, said := onOff[value]
	if !said {
		return nil, fmt.Errorf("p2p=%s; expected p2p=on or p2p=off", value)
	}
	return hardware.WithPeerAccess(c, to, cluster.Spec), nil
}

// varyNVLink takes the links between GPUs away. Trays of a rack would be apart without them.
func varyNVLink(c *cluster.Cluster, value string) (*cluster.Cluster, error) {
	if value != "off" {
		return nil, fmt.Errorf("nvlink=%s; expected nvlink=off (a cluster file describes links that are not there)", value)
	}
	n, found := variant(c), false
	for _, t := range n.Types {
		if t.Trays > 1 {
			return nil, fmt.Errorf("nvlink=off: NVLink joins the hosts of %s; a tray alone is a preset (gb200-tray)", t.Name)
		}
		var kept []cluster.Link
		for _, l := range t.Links {
			if l.Kind != cluster.NVLink && l.Kind != cluster.XGMI {
				kept = append(kept, l)
			}
		}
		found = found || len(kept) < len(t.Links)
		t.Links = kept
	}
	if !found {
		return nil, errors.New("nvlink=off changes nothing: the GPUs have no such links")
	}
	return n, nil
}

// varyTrunks changes what leaves have upwards to a share of what they have towards the hosts.
func varyTrunks(c *cluster.Cluster, value string) (*cluster.Cluster, error) {
	ratio, err := strconv.ParseFloat(strings.TrimSuffix(value, ":1"), 64)
	if err != nil || !(ratio >= 1 && ratio <= 1000) {
		return nil, fmt.Errorf("oversubscription=%s; expected a ratio, such as 4:1", value)
	}
	has := c.Network.Oversubscription
	if has.Value <= 0 {
		return nil, errors.New("oversubscription: what the leaves have now is not known; a cluster file states it")
	}
	n, ok := Faster(c, has.Value/ratio, Trunks)
	if !ok {
		return nil, errors.New("oversubscription changes nothing: all nodes are below one switch, as far as it is known")
	}
	n.Network.Oversubscription = cluster.FromRead(ratio, predict.AsGiven)
	for i := range n.Network.Links {
		if l := &n.Network.Links[i]; !l.A.ToHosts() && !l.B.ToHosts() {
			l.Max = l.Rate // other cables, none of which runs below what it could do
		}
	}
	return n, nil
}

// varyGPU puts GPUs of another model in the place of those that are there, where they have as many links.
func varyGPU(c *cluster.Cluster, value string) (*cluster.Cluster, error) {
	m, ok := hardware.GPUByName(value)
	if !ok {
		return nil, fmt.Errorf("GPU %q is not in the catalogue; `busbar list hardware gpu` lists it", value)
	}
	var refused error
	changed := false
	n := eachGPU(c, func(d *cluster.Device) {
		was, _ := hardware.GPUByName(d.Model.Value)
		if was.Name == m.Name {
			return
		}
		changed = true
		if was.Links != m.Links && was.Name != "" {
			refused = fmt.Errorf("a %s has %d NVLinks and a %s, which is there, %d: that is another machine; describe it (-c "+
				"8x%s, busbar list presets)", m.Title, m.Links, was.Title, was.Links, m.Name)
		}
		d.Model, d.PCIID = cluster.FromRead(m.Title, predict.AsGiven), nil
		d.GPU.Vendor, d.GPU.Memory, d.GPU.HBM = "", cluster.Fact[unit.Bytes]{}, cluster.Fact[unit.Rate]{}
		d.GPU.Peak, d.GPU.SM, d.GPU.Arch, d.GPU.Links = nil, 0, "", 0
	})
	if refused != nil || !changed {
		return c, refused
	}
	for _, t := range n.Types {
		for i := range t.Links {
			if l := &t.Links[i]; l.Kind == cluster.NVLink || l.Kind == cluster.XGMI {
				l.Rate, l.Duplex = cluster.Fact[unit.Rate]{}, 0 // by the GPU's generation
			}
		}
	}
	hardware.Complete(n)
	return n, nil
}

func varyMemory(c *cluster.Cluster, value string) (*cluster.Cluster, error) {
	size, err := unit.ParseBytes(value)
	if err != nil || size < unit.GiB {
		return nil, fmt.Errorf("gpu.memory=%s; expected the memory of a GPU, such as 141G", value)
	}
	return eachGPU(c, func(d *cluster.Device) { d.GPU.Memory = cluster.FromRead(size, predict.AsGiven) }), nil
}

func varyPower(c *cluster.Cluster, value string) (*cluster.Cluster, error) {
	power, err := unit.ParsePower(value)
	if err != nil || power <= 0 {
		return nil, fmt.Errorf("power=%s; expected the power limit of a GPU, such as 500W", value)
	}
	return eachGPU(c, func(d *cluster.Device) { d.GPU.Limit = cluster.FromRead(power, predict.AsGiven) }), nil
}

// eachGPU is a cluster with every GPU changed.
func eachGPU(c *cluster.Cluster, change func(d *cluster.Device)) *cluster.Cluster {
	n := variant(c)
	for _, t := range n.Types {
		for _, i := range t.Of(cluster.GPU) {
			own := cluster.GPUInfo{}
			if t.Devices[i].GPU != nil {
				own = *t.Devices[i].GPU
			}
			t.Devices[i].GPU = &own
			change(&t.Devices[i])
		}
	}
	return n
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
