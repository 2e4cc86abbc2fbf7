package hwloc_test

import (
	"fmt"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/hwloc"
)

// The XML of lstopo, also inside a log, becomes a node with its NUMA domains and the GPUs of its PCIe tree.
func ExampleRead() {
	f, err := hwloc.Read("lstopo.xml", strings.NewReader(`$ lstopo --of xml
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x0000000f">
    <info name="HostName" value="node7"/>
    <object type="Package" os_index="0" cpuset="0x0000000f">
      <object type="NUMANode" os_index="0" cpuset="0x0000000f" local_memory="68719476736"/>
      <object type="PU" os_index="0" cpuset="0x00000001"/>
      <object type="Bridge" bridge_type="0-1" bridge_pci="0000:[00-20]">
        <object type="Bridge" bridge_type="1-1" bridge_pci="0000:[01-01]" pci_busid="0000:00:01.0" pci_type="0604 [8086:2030] [8086:0000] 04">
          <object type="PCIDev" pci_busid="0000:01:00.0" pci_type="0302 [10de:20b0] [10de:134f] a1" pci_link_speed="31.507692"/>
        </object>
      </object>
    </object>
  </object>
</topology>
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.Hosts[0].Name)
	for _, d := range f.Types[0].Devices {
		switch d.Kind {
		case cluster.NUMA:
			fmt.Println(d.Name, d.CPU.Memory.Value)
		case cluster.GPU:
			fmt.Println(d.Name, d.PCI)
		}
	}
	// Output:
	// node7
	// numa0 64 GiB
	// gpu0 0000:01:00.0
}
