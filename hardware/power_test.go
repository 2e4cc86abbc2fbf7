package hardware

import "testing"

// Every power has a source; those of usual GPUs are the data sheets'.
func TestPower(t *testing.T) {
	for _, m := range GPUs() {
		if m.TDP != 0 && (m.TDP < 50 || m.TDP > 2000 || m.TDPSource == "") {
			t.Errorf("%s: %v, %q", m.Name, m.TDP, m.TDPSource)
		}
	}
	// Figures of data sheets, written down apart.
	for name, want := range map[string]float64{
		"v100-16": 300, "v100-pcie-32": 250, "a100-40": 400, "a100-80": 400, "a100-pcie-80": 300, "h100": 700,
		"h100-nvl": 400, "h200": 700, "h200-nvl": 600, "b200": 1000, "b300": 1000, "gb200": 1200, "gb300": 1400,
		"l40s": 350, "mi250x-gcd": 280, "mi300x": 750, "mi325x": 1000, "mi355x": 1400, "gaudi2": 600, "gaudi3": 900,
	} {
		m, ok := GPUByName(name)
		if !ok || float64(m.TDP) != want {
			t.Errorf("%s: %v; expected %g W", name, m.TDP, want)
		}
	}
}
