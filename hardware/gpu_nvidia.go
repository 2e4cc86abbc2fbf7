package hardware

import (
	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// tb is a memory bandwidth in TB/s.
func tb(v float64) unit.Rate { return unit.Rate(v * 1e12) }

// nvidiaOld lists NVIDIA data-centre GPUs up to Ampere. What NVIDIA calls GB of
// GPU memory is GiB.
func nvidiaOld() []GPUModel {
	const v100 = "NVIDIA V100 data sheet, 2020-01"
	const a100 = "NVIDIA A100 data sheet, 2021-06"
	gib := unit.GiB
	nv1, nv2, nv3 := NVLinkRate(1), NVLinkRate(2), NVLinkRate(3)
	return []GPUModel{
		{
			Name: "p100", Title: "Tesla P100-SXM2-16GB", Vendor: "nvidia", Names: []string{"P100 SXM2", "P100"}, PCI: []string{"10de:15f9"}, SM: 60,
			Memory: 16 * gib, HBM: tb(0.732), Peak: peak(5.3, 10.6, 0, 21.2, 0, 0, 0, 0), LinkKind: cluster.NVLink, Link: nv1, Links: 4,
			PCIeGen: 3, Lanes: 16, GDR: cluster.Yes, Source: "NVIDIA Tesla P100 data sheet, 2016",
		},
		{
			Name: "p100-pcie", Title: "Tesla P100-PCIE-16GB", Vendor: "nvidia", PCI: []string{"10de:15f8"}, SM: 60,
			Memory: 16 * gib, HBM: tb(0.732), Peak: peak(4.7, 9.3, 0, 18.7, 0, 0, 0, 0), PCIeGen: 3, Lanes: 16, GDR: cluster.Yes,
			Source: "NVIDIA Tesla P100 PCIe data sheet, 2016",
		},
		{
			Name: "p40", Title: "Tesla P40", Vendor: "nvidia", PCI: []string{"10de:1b38"}, SM: 61,
			Memory: 24 * gib, HBM: tb(0.346), Peak: peak(0, 12, 0, 0, 0, 0, 0, 47), PCIeGen: 3, Lanes: 16, GDR: cluster.Yes,
			Source: "NVIDIA Tesla P40 data sheet, 2017",
		},
		{
			Name: "v100-16", Title: "Tesla V100-SXM2-16GB", Vendor: "nvidia", Names: []string{"V100 SXM2", "V100"}, PCI: []string{"10de:1db1", "10de:1df5"}, SM: 70,
			Memory: 16 * gib, HBM: tb(0.9), Peak: peak(7.8, 15.7, 0, 125, 0, 0, 0, 0), LinkKind: cluster.NVLink, Link: nv2, Links: 6,
			PCIeGen: 3, Lanes: 16, GDR: cluster.Yes, Source: v100,
		},
		{
			Name: "v100-32", Title: "Tesla V100-SXM2-32GB", Vendor: "nvidia", Names: []string{"Tesla V100-SXM3-32GB"}, PCI: []string{"10de:1db5", "10de:1db8"}, SM: 70,
			Memory: 32 * gib, HBM: tb(0.9), Peak: peak(7.8, 15.7, 0, 125, 0, 0, 0, 0), LinkKind: cluster.NVLink, Link: nv2, Links: 6,
			PCIeGen: 3, Lanes: 16, GDR: cluster.Yes, Source: v100, Note: "the SXM3 module of DGX-2 runs a little faster",
		},
		{
			Name: "v100-pcie-16", Title: "Tesla V100-PCIE-16GB", Vendor: "nvidia", Names: []string{"V100 PCIe"}, PCI: []string{"10de:1db4"}, SM: 70,
			Memory: 16 * gib, HBM: tb(0.9), Peak: peak(7, 14, 0, 112, 0, 0, 0, 0), PCIeGen: 3, Lanes: 16, GDR: cluster.Yes, Source: v100,
		},
		{
			Name: "v100-pcie-32", Title: "Tesla V100-PCIE-32GB", Vendor: "nvidia", PCI: []string{"10de:1db6"}, SM: 70,
			Memory: 32 * gib, HBM: tb(0.9), Peak: peak(7, 14, 0, 112, 0, 0, 0, 0), PCIeGen: 3, Lanes: 16, GDR: cluster.Yes, Source: v100,
		},
		{
			Name: "v100s", Title: "Tesla V100S-PCIE-32GB", Vendor: "nvidia", Names: []string{"V100S"}, PCI: []string{"10de:1df6"}, SM: 70,
			Memory: 32 * gib, HBM: tb(1.134), Peak: peak(8.2, 16.4, 0, 130, 0, 0, 0, 0), PCIeGen: 3, Lanes: 16, GDR: cluster.Yes, Source: v100,
		},
		{
			Name: "t4", Title: "Tesla T4", Vendor: "nvidia", PCI: []string{"10de:1eb8"}, SM: 75,
			Memory: 16 * gib, HBM: tb(0.32), Peak: peak(0, 8.1, 0, 65, 0, 0, 0, 130), PCIeGen: 3, Lanes: 16, GDR: cluster.Yes,
			Source: "NVIDIA T4 data sheet, 2019", Note: "the first data sheet says 300 GB/s, later ones 320",
		},
		{
			Name: "a100-40", Title: "NVIDIA A100-SXM4-40GB", Vendor: "nvidia", Names: []string{"A100-SXM-40GB", "A100 SXM4 40GB HBM2", "A100-PG509-200"}, PCI: []string{"10de:20b0"}, SM: 80,
			Memory: 40 * gib, HBM: tb(1.555), Peak: peak(9.7, 19.5, 156, 312, 312, 0, 0, 624), LinkKind: cluster.NVLink, Link: nv3, Links: 12,
			PCIeGen: 4, Lanes: 16, GDR: cluster.Yes, Source: a100, Note: "fp64 on tensor cores 19.5 TFLOPS",
		},
		{
			Name: "a100-80", Title: "NVIDIA A100-SXM4-80GB", Vendor: "nvidia", Names: []string{"A100-SXM-80GB", "A100 SXM4", "A100 SXM", "A100"}, PCI: []string{"10de:20b2"}, SM: 80,
			Memory: 80 * gib, HBM: tb(2.039), Peak: peak(9.7, 19.5, 156, 312, 312, 0, 0, 624), LinkKind: cluster.NVLink, Link: nv3, Links: 12,
			PCIeGen: 4, Lanes: 16, GDR: cluster.Yes, Source: a100,
			Note: "fp64 on tensor cores 19.5 TFLOPS; a widely copied table lists fp8 at 624, the chip has none",
		},
		{
			Name: "a100-64", Title: "NVIDIA A100-SXM-64GB", Vendor: "nvidia", PCI: []string{"10de:20b3"}, SM: 80,
			Memory: 64 * gib, HBM: tb(1.64), Peak: peak(11.2, 22.4, 179, 358, 358, 0, 0, 716), LinkKind: cluster.NVLink, Link: nv3, Links: 12,
			PCIeGen: 4, Lanes: 16, GDR: cluster.Yes, Source: "CINECA, Leonardo: a pan-European pre-exascale supercomputer, 2023", Note: "Leonardo's own variant",
		},
		{
			Name: "a100-pcie-40", Title: "NVIDIA A100-PCIE-40GB", Vendor: "nvidia", Names: []string{"A100 PCIe 40GB"}, PCI: []string{"10de:20f1", "10de:20b1"}, SM: 80,
			Memory: 40 * gib, HBM: tb(1.555), Peak: peak(9.7, 19.5, 156, 312, 312, 0, 0, 624), LinkKind: cluster.NVLink, Link: nv3, Links: 12,
			PCIeGen: 4, Lanes: 16, GDR: cluster.Yes, Source: a100, Note: "links only over a bridge to one other card",
		},
		{
			Name: "a100-pcie-80", Title: "NVIDIA A100 80GB PCIe", Vendor: "nvidia", Names: []string{"A100-PCIE-80GB", "A100 PCIe"}, PCI: []string{"10de:20b5"}, SM: 80,
			Memory: 80 * gib, HBM: tb(1.935), Peak: peak(9.7, 19.5, 156, 312, 312, 0, 0, 624), LinkKind: cluster.NVLink, Link: nv3, Links: 12,
			PCIeGen: 4, Lanes: 16, GDR: cluster.Yes, Source: a100, Note: "links only over a bridge to one other card",
		},
		{
			Name: "a800-40", Title: "NVIDIA A800-SXM4-40GB", Vendor: "nvidia", PCI: []string{"10de:20bd"}, SM: 80,
			Memory: 40 * gib, HBM: tb(1.555), Peak: peak(9.7, 19.5, 156, 312, 312, 0, 0, 624), LinkKind: cluster.NVLink, Link: nv3, Links: 8,
			PCIeGen: 4, Lanes: 16, GDR: cluster.Yes, Source: "NVIDIA A800 data sheet, 2022", Note: "400 GB/s duplex",
		},
		{
			Name: "a800", Title: "NVIDIA A800-SXM4-80GB", Vendor: "nvidia", Names: []string{"A800-80", "A800 SXM4", "A800 SXM"}, PCI: []string{"10de:20f3"}, SM: 80,
			Memory: 80 * gib, HBM: tb(2.039), Peak: peak(9.7, 19.5, 156, 312, 312, 0, 0, 624), LinkKind: cluster.NVLink, Link: nv3, Links: 8,
			PCIeGen: 4, Lanes: 16, GDR: cluster.Yes, Source: "NVIDIA A800 data sheet, 2022", Note: "400 GB/s duplex",
		},
		{
			Name: "a800-pcie", Title: "NVIDIA A800 80GB PCIe", Vendor: "nvidia", PCI: []string{"10de:20f5"}, SM: 80,
			Memory: 80 * gib, HBM: tb(1.935), Peak: peak(9.7, 19.5, 156, 312, 312, 0, 0, 624), LinkKind: cluster.NVLink, Link: nv3, Links: 8,
			PCIeGen: 4, Lanes: 16, GDR: cluster.Yes, Source: "NVIDIA A800 data sheet, 2022", Note: "links only over a bridge to one other card",
		},
		{
			Name: "a30", Title: "NVIDIA A30", Vendor: "nvidia", PCI: []string{"10de:20b7"}, SM: 80,
			Memory: 24 * gib, HBM: tb(0.933), Peak: peak(5.2, 10.3, 82, 165, 165, 0, 0, 330), LinkKind: cluster.NVLink, Link: nv3, Links: 4,
			PCIeGen: 4, Lanes: 16, GDR: cluster.Yes, Source: "NVIDIA A30 data sheet, 2022", Note: "links only over a bridge: 200 GB/s duplex",
		},
	}
}
