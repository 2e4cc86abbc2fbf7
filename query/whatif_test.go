package query

import "testing"

// TestOtherNICs: --nic changes NICs that are known, too: a preset with another network takes longer.
func TestOtherNICs(t *testing.T) {
	ask := func(nic string) float64 {
		t.Helper()
		d, err := Predict{Cluster: "dgx-h100:2", Size: "1G", NIC: nic}.Run(t.Context(), Env{})
		if err != nil {
			t.Fatalf("--nic %s: %v", nic, err)
		}
		return d.Rows[0].Time.Seconds()
	}
	own, slow, one := ask(""), ask("10GbE"), ask("1x400G")
	if slow < 10*own || one < 2*own {
		t.Errorf("its own NICs %.4g s, 10GbE %.4g s, one of them %.4g s; want both slower", own, slow, one)
	}
}
