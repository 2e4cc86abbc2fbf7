package hardware

import (
	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// amdGPUs lists AMD accelerators. An MI250X is two dies that software sees as
// two GPUs; both the module and the die have a row.
func amdGPUs() []GPUModel {
	gib := unit.GiB
	g := unit.GBps
	const mi300 = "AMD Instinct MI300X data sheet, 2023"
	const mi350 = "AMD Instinct MI350 series data sheets, 2025, dense"
	return []GPUModel{
		{
			Name: "mi100", Title: "AMD Instinct MI100", Vendor: "amd", PCI: []string{"1002:738c", "1002:738e"}, Arch: "gfx908",
			Memory: 32 * gib, HBM: tb(1.2288), Peak: peak(11.5, 23.1, 0, 184.6, 92.3, 0, 0, 184.6), LinkKind: cluster.XGMI, Link: 46 * g, Links: 3,
			PCIeGen: 4, Lanes: 16, GDR: cluster.Yes, Source: "AMD Instinct MI100 data sheet, 2020",
		},
		{
			Name: "mi210", Title: "AMD Instinct MI210", Vendor: "amd", PCI: []string{"1002:740f"}, Arch: "gfx90a",
			Memory: 64 * gib, HBM: tb(1.6384), Peak: peak(22.6, 22.6, 0, 181, 181, 0, 0, 181), LinkKind: cluster.XGMI, Link: 50 * g, Links: 3,
			PCIeGen: 4, Lanes: 16, GDR: cluster.Yes, Source: "AMD Instinct MI210 data sheet, 2022", Note: "matrix fp64 and fp32 45.3 TFLOPS",
		},
		{
			Name: "mi250x-gcd", Title: "AMD Instinct MI250X", Vendor: "amd", Names: []string{"MI250X / MI250", "MI250"}, PCI: []string{"1002:7408", "1002:740c"}, Arch: "gfx90a",
			Memory: 64 * gib, HBM: tb(1.6384), Peak: peak(23.95, 23.95, 0, 191.5, 191.5, 0, 0, 191.5), LinkKind: cluster.XGMI, Link: 50 * g, Links: 7,
			PCIeGen: 4, Lanes: 16, GDR: cluster.Yes, Source: "AMD Instinct MI250X data sheet, 2021, half of the module", Note: "one of two dies; what tools list under this name. Matrix fp64 47.9 TFLOPS",
		},
		{
			Name: "mi250x", Title: "AMD Instinct MI250X module", Vendor: "amd", Names: []string{"MI250X OAM"}, Arch: "gfx90a",
			Memory: 128 * gib, HBM: tb(3.2768), Peak: peak(47.9, 47.9, 0, 383, 383, 0, 0, 383), LinkKind: cluster.XGMI, Link: 50 * g, Links: 7,
			PCIeGen: 4, Lanes: 16, GDR: cluster.Yes, Source: "AMD Instinct MI250X data sheet, 2021", Note: "both dies; matrix fp64 95.7 TFLOPS",
		},
		{
			Name: "mi300a", Title: "AMD Instinct MI300A", Vendor: "amd", PCI: []string{"1002:74a0"}, Arch: "gfx942",
			Memory: 128 * gib, HBM: tb(5.3), Peak: peak(61.3, 122.6, 490.3, 980.6, 980.6, 1961.2, 0, 1961.2), LinkKind: cluster.XGMI, Link: 64 * g, Links: 6,
			PCIeGen: 5, Lanes: 16, GDR: cluster.Yes, Source: "AMD Instinct MI300A data sheet, 2023", Note: "CPU and GPU share the memory; matrix fp64 122.6 TFLOPS",
		},
		{
			Name: "mi300x", Title: "AMD Instinct MI300X", Vendor: "amd", Names: []string{"MI300X OAM", "MI300X VF", "MI300X HF"}, PCI: []string{"1002:74a1", "1002:74b5", "1002:74a9", "1002:74bd"}, Arch: "gfx942",
			Memory: 192 * gib, HBM: tb(5.3), Peak: peak(81.7, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 0, 2614.9), LinkKind: cluster.XGMI, Link: 64 * g, Links: 7,
			PCIeGen: 5, Lanes: 16, GDR: cluster.Yes, Source: mi300, Note: "matrix fp64 163.4 TFLOPS",
		},
		{
			Name: "mi325x", Title: "AMD Instinct MI325X", Vendor: "amd", PCI: []string{"1002:74a5", "1002:74b9"}, Arch: "gfx942",
			Memory: 256 * gib, HBM: tb(6), Peak: peak(81.7, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 0, 2614.9), LinkKind: cluster.XGMI, Link: 64 * g, Links: 7,
			PCIeGen: 5, Lanes: 16, GDR: cluster.Yes, Source: "AMD Instinct MI325X data sheet, 2024",
		},
		{
			Name: "mi350x", Title: "AMD Instinct MI350X", Vendor: "amd", PCI: []string{"1002:75a0"}, Arch: "gfx950",
			Memory: 288 * gib, HBM: tb(8), Peak: peak(72.1, 144.2, 0, 2306.9, 2306.9, 4613.7, 9227.5, 4613.7), LinkKind: cluster.XGMI, Link: 76.8 * g, Links: 7,
			PCIeGen: 5, Lanes: 16, GDR: cluster.Yes, Source: mi350,
		},
		{
			Name: "mi355x", Title: "AMD Instinct MI355X", Vendor: "amd", PCI: []string{"1002:75a3"}, Arch: "gfx950",
			Memory: 288 * gib, HBM: tb(8), Peak: peak(78.6, 157.3, 0, 2516.6, 2516.6, 5033.2, 10066.3, 5033.2), LinkKind: cluster.XGMI, Link: 76.8 * g, Links: 7,
			PCIeGen: 5, Lanes: 16, GDR: cluster.Yes, Source: mi350,
		},
	}
}

// intelGPUs lists Gaudi accelerators, whose links are Ethernet ports on the chip.
func intelGPUs() []GPUModel {
	return []GPUModel{
		{
			Name: "gaudi2", Title: "Intel Gaudi2", Vendor: "intel", Names: []string{"HL-225H", "HL-225"}, PCI: []string{"1da3:1020"},
			Memory: 96 * unit.GiB, HBM: tb(2.46), Peak: peak(0, 0, 0, 0, 432, 865, 0, 0), LinkKind: cluster.Gaudi, Link: 100 * unit.Gbps, Links: 24,
			PCIeGen: 4, Lanes: 16, GDR: cluster.Yes, Source: "Habana Gaudi2 white paper, 2022; S. Bekman, Machine Learning Engineering: accelerator chapter, 2026",
			Note: "Intel publishes no fp32 or fp16 figure",
		},
		{
			Name: "gaudi3", Title: "Intel Gaudi3", Vendor: "intel", Names: []string{"HL-325L", "HL-325"}, PCI: []string{"1da3:1060"},
			Memory: 128 * unit.GiB, HBM: tb(3.7), Peak: peak(0, 229, 0, 459, 1678, 1678, 0, 0), LinkKind: cluster.Gaudi, Link: 200 * unit.Gbps, Links: 24,
			PCIeGen: 5, Lanes: 16, GDR: cluster.Yes, Source: "Intel Gaudi 3 white paper, 2024; S. Bekman, Machine Learning Engineering: accelerator chapter, 2026",
			Note: "the first edition of the white paper gives 1,835 TFLOPS for bf16 and fp8",
		},
	}
}
