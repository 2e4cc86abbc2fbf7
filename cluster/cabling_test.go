package cluster_test

import (
	"fmt"
	"slices"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// railed is nodes of four NICs, each on the leaf of its rail.
func railed(nodes int) *cluster.Cluster {
	t := &cluster.NodeType{Name: "node"}
	for i := range 4 {
		t.Add(cluster.Device{Kind: cluster.GPU, Index: i, Parent: -1})
		t.Add(cluster.Device{
			Kind: cluster.NIC, Index: i, Parent: -1, Label: fmt.Sprintf("mlx5_%d", i),
			NIC: &cluster.NICInfo{Kind: cluster.InfiniBand, Ports: []cluster.Port{{Num: 1}}},
		})
	}
	c := &cluster.Cluster{Types: []*cluster.NodeType{t}}
	for i := range 4 {
		c.Network.Switches = append(c.Network.Switches, cluster.Switch{Name: fmt.Sprintf("leaf%d", i), Rail: -1})
	}
	for h := range nodes {
		c.Hosts = append(c.Hosts, cluster.Host{Name: fmt.Sprintf("node%d", h)})
		for k := range 4 {
			c.Network.Links = append(c.Network.Links, cluster.NetLink{
				A: cluster.AtSwitch(k, h+1), B: cluster.End{Switch: -1, Hosts: []cluster.Span{{First: h, N: 1}}, NIC: k, Port: 1},
				Rate: cluster.FromRead(400*unit.Gbps, "ibnetdiscover"),
			})
		}
	}
	return c
}

// remap passes a cluster through Join, which finds rails.
func remap(c *cluster.Cluster) *cluster.Cluster {
	return cluster.Join(&cluster.Fragment{Cluster: *c})
}

func TestCabling(t *testing.T) {
	c := railed(5)
	if u, s := c.Uncabled(), c.Swapped(); len(u)+len(s) > 0 {
		t.Fatalf("as it should be: %v, %v", u, s)
	}
	// Node 3 has the cables of NICs 1 and 2 swapped, node 4 none at NIC 3.
	links := c.Network.Links
	links[3*4+1].A.Switch, links[3*4+2].A.Switch = 2, 1
	c.Network.Links = slices.Delete(links, 4*4+3, 4*4+4)
	s := c.Swapped()
	if len(s) != 1 || s[0].Host != 3 || fmt.Sprint(s[0].On, s[0].Expect, s[0].Peers) != "[2 1] [1 2] 4" {
		t.Errorf("swapped: %+v", s)
	}
	u := c.Uncabled()
	if len(u) != 1 || u[0].Host != 4 || c.Types[0].Devices[u[0].NIC].Label != "mlx5_3" || u[0].Peers != 4 ||
		u[0].Source != "ibnetdiscover" {
		t.Errorf("uncabled: %+v", u)
	}
	if n := remap(c).Network.Rails; n != 4 {
		t.Errorf("%d rails with a swapped cable; want 4", n)
	}
	c.CloseUncabled()
	if nic := c.TypeOf(4).Devices[u[0].NIC].NIC; nic.Ports[0].State != cluster.Down || c.Hosts[3].Type != 0 ||
		len(c.Uncabled()) != 1 || len(c.CloseUncabled()) != 0 {
		t.Errorf("closed: %+v, type %d", nic, c.Hosts[3].Type)
	}
}
