package hardware

import (
	"fmt"
	"strings"

	"busbar.dev/cluster"
)

// Module says that a GPU comes on a board with its links, as SXM does: a card has them only over a bridge, or not at all.
func (m GPUModel) Module() bool {
	if m.Links == 0 {
		return false
	}
	title := strings.ToUpper(m.Title)
	if m.LinkKind != cluster.NVLink || strings.Contains(title, "SXM") || strings.Contains(title, "HBM3") {
		return true
	}
	for _, name := range []string{"H200", "H20", "B200", "B300", "GB200"} {
		if strings.Contains(title, name) && !strings.Contains(title, "NVL") {
			return true
		}
	}
	return false
}

// socketCards are the cards that one processor takes: seven slots of x16 at most, of which some are for NICs and disks.
const socketCards = 4

// cardNode is a server or workstation with so many PCIe cards: each on a root port of its own, no NVLink bridge and no NIC.
func cardNode(m GPUModel, n int) *cluster.NodeType {
	t := newNode(cluster.Assumed)
	sockets := 1
	if n > socketCards {
		sockets = 2
	}
	for s := range sockets {
		numa := addSocket(t, cpuSpec{arch: "x86_64"}, 0, "")[0]
		for range (n*(s+1))/sockets - (n*s)/sockets {
			addGPU(t, addRoot(t, numa), m, slot{m.PCIeGen, 16}, "")
		}
	}
	if m.GDR == cluster.No { // GeForce
		refusePeers(t)
	}
	return t
}

// cardsNode says in words what cardNode assumes.
func cardsNode(m GPUModel, n int) string {
	where := "one socket"
	if n > socketCards {
		where = "two sockets"
	}
	peers := "no NVLink bridge"
	switch {
	case m.GDR == cluster.No:
		peers = "no peer access"
	case m.Links == 0:
		peers = "no NVLink"
	}
	return fmt.Sprintf("PCIe %d.0 x16 cards on root ports of %s, %s, no NIC (--nic 10GbE gives one); a cluster file or nvidia-smi topo -m says otherwise", m.PCIeGen, where, peers)
}
