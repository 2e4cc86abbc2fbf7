package hardware

import (
	"slices"

	"busbar.dev/cluster"
)

// PeerAccess is whether GPUs of a node read and write each other's memory over PCIe, and who says so: of some cards the
// catalogue assumes it from their driver.
func PeerAccess(t *cluster.NodeType) (access cluster.Tri, from cluster.Origin) {
	for _, p := range t.Pairs {
		if p.P2P == cluster.Maybe {
			continue
		}
		origin := p.P2PFrom
		if origin == cluster.Unknown {
			origin = cluster.Read
		}
		if access == cluster.Maybe || p.P2P == cluster.No {
			access, from = p.P2P, origin
		}
	}
	return access, from
}

// WithPeerAccess is the cluster with what somebody says about peer access over PCIe.
func WithPeerAccess(c *cluster.Cluster, access cluster.Tri, from cluster.Origin) *cluster.Cluster {
	return changed(c, func(t *cluster.NodeType) { setPeers(t, access, from) })
}

// setPeers says of all pairs of GPUs that only PCIe joins whether they have peer access.
func setPeers(t *cluster.NodeType, access cluster.Tri, from cluster.Origin) {
	why := ""
	if access == cluster.No && from == cluster.Assumed {
		why = "not supported on GeForce cards of this generation"
	}
	gpus := t.Of(cluster.GPU)
	for _, x := range gpus {
		for _, y := range gpus {
			if x == y || slices.ContainsFunc(t.Links, func(l cluster.Link) bool {
				return l.Kind == cluster.NVLink && (l.A == x && l.B == y || l.A == y && l.B == x)
			}) {
				continue
			}
			said := cluster.Pair{A: x, B: y, P2P: access, P2PFrom: from, Why: why}
			i := slices.IndexFunc(t.Pairs, func(p cluster.Pair) bool { return p.A == x && p.B == y })
			if i < 0 {
				t.Pairs = append(t.Pairs, said)
				continue
			}
			p := &t.Pairs[i]
			p.P2P, p.P2PFrom, p.Why = said.P2P, said.P2PFrom, said.Why
		}
	}
}

// WithGPUDirect is the cluster with NICs that reach GPU memory or do not, of those with another answer; false where
// there is none.
func WithGPUDirect(c *cluster.Cluster, from, to cluster.Tri) (*cluster.Cluster, bool) {
	found := false
	d := changed(c, func(t *cluster.NodeType) {
		for i := range t.Devices {
			if nic := t.Devices[i].NIC; nic != nil && nic.GDR == from {
				with := *nic
				with.GDR, found = to, true
				t.Devices[i].NIC = &with
			}
		}
	})
	return d, found
}

// WithNetwork is the cluster with NICs of a family that NCCL drives otherwise.
func WithNetwork(c *cluster.Cluster, kind cluster.NetKind) *cluster.Cluster {
	d := changed(c, func(t *cluster.NodeType) {
		for i := range t.Devices {
			if nic := t.Devices[i].NIC; nic != nil {
				with := *nic
				with.Kind = kind
				t.Devices[i].NIC = &with
			}
		}
	})
	d.Network.Kind = kind
	return d
}

// WithBridges is the cluster with a bridge between neighbouring cards of a model.
func WithBridges(c *cluster.Cluster, m GPUModel) *cluster.Cluster {
	d := changed(c, func(t *cluster.NodeType) {
		t.Links = slices.Clone(t.Links)
		b := &treeBuilder{nodeRow: &nodeRow{Join: "bridge"}, t: t, gpu: m}
		b.joinGPUs()
		if access, from := PeerAccess(t); from == cluster.Assumed {
			t.Pairs = nil
			setPeers(t, access, from)
		}
	})
	Complete(d)
	return d
}

// changed is a cluster with its types of nodes changed. What a change does not replace, both have.
func changed(c *cluster.Cluster, change func(*cluster.NodeType)) *cluster.Cluster {
	d := *c
	d.Types = make([]*cluster.NodeType, len(c.Types))
	for i, t := range c.Types {
		u := *t
		u.Devices, u.Pairs = slices.Clone(t.Devices), slices.Clone(t.Pairs)
		change(&u)
		d.Types[i] = &u
	}
	return &d
}
