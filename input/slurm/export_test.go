package slurm

import (
	"io"

	"busbar.dev/cluster"
)

func ReadConf(name string, r io.Reader) (*cluster.Fragment, error) {
	return ReadConfWithin(cluster.NewBudget(cluster.Limits{}, nil), name, r)
}

func ReadNodes(name string, r io.Reader) (*cluster.Fragment, error) {
	return ReadNodesWithin(cluster.NewBudget(cluster.Limits{}, nil), name, r)
}

func ReadYAML(name string, r io.Reader) (*cluster.Fragment, error) {
	return ReadYAMLWithin(cluster.NewBudget(cluster.Limits{}, nil), name, r)
}
