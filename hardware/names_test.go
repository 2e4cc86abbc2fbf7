package hardware

import "testing"

// Names of GPUs as MLPerf, cloud offers, model cards and nvidia-smi write them are the variant that is meant: its form
// and its memory decide the rate of memory and the power. What is not in the catalogue is none of it.
func TestGPUSpellings(t *testing.T) {
	for text, want := range map[string]string{
		"H100-SXM5-80GB": "h100", "NVIDIA H100 80GB HBM3": "h100", "8x H100": "h100", "8xH100-SXM": "h100",
		"DGX H100": "h100", "HGX-H100": "h100", "H100 PCIe": "h100-pcie", "NVIDIA H100-PCIe-80GB": "h100-pcie",
		"H100 80GB PCIe": "h100-pcie",
		"H100 NVL":       "h100-nvl", "H100-NVL-94GB": "h100-nvl", "H100 94GB": "h100-nvl", "H200": "h200",
		"H200-SXM5-141GB": "h200", "H200-NVL-141GB": "h200-nvl", "H200 141GB HBM3e": "h200", "H20": "h20",
		"H20-SXM5-96GB": "h20", "H20 141GB": "h20-3e",
		"H800": "h800", "H800-SXM5-80GB": "h800", "H800 PCIe": "h800-pcie", "GH200": "gh200", "GH200 480GB": "gh200",
		"GH200 144GB": "gh200-144", "B200": "b200", "B200-SXM-180GB": "b200", "DGX-B200": "b200", "B200 192GB": "b200",
		"B300": "b300", "B300-SXM-288GB": "b300", "GB200": "gb200", "GB200 NVL72": "gb200", "DGX-GB200": "gb200",
		"GB300": "gb300", "GB300-288GB": "gb300", "A100": "a100-80", "A100-SXM4-80G": "a100-80", "A100 40GB": "a100-40",
		"A100-40G":       "a100-40",
		"A100-PCIe-40GB": "a100-pcie-40", "A100 40GB PCIe": "a100-pcie-40", "A100 80GB PCIe": "a100-pcie-80",
		"A800-SXM4-80GB": "a800", "A800 80GB PCIe": "a800-pcie", "V100 32GB": "v100-32", "V100-SXM2-16GB": "v100-16",
		"V100 PCIe 32GB": "v100-pcie-32",
		"L40S":           "l40s", "NVIDIA L40S 48GB": "l40s", "L4": "l4", "A10G": "a10g", "RTX 4090": "rtx4090",
		"GeForce RTX 4090 24GB": "rtx4090", "2x RTX 4090": "rtx4090", "4090": "rtx4090", "RTX 5090": "rtx5090",
		"RTX 3090": "rtx3090", "RTX 3090 Ti": "rtx3090ti",
		"RTX A6000": "a6000", "A6000 48GB": "a6000", "RTX 6000 Ada": "rtx6000ada", "RTX PRO 6000 Blackwell": "rtxpro6000",
		"MI300X": "mi300x", "AMD Instinct MI300X 192GB": "mi300x", "MI325X": "mi325x", "MI355X": "mi355x",
		"MI250X 128GB": "mi250x", "MI210": "mi210",
		"T4": "t4", "DGX Spark": "gb10",
	} {
		if m, ok := GPUByName(text); !ok || m.Name != want {
			t.Errorf("%q is %q; expected %s", text, m.Name, want)
		}
	}
	for _, text := range []string{
		"", "H1000", "H101", "TPU v5p", "Trainium2", "Ascend 910B", "RTX 4090 Laptop", "RTX 4090 D", "RTX 3070", "H200 8",
		"GPU", "8x",
	} {
		if m, ok := GPUByName(text); ok && m.Name != "h200" {
			t.Errorf("%q is %s; expected none", text, m.Name)
		}
	}
}
