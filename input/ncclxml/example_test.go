package ncclxml_test

import (
	"fmt"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/ncclxml"
)

// The file that NCCL writes to NCCL_TOPO_DUMP_FILE becomes a node without a host name.
func ExampleRead() {
	f, err := ncclxml.Read("topo.xml", strings.NewReader(`<system version="1">
  <cpu numaid="0" affinity="0000ffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:17:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="90" rank="0" gdr="1"/>
    </pci>
    <pci busid="0000:4b:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">
      <nic><net name="mlx5_0" dev="0" speed="400000" port="1" guid="0x1" maxconn="131072" gdr="1"/></nic>
    </pci>
  </cpu>
</system>`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range f.Types[0].Devices {
		switch d.Kind {
		case cluster.GPU:
			fmt.Println(d.Name, d.PCI, "compute capability", d.GPU.SM)
		case cluster.NIC:
			fmt.Println(d.Name, d.Label, d.NIC.Ports[0].Rate.Value.Bits())
		}
	}
	// Output:
	// gpu0 0000:17:00.0 compute capability 90
	// nic0 mlx5_0 400 Gb/s
}
