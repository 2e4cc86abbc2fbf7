// Package board lays out the inside of one machine as devices and links of a
// cluster.NodeType: sockets, NUMA domains, PCIe host bridges and switches, GPUs
// and NICs.
//
// Sources that show the whole PCI tree (a live /sys, hwloc's XML) name every
// bridge. Path classes such as PIX and PXB count switches, not bridges, so the
// tree is collapsed here, once, by the same rule for every source. What a PCI
// function is (a GPU, a display chip of the board's management controller, a
// NIC of which family) is decided here too, from its class and vendor.
//
// The package reads nothing itself and invents no figures.
package board
