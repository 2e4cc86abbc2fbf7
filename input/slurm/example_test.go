package slurm_test

import (
	"fmt"
	"os"
	"strings"

	"busbar.dev/input/slurm"
)

// A topology.conf names switches and hosts, and no rates.
func ExampleReadConf() {
	f, err := slurm.ReadConf("topology.conf", strings.NewReader(
		"SwitchName=leaf1 Nodes=gpu[1-4]\nSwitchName=leaf2 Nodes=gpu[5-8]\nSwitchName=spine Switches=leaf[1-2]\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range f.Network.Switches {
		fmt.Println(s.Name, s.Tier)
	}
	fmt.Println(len(f.Hosts), "hosts")
	// Output:
	// leaf1 leaf
	// leaf2 leaf
	// spine spine
	// 8 hosts
}

// A network that was read is written in Slurm's own form.
func ExampleWriteConf() {
	f, err := slurm.ReadConf("topology.conf",
		strings.NewReader("SwitchName=leaf1 Nodes=gpu[1-2]\nSwitchName=top Switches=leaf1\n"))
	if err == nil {
		err = slurm.WriteConf(os.Stdout, &f.Cluster)
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// # Slurm topology.conf, written by busbar; for TopologyPlugin=topology/tree
	// SwitchName=leaf1 Nodes=gpu[1-2]
	// SwitchName=top Switches=leaf1
}
