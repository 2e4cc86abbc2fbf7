package hardware

import "testing"

// Every row of the powers is of a GPU in the catalogue and has a source; those that presets are
// made of have one.
func TestDraws(t *testing.T) {
	known := map[string]bool{}
	for _, m := range GPUs() {
		known[m.Name] = true
		d, ok := m.Draw()
		if ok && (d.TDP < 50 || d.TDP > 2000 || d.Source == "") {
			t.Errorf("%s: %+v", m.Name, d)
		}
	}
	for name := range draws() {
		if !known[name] {
			t.Errorf("%s is not in the catalogue", name)
		}
	}
	for _, name := range []string{"v100-16", "a100-40", "a100-80", "h100", "h200", "b200", "gb200", "mi300x"} {
		m, ok := GPUByName(name)
		if d, has := m.Draw(); !ok || !has || d.TDP == 0 {
			t.Errorf("%s has no power", name)
		}
	}
}
