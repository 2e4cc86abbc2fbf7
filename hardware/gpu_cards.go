package hardware

import (
	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// nvidiaCards lists NVIDIA cards with GDDR memory. GeForce cards do half rate
// with fp32 accumulation; the figure here is that one.
func nvidiaCards() []GPUModel {
	const ada = "NVIDIA Ada GPU architecture white paper, 2023, sparse figures halved"
	const bridge = "links only over a bridge to one other card: 112.5 GB/s duplex"
	gib := unit.GiB
	return []GPUModel{
		{
			Name: "a10", Title: "NVIDIA A10", Vendor: "nvidia", PCI: []string{"10de:2236"}, SM: 86,
			Memory: 24 * gib, HBM: tb(0.6), Peak: peak(0, 31.2, 62.5, 125, 125, 0, 0, 250), PCIeGen: 4, Lanes: 16, GDR: cluster.Yes, Source: "NVIDIA A10 data sheet, 2021",
		},
		{
			Name: "a10g", Title: "NVIDIA A10G", Vendor: "nvidia", PCI: []string{"10de:2237"}, SM: 86,
			Memory: 24 * gib, HBM: tb(0.6), Peak: peak(0, 35, 35, 70, 70, 0, 0, 140), PCIeGen: 4, Lanes: 16, GDR: cluster.Yes,
			Source: "NVIDIA A10G data sheet for AWS, 2022-02",
		},
		{
			Name: "a40", Title: "NVIDIA A40", Vendor: "nvidia", PCI: []string{"10de:2235"}, SM: 86,
			Memory: 48 * gib, HBM: tb(0.696), Peak: peak(0, 37.4, 74.8, 149.7, 149.7, 0, 0, 299.3), LinkKind: cluster.NVLink, Link: bridgeLink, Links: 4,
			PCIeGen: 4, Lanes: 16, GDR: cluster.Yes, Source: "NVIDIA A40 data sheet, 2022", Note: bridge,
		},
		{
			Name: "a6000", Title: "NVIDIA RTX A6000", Vendor: "nvidia", Names: []string{"A6000"}, PCI: []string{"10de:2230"}, SM: 86,
			Memory: 48 * gib, HBM: tb(0.768), Peak: peak(0, 38.7, 77.4, 154.8, 154.8, 0, 0, 309.7), LinkKind: cluster.NVLink, Link: bridgeLink, Links: 4,
			PCIeGen: 4, Lanes: 16, GDR: cluster.Yes, Source: "NVIDIA RTX A6000 data sheet, 2021; GA102 white paper, 2020", Note: bridge,
		},
		{
			Name: "rtx3090", Title: "NVIDIA GeForce RTX 3090", Vendor: "nvidia", Names: []string{"3090", "RTX 3090"}, PCI: []string{"10de:2204"}, SM: 86,
			Memory: 24 * gib, HBM: tb(0.936), Peak: peak(0, 35.6, 35.6, 71, 71, 0, 0, 284), LinkKind: cluster.NVLink, Link: bridgeLink, Links: 4,
			PCIeGen: 4, Lanes: 16, GDR: cluster.No, Source: "NVIDIA GA102 white paper, 2020", Note: bridge + "; 142 TFLOPS with fp16 accumulation",
		},
		{
			Name: "l20", Title: "NVIDIA L20", Vendor: "nvidia", PCI: []string{"10de:26ba"}, SM: 89,
			Memory: 48 * gib, HBM: tb(0.864), Peak: peak(0, 59.8, 59.8, 119.5, 119.5, 239, 0, 239), PCIeGen: 4, Lanes: 16, GDR: cluster.Yes, Source: "NVIDIA L20 product brief, 2023",
		},
		{
			Name: "l4", Title: "NVIDIA L4", Vendor: "nvidia", PCI: []string{"10de:27b8"}, SM: 89,
			Memory: 24 * gib, HBM: tb(0.3), Peak: peak(0, 30.3, 60, 121, 121, 242.5, 0, 242.5), PCIeGen: 4, Lanes: 16, GDR: cluster.Yes,
			Source: "NVIDIA L4 data sheet, 2023, sparse figures halved",
		},
		{
			Name: "l40", Title: "NVIDIA L40", Vendor: "nvidia", PCI: []string{"10de:26b5"}, SM: 89,
			Memory: 48 * gib, HBM: tb(0.864), Peak: peak(0, 90.5, 90.5, 181.05, 181.05, 362, 0, 362), PCIeGen: 4, Lanes: 16, GDR: cluster.Yes,
			Source: "NVIDIA L40 data sheet, 2023",
		},
		{
			Name: "l40s", Title: "NVIDIA L40S", Vendor: "nvidia", PCI: []string{"10de:26b9"}, SM: 89,
			Memory: 48 * gib, HBM: tb(0.864), Peak: peak(0, 91.6, 183, 362.05, 362.05, 733, 0, 733), PCIeGen: 4, Lanes: 16, GDR: cluster.Yes,
			Source: "NVIDIA L40S data sheet, 2023",
		},
		{
			Name: "rtx6000ada", Title: "NVIDIA RTX 6000 Ada Generation", Vendor: "nvidia", Names: []string{"RTX 6000 Ada", "rtx-6000-ada"}, PCI: []string{"10de:26b1"}, SM: 89,
			Memory: 48 * gib, HBM: tb(0.96), Peak: peak(0, 91.1, 182.1, 364.2, 364.2, 728.5, 0, 728.5), PCIeGen: 4, Lanes: 16, GDR: cluster.Yes, Source: ada,
		},
		{
			Name: "rtx4090", Title: "NVIDIA GeForce RTX 4090", Vendor: "nvidia", Names: []string{"4090", "RTX 4090"}, PCI: []string{"10de:2684"}, SM: 89,
			Memory: 24 * gib, HBM: tb(1.008), Peak: peak(0, 82.6, 82.6, 165.2, 165.2, 330.3, 0, 660.6), PCIeGen: 4, Lanes: 16, GDR: cluster.No,
			Source: ada, Note: "330.3 TFLOPS with fp16 accumulation; the driver allows no peer access",
		},
		{
			Name: "rtx5090", Title: "NVIDIA GeForce RTX 5090", Vendor: "nvidia", Names: []string{"5090", "RTX 5090"}, PCI: []string{"10de:2b85"}, SM: 120,
			Memory: 32 * gib, HBM: tb(1.792), Peak: peak(0, 104.8, 104.8, 209.5, 209.5, 419, 1676, 838), PCIeGen: 5, Lanes: 16, GDR: cluster.No,
			Source: "NVIDIA RTX Blackwell architecture white paper, 2025, sparse figures halved",
		},
		{
			Name: "rtxpro6000", Title: "NVIDIA RTX PRO 6000 Blackwell Server Edition", Vendor: "nvidia", Names: []string{"RTX PRO 6000 Blackwell", "RTX PRO 6000", "rtx-pro-6000"}, PCI: []string{"10de:2bb5"}, SM: 120,
			Memory: 97887 * unit.MiB, HBM: tb(1.597), Peak: peak(0, 120, 234, 467.8, 467.8, 935.6, 1871.2, 935.6), PCIeGen: 5, Lanes: 16, GDR: cluster.Yes,
			Source: "NVIDIA RTX PRO 6000 Blackwell Server Edition data sheet, 2025; ai-dynamo/aiconfigurator, systems/rtx_pro_6000_server.yaml, 2026",
			Note:   "tensor peaks scaled to the 2,430 MHz the card shows; the data sheet gives 1,597 GB/s for the server card, 1,792 for the workstation card",
		},
	}
}
