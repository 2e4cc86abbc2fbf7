package nvsmi_test

import (
	"fmt"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/nvsmi"
)

// The matrix of topo -m, here of two hosts whose lines pdsh marked, becomes one node a host; what cannot be used is a
// warning with its line.
func ExampleReadMatrices() {
	text := `node1: 	GPU0	GPU1	NIC0	CPU Affinity
node1: GPU0	X	NV12	PIX	0-63
node1: GPU1	NV12	X	SYS	64-127
node2: 	GPU0	GPU1	NIC0	CPU Affinity
node2: GPU0	X	NV12	PIX	0-63
node2: GPU1	NV12	X	???	64-127
`
	list, err := nvsmi.ReadMatrices("topo.txt", strings.NewReader(text))
	if err != nil {
		fmt.Println(err)
		return
	}
	f := list[0]
	for _, h := range f.Hosts {
		t := f.Types[h.Type]
		fmt.Println(h.Name, t.Count(cluster.GPU), "GPUs", t.Count(cluster.NIC), "NIC")
	}
	for _, w := range f.Warnings {
		if strings.Contains(w.Text, "???") {
			fmt.Println(w.Source)
		}
	}
	// Output:
	// node1 2 GPUs 1 NIC
	// node2 2 GPUs 1 NIC
	// topo.txt:6
}
