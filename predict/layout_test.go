package predict

import (
	"testing"

	"busbar.dev/hardware"
)

func TestParseLayout(t *testing.T) {
	for _, c := range []struct {
		text        string
		nodes, gpus int
	}{
		{"2x4", 2, 4},
		{" 1X8 ", 1, 8},
		{"131072x8", 131072, 8},
		{"", 0, 0},
		{"4", 0, 0},
		{"0x4", 0, 0},
		{"-1x4", 0, 0},
		{"2x", 0, 0},
		{"2x4x1", 0, 0},
		{"9999999x9999999", 0, 0},
		{"4611686018427387904x4", 0, 0},
	} {
		nodes, gpus, err := ParseLayout(c.text)
		if (err != nil) != (c.nodes == 0) || err == nil && (nodes != c.nodes || gpus != c.gpus) {
			t.Errorf("%q: %dx%d, error %v", c.text, nodes, gpus, err)
		}
	}
}

func FuzzParseLayout(f *testing.F) {
	for _, s := range []string{"2x4", "x", "1x99999999999999999999", "２x４"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		nodes, gpus, err := ParseLayout(s)
		if err == nil && (nodes < 1 || gpus < 1 || nodes*gpus > MaxRanks) {
			t.Errorf("%q: %dx%d", s, nodes, gpus)
		}
	})
}

func TestEverything(t *testing.T) {
	c, err := hardware.Preset("baskerville", 3)
	if err != nil {
		t.Fatal(err)
	}
	l, name, err := AllGPUs(c)
	if err != nil || len(l) != 12 || name != "3x4" {
		t.Errorf("%d ranks, %s, error %v", len(l), name, err)
	}
	c.Hosts = nil
	if _, _, err := AllGPUs(c); err == nil {
		t.Error("a cluster without nodes has a layout")
	}
}
