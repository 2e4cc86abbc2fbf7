package sim

import "busbar.dev/cluster"

// Entire makes a machine ask every participant, however many there are, for tests that hold the count of equal nodes to
// it.
func Entire(m *Machine) *Machine {
	m.entire = true
	return m
}

// New puts ranks on a cluster. Ranks may share a GPU.
func New(c *cluster.Cluster, ranks []cluster.Place) (*Machine, error) {
	return NewAt(c, len(ranks), func(rank int) cluster.Place { return ranks[rank] })
}

// Plain has no overhead at all: what the links allow.
func Plain() *Model { return &Model{Name: "plain", Origin: "line rates without overhead"} }
