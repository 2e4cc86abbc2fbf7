package check

import (
	"cmp"
	"fmt"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/hardware"
	"busbar.dev/input/clusterfile"
	"busbar.dev/lab"
	"busbar.dev/unit"
)

// What the scenarios are made of: nodes with one NIC of 100 Gb/s, two leaves and two
// spines with and without oversubscription, a node with two rails and the same with one NIC
// for all.
const (
	oneNIC = `
types:
  node:
    gpus: 4 x A100-SXM4-40GB
    nics: 1 x 100GbE roce
nodes:
  - count: 8
    type: node
network:
  nodes_per_leaf: 8
`
	twoLeaves = `
types:
  node:
    gpus: 1 x A100-SXM4-40GB
    nics: 1 x 100GbE roce
nodes:
  - count: 8
    type: node
network:
  nodes_per_leaf: 4
  oversubscription: %d
`
	rails = `
types:
  node:
    gpus: 2 x A100-SXM4-40GB
    nics: %s
nodes:
  - count: 2
    type: node
network:
  rails: %d
  nodes_per_leaf: 8
`
)

// readCluster is the cluster of a cluster file; without a text it is Baskerville, whose links inside nodes and NICs two
// cores can push at one scale.
func readCluster(name, text string) (*cluster.Cluster, error) {
	if text == "" {
		return hardware.Preset("baskerville", 4)
	}
	f, err := clusterfile.Read(name, strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := cluster.Join(f)
	hardware.Complete(c)
	c.Name = name
	return c, nil
}

// builtinScenarios are the labs of lab check without a cluster.
func builtinScenarios(only string) ([]scenario, error) {
	sizes := func(words ...unit.Bytes) []unit.Bytes { return words }
	usual := sizes(unit.MiB, 4*unit.MiB, 8*unit.MiB)
	flat := []string{"ring", "tree", "halving_doubling"}
	var list []scenario
	var bad error
	add := func(text string, s scenario) {
		if only != "" && !strings.Contains(s.name, only) {
			return
		}
		var err error
		if s.cluster, err = readCluster(s.name, text); err != nil {
			bad = err
			return
		}
		if s.options.Scale == (lab.Scale{}) {
			s.options.Scale = lab.Scale{Num: 1, Den: 200}
		}
		if s.layouts[0][0] == 8 { // all nodes together no more than with four
			s.options.Scale.Den = 400
		}
		s.options.Inside = cmp.Or(s.options.Inside, lab.Memory)
		s.options.Spines = 2
		s.kind = coll.AllReduce
		s.jobs = max(s.jobs, 1)
		s.transport = cmp.Or(s.transport, engine.Auto)
		if s.sizes == nil {
			s.sizes = usual
		}
		list = append(list, s)
	}
	// A quarter of the usual scale: four ranks inside a node then move 0.5 GB/s, which is what all NICs of a lab may.
	add("", scenario{
		name: "three layouts", options: lab.Options{Scale: lab.Scale{Num: 1, Den: 800}, Inside: lab.Links}, layouts: [][2]int{{1, 4}, {2, 2}, {4, 1}},
		algos: []string{"ring", "ring:interleaved", "tree", "hierarchical", "halving_doubling"},
	})
	add(fmt.Sprintf(twoLeaves, 1), scenario{name: "two leaves 1:1", layouts: [][2]int{{8, 1}}, algos: flat, sizes: sizes(unit.MiB, 4*unit.MiB)})
	add(fmt.Sprintf(twoLeaves, 4), scenario{name: "two leaves 4:1", layouts: [][2]int{{8, 1}}, algos: append(flat, "ring:crossing", "hierarchical:leaves"), sizes: sizes(unit.MiB, 4*unit.MiB)})
	add(fmt.Sprintf(rails, "2 x 100GbE roce", 2), scenario{name: "two rails", layouts: [][2]int{{2, 2}}, algos: []string{"ring", "hierarchical"}})
	add(fmt.Sprintf(rails, "1 x 100GbE roce", 1), scenario{name: "one shared NIC", layouts: [][2]int{{2, 2}}, algos: []string{"ring", "hierarchical"}})
	add(oneNIC, scenario{name: "one slow NIC of eight", layouts: [][2]int{{8, 1}}, algos: flat, sizes: sizes(unit.MiB, 4*unit.MiB), slow: map[string]float64{"node5": 0.25}})
	add(fmt.Sprintf(twoLeaves, 4), scenario{name: "two jobs share the spines", layouts: [][2]int{{4, 1}}, algos: []string{"ring", "halving_doubling"}, sizes: sizes(4 * unit.MiB), jobs: 2})
	staging := unit.Rate(10e9)
	add(oneNIC, scenario{name: "staging half duplex", layouts: [][2]int{{2, 2}, {4, 1}}, algos: []string{"ring", "tree"}, options: lab.Options{Staging: staging}, sizes: sizes(4 * unit.MiB)})
	add(oneNIC, scenario{name: "staging also inside nodes", layouts: [][2]int{{2, 2}, {4, 1}}, algos: []string{"ring", "tree"}, options: lab.Options{Staging: staging, Local: true}, transport: engine.TCP, sizes: sizes(4 * unit.MiB)})
	add(oneNIC, scenario{name: "staging near", layouts: [][2]int{{4, 1}}, algos: []string{"ring", "tree"}, options: lab.Options{Staging: staging}, sizes: sizes(4 * unit.MiB)})
	add(oneNIC, scenario{name: "staging far", layouts: [][2]int{{2, 2}}, algos: []string{"ring", "tree"}, options: lab.Options{Staging: staging / 4}, sizes: sizes(4 * unit.MiB)})
	if bad == nil && len(list) == 0 {
		bad = fmt.Errorf("--only %q: no scenario has that in its name", only)
	}
	return list, bad
}
