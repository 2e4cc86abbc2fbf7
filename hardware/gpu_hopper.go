package hardware

import (
	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// nvidiaNew lists Hopper and Blackwell data-centre GPUs.
func nvidiaNew() []GPUModel {
	const h100 = "NVIDIA H100 data sheet, 2023, sparse figures halved"
	const b200 = "NVIDIA HGX B200 data sheet, 2025, per GPU, sparse figures halved"
	const nvl72 = "NVIDIA GB200 NVL72 data sheet, 2024, per GPU, sparse figures halved"
	const ultra = "NVIDIA Blackwell Ultra data sheet, 2025, per GPU, sparse figures halved"
	gib := unit.GiB
	nv4, nv5 := NVLinkRate(4), NVLinkRate(5)
	return []GPUModel{
		{
			Name: "h100", Title: "NVIDIA H100 80GB HBM3", Vendor: "nvidia", Names: []string{"H100 SXM", "H100 SXM5", "H100 SXM5 80GB", "H100-SXM5-80GB", "H100-80GB-HBM3", "H100"}, PCI: []string{"10de:2330"}, SM: 90,
			Memory: 80 * gib, HBM: tb(3.35), Peak: peak(34, 67, 494.7, 989.4, 989.4, 1978.9, 0, 1978.9), LinkKind: cluster.NVLink, Link: nv4, Links: 18,
			PCIeGen: 5, Lanes: 16, GDR: cluster.Yes, Source: h100, Note: "fp64 on tensor cores 67 TFLOPS; the driver shows 81,559 MiB",
		},
		{
			Name: "h100-64", Title: "NVIDIA H100 64GB HBM2", Vendor: "nvidia", Names: []string{"H100 SXM5 64GB"}, PCI: []string{"10de:2337"}, SM: 90,
			Memory: 64 * gib, HBM: tb(2.02), Peak: peak(34, 67, 494.7, 989.4, 989.4, 1978.9, 0, 1978.9), LinkKind: cluster.NVLink, Link: nv4, Links: 18,
			PCIeGen: 5, Lanes: 16, GDR: cluster.Yes, Source: "Barcelona Supercomputing Center, MareNostrum 5 system overview, 2024; " + h100, Note: "MareNostrum 5's own variant",
		},
		{
			Name: "h100-pcie", Title: "NVIDIA H100 PCIe", Vendor: "nvidia", Names: []string{"H100 PCIe 80GB", "H100-PCIE-80GB"}, PCI: []string{"10de:2331"}, SM: 90,
			Memory: 80 * gib, HBM: tb(2.039), Peak: peak(26, 51, 378, 756, 756, 1513, 0, 1513), LinkKind: cluster.NVLink, Link: nv4, Links: 12,
			PCIeGen: 5, Lanes: 16, GDR: cluster.Yes, Source: "NVIDIA H100 PCIe product brief, 2022, sparse figures halved", Note: "links only over bridges to one other card: 600 GB/s duplex",
		},
		{
			Name: "h100-nvl", Title: "NVIDIA H100 NVL", Vendor: "nvidia", PCI: []string{"10de:2321"}, SM: 90,
			Memory: 94 * gib, HBM: tb(3.938), Peak: peak(30, 60, 417.5, 835.5, 835.5, 1670.5, 0, 1670.5), LinkKind: cluster.NVLink, Link: nv4, Links: 12,
			PCIeGen: 5, Lanes: 16, GDR: cluster.Yes, Source: "NVIDIA H100 NVL product brief, 2024; " + h100, Note: "links only over bridges to one other card: 600 GB/s duplex",
		},
		{
			Name: "h200", Title: "NVIDIA H200", Vendor: "nvidia", Names: []string{"H200 SXM", "H200 SXM 141GB", "H200-141GB-HBM3e", "H200 141GB HBM3e"}, PCI: []string{"10de:2335"}, SM: 90,
			Memory: 141 * gib, HBM: tb(4.8), Peak: peak(34, 67, 494.7, 989.4, 989.4, 1978.9, 0, 1978.9), LinkKind: cluster.NVLink, Link: nv4, Links: 18,
			PCIeGen: 5, Lanes: 16, GDR: cluster.Yes, Source: "NVIDIA H200 data sheet, 2024, sparse figures halved", Note: "the driver shows 143,771 MiB",
		},
		{
			Name: "h200-nvl", Title: "NVIDIA H200 NVL", Vendor: "nvidia", PCI: []string{"10de:233b"}, SM: 90,
			Memory: 141 * gib, HBM: tb(4.8), Peak: peak(30, 60, 417.5, 835.5, 835.5, 1670.5, 0, 1670.5), LinkKind: cluster.NVLink, Link: nv4, Links: 18,
			PCIeGen: 5, Lanes: 16, GDR: cluster.Yes, Source: "NVIDIA H200 data sheet, 2024, sparse figures halved", Note: "links over two- or four-way bridges: 900 GB/s duplex",
		},
		{
			Name: "h20", Title: "NVIDIA H20", Vendor: "nvidia", PCI: []string{"10de:2329"}, SM: 90,
			Memory: 96 * gib, HBM: tb(4.0), Peak: peak(1, 44, 74, 148, 148, 296, 0, 296), LinkKind: cluster.NVLink, Link: nv4, Links: 18,
			PCIeGen: 5, Lanes: 16, GDR: cluster.Yes, Source: "NVIDIA HGX H20 product brief, 2023, as published by resellers",
		},
		{
			Name: "h20-3e", Title: "NVIDIA H20-3e", Vendor: "nvidia", PCI: []string{"10de:232c"}, SM: 90,
			Memory: 141 * gib, HBM: tb(4.8), Peak: peak(1, 44, 74, 148, 148, 296, 0, 296), LinkKind: cluster.NVLink, Link: nv4, Links: 18,
			PCIeGen: 5, Lanes: 16, GDR: cluster.Yes, Source: "NVIDIA HGX H20 product brief, 2023, as published by resellers", Note: "H20 with H200's memory",
		},
		{
			Name: "h800", Title: "NVIDIA H800", Vendor: "nvidia", Names: []string{"H800 SXM", "H800 SXM5", "H800 80GB HBM3"}, PCI: []string{"10de:2324"}, SM: 90,
			Memory: 80 * gib, HBM: tb(3.35), Peak: peak(1, 67, 494.7, 989.4, 989.4, 1978.9, 0, 1978.9), LinkKind: cluster.NVLink, Link: nv4, Links: 8,
			PCIeGen: 5, Lanes: 16, GDR: cluster.Yes, Source: "NVIDIA H800 data sheet, 2023, as published by resellers; " + h100, Note: "H100 with 400 GB/s duplex NVLink; users report some 160 GB/s in one direction",
		},
		{
			Name: "h800-pcie", Title: "NVIDIA H800 PCIe", Vendor: "nvidia", PCI: []string{"10de:2322"}, SM: 90,
			Memory: 80 * gib, HBM: tb(2.039), Peak: peak(0.8, 51, 378, 756, 756, 1513, 0, 1513), LinkKind: cluster.NVLink, Link: nv4, Links: 8,
			PCIeGen: 5, Lanes: 16, GDR: cluster.Yes, Source: "NVIDIA H800 data sheet, 2023, as published by resellers", Note: "links only over bridges to one other card",
		},
		{
			Name: "gh200", Title: "NVIDIA GH200 120GB", Vendor: "nvidia", Names: []string{"GH200 480GB", "GH200 96GB", "GH200"}, PCI: []string{"10de:2342"}, SM: 90,
			Memory: 96 * gib, HBM: tb(4.0), Peak: peak(34, 67, 494.7, 989.4, 989.4, 1978.9, 0, 1978.9), LinkKind: cluster.NVLink, Link: nv4, Links: 18,
			PCIeGen: 5, Lanes: 16, GDR: cluster.Yes, Source: "NVIDIA GH200 data sheet, 2023, sparse figures halved", Note: "120GB and 480GB in the driver's name are the CPU's memory",
		},
		{
			Name: "gh200-144", Title: "NVIDIA GH200 144G HBM3e", Vendor: "nvidia", Names: []string{"GH200 144GB"}, PCI: []string{"10de:2348"}, SM: 90,
			Memory: 144 * gib, HBM: tb(4.9), Peak: peak(34, 67, 494.7, 989.4, 989.4, 1978.9, 0, 1978.9), LinkKind: cluster.NVLink, Link: nv4, Links: 18,
			PCIeGen: 5, Lanes: 16, GDR: cluster.Yes, Source: "NVIDIA GH200 data sheet, 2024, sparse figures halved",
		},
		{
			Name: "b200", Title: "NVIDIA B200", Vendor: "nvidia", Names: []string{"B200 SXM", "B200-SXM", "HGX B200"}, PCI: []string{"10de:2901"}, SM: 100,
			Memory: 180 * gib, HBM: tb(7.7), Peak: peak(37, 75, 1125, 2250, 2250, 4500, 9000, 4500), LinkKind: cluster.NVLink, Link: nv5, Links: 18,
			PCIeGen: 5, Lanes: 16, GDR: cluster.Yes, Source: b200, Note: "documents give 7.7 and 8 TB/s, 180 and 192 GB, fp32 75 and 80; the board has PCIe 6, hosts run it at 5",
		},
		{
			Name: "b300", Title: "NVIDIA B300 SXM6 AC", Vendor: "nvidia", Names: []string{"B300", "B300 SXM", "HGX B300"}, PCI: []string{"10de:3182"}, SM: 103,
			Memory: 275040 * unit.MiB, HBM: tb(7.75), Peak: peak(1.25, 75, 1125, 2250, 2250, 4500, 14000, 153.5), LinkKind: cluster.NVLink, Link: nv5, Links: 18,
			PCIeGen: 6, Lanes: 16, GDR: cluster.Yes, Source: ultra, Note: "sold as 288 GB, the driver shows 275,040 MiB; documents give 13.5 to 15 PFLOPS dense for fp4 and 7.75 or 8 TB/s",
		},
		{
			Name: "gb200", Title: "NVIDIA GB200", Vendor: "nvidia", Names: []string{"GB200 SXM"}, PCI: []string{"10de:2941"}, SM: 100,
			Memory: 186 * gib, HBM: tb(8), Peak: peak(40, 80, 1250, 2500, 2500, 5000, 10000, 5000), LinkKind: cluster.NVLink, Link: nv5, Links: 18,
			PCIeGen: 6, Lanes: 16, GDR: cluster.Yes, Source: nvl72, Note: "one of the two GPUs of a superchip; the driver shows 189,471 MiB",
		},
		{
			Name: "gb300", Title: "NVIDIA GB300", Vendor: "nvidia", Names: []string{"GB300 SXM"}, PCI: []string{"10de:31c2", "10de:31c3"}, SM: 103,
			Memory: 284208 * unit.MiB, HBM: tb(8), Peak: peak(1.3, 80, 1250, 2500, 2500, 5000, 15000, 165), LinkKind: cluster.NVLink, Link: nv5, Links: 18,
			PCIeGen: 6, Lanes: 16, GDR: cluster.Yes, Source: ultra, Note: "one of the two GPUs of a superchip; sold as 279 and 288 GB, the driver shows 284,208 MiB",
		},
	}
}
