package ibnet

import (
	"strings"
	"testing"
)

func TestHostOf(t *testing.T) {
	for desc, want := range map[string]string{
		"a08-p1-dgx-04-c01 mlx5_5": "a08-p1-dgx-04-c01|mlx5_5",
		"node01 HCA-1":             "node01|HCA-1",
		"node01 mlx5_bond_0":       "node01|mlx5_bond_0",
		"node01 hfi1_0":            "node01|hfi1_0",
		"NVIDIA-dgx mlx5_0":        "NVIDIA-dgx|mlx5_0",
		"Hca0":                     "Hca0|",
		"node01 ib0":               "node01|ib0",
		"MT4129 ConnectX7   Mellanox Technologies": "|",
		"Voltaire HCA400Ex":                        "|",
		"MT4129 HCA-1":                             "|",
		"Some storage box":                         "|",
		"":                                         "|",
	} {
		host, label := hostOf(desc)
		if host+"|"+label != want {
			t.Errorf("%q: host %q, label %q; want %s", desc, host, label, want)
		}
	}
}

func TestSwitchOf(t *testing.T) {
	for desc, want := range map[string]string{
		"MF0;A09-P1-IBLEAF-04-04:MQM9701/U1":   "A09-P1-IBLEAF-04-04|MQM9701",
		"MF0;core1:CS7500/L01/U1":              "core1/L01/U1|CS7500",
		"ib-i1l1s01":                           "ib-i1l1s01|",
		"Infiniscale-IV Mellanox Technologies": "|Infiniscale-IV",
		"SwitchX -  Mellanox Technologies":     "|SwitchX",
		"ISR9024 Voltaire":                     "|ISR9024",
		"MT52000 Mellanox Technologies":        "|MT52000",
		"":                                     "|",
	} {
		if name, model := switchOf(desc); name+"|"+model != want {
			t.Errorf("%q: name %q, model %q; want %s", desc, name, model, want)
		}
	}
}

func TestPlain(t *testing.T) {
	if s := plain("  a\x1b[0m\xffb "); s != "a?[0m?b" {
		t.Errorf("%q", s)
	}
	if n := len(plain(strings.Repeat("x", 5000))); n != 256 {
		t.Errorf("%d bytes kept", n)
	}
}

func TestWidth(t *testing.T) {
	for text, want := range map[string]string{
		"4xNDR": "400 Gb/s", "2xNDR": "200 Gb/s", "4xHDR": "200 Gb/s", "1xHDR": "50 Gb/s", "4xEDR": "100 Gb/s",
		"4xFDR": "54.6 Gb/s", "4xFDR10": "40 Gb/s", "4xQDR": "32 Gb/s", "4xDDR": "16 Gb/s", "12xSDR": "24 Gb/s",
		"4xXDR": "800 Gb/s",
	} {
		w, ok := parseWidth(text)
		if !ok || w.String() != text || w.fact("x").Value.Bits() != want {
			t.Errorf("%s: %v, %s; want %s", text, ok, w.fact("x").Value.Bits(), want)
		}
	}
	for _, text := range []string{"4x???", "4x"} {
		if w, ok := parseWidth(text); !ok || w.known() || w.fact("x").Known() || w.lanes != 4 {
			t.Errorf("%s: %+v", text, w)
		}
	}
	for _, text := range []string{"", "x", "0xHDR", "13xHDR", "-4xHDR", "99999999999xHDR", "4"} {
		if w, ok := parseWidth(text); ok {
			t.Errorf("%s: %+v", text, w)
		}
	}
}
