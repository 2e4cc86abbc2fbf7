package hardware

import "busbar.dev/unit"

// draw is what a GPU may take of electric power, and who says so.
type draw struct {
	TDP    unit.Power
	Source string
}

// draws are the powers that the makers state, by the catalogue's names: thermal design power, or
// board power where that is what a data sheet has. Of GPUs that share a module with a CPU it is the
// GPU's part where that is stated.
func draws() map[string]draw {
	const (
		pascal  = "NVIDIA Tesla P100 data sheet, 2016"
		volta   = "NVIDIA V100 data sheet, 2020"
		a100    = "NVIDIA A100 data sheet, 2021"
		h100    = "NVIDIA H100 data sheet, 2023"
		h200    = "NVIDIA H200 data sheet, 2024"
		dgxB200 = "NVIDIA DGX B200 user guide, power capping: the most a GPU may take"
		dgxB300 = "NVIDIA DGX B300 user guide, power capping: the most a GPU may take"
		nvl72   = "NVIDIA Mission Control administration guide, power: the most a GPU may take"
		ada     = "NVIDIA Ada GPU architecture white paper, 2023, and the card's data sheet"
		ampere  = "NVIDIA data sheet of the card, 2020 to 2021"
		amd     = "AMD Instinct specifications of the accelerator: typical board power, peak"
		habana  = "Intel Gaudi white paper of the accelerator"
	)
	return map[string]draw{
		"p100": {300, pascal}, "p100-pcie": {250, pascal}, "p40": {250, "NVIDIA Tesla P40 data sheet, 2016"},
		"v100-16": {300, volta}, "v100-32": {300, volta}, "v100-pcie-16": {250, volta}, "v100-pcie-32": {250, volta}, "v100s": {250, volta},
		"t4":      {70, "NVIDIA T4 data sheet, 2019"},
		"a100-40": {400, a100}, "a100-80": {400, a100}, "a100-pcie-40": {250, a100}, "a100-pcie-80": {300, a100}, "a800-40": {400, "as A100; " + a100}, "a800": {400, "as A100; " + a100}, "a800-pcie": {300, "as A100; " + a100},
		"a30": {165, ampere}, "a10": {150, ampere}, "a40": {300, ampere}, "a6000": {300, ampere}, "rtx3090": {350, ampere},
		"l4": {72, ada}, "l40": {300, ada}, "l40s": {350, ada}, "rtx6000ada": {300, ada}, "rtx4090": {450, ada},
		"h100": {700, h100}, "h100-pcie": {350, h100}, "h100-nvl": {400, "NVIDIA H100 NVL product brief, 2024"}, "h800": {700, "as H100; " + h100}, "h800-pcie": {350, "as H100; " + h100},
		"h200": {700, h200}, "h200-nvl": {600, h200},
		"b200": {1000, dgxB200}, "b300": {1000, dgxB300}, "gb200": {1200, nvl72}, "gb300": {1400, nvl72},
		"rtx5090": {575, "NVIDIA GeForce RTX 5090 specifications, 2025"}, "rtxpro6000": {600, "NVIDIA RTX PRO 6000 Blackwell Server Edition data sheet, 2025"},
		"mi100": {300, amd}, "mi210": {300, amd}, "mi250x-gcd": {280, "half of the module's 560 W; " + amd}, "mi250x": {560, amd}, "mi300x": {750, amd}, "mi325x": {1000, amd}, "mi350x": {1000, amd}, "mi355x": {1400, amd},
		"gaudi2": {600, habana}, "gaudi3": {900, habana},
	}
}

// powered fills in what GPUs draw.
func powered(list []GPUModel) []GPUModel {
	all := draws()
	for i := range list {
		d := all[list[i].Name]
		list[i].TDP, list[i].TDPSource = d.TDP, d.Source
	}
	return list
}
