package ethtool

import (
	"slices"
	"testing"
)

// As ethtool 6.1 prints them.
const (
	ringText = `Ring parameters for eth0:
Pre-set maximums:
RX:			8192
RX Mini:		n/a
TX:			8192
TX push buff len:	n/a
Current hardware settings:
RX:			1024
RX Mini:		n/a
TX:			1024
`
	featureText = `Features for eth0:
rx-checksumming: on
tx-checksumming: on
	tx-checksum-ipv4: off [fixed]
	tx-checksum-ip-generic: on
scatter-gather: on
tcp-segmentation-offload: off
	tx-tcp-segmentation: off
generic-segmentation-offload: on
generic-receive-offload: off
large-receive-offload: off [fixed]
`
)

// Rings and features are of the interface that their heading names, beside its settings.
func TestRingsAndFeatures(t *testing.T) {
	f := read(t, "Settings for eth0:\n\tSpeed: 100000Mb/s\n\tLink detected: yes\n"+ringText+featureText)
	if len(f.Types[0].Devices) != 1 {
		t.Fatalf("%d NICs", len(f.Types[0].Devices))
	}
	n := f.Types[0].Devices[0].NIC
	if n.RxRing != 1024 || n.RxRingMax != 8192 ||
		!slices.Equal(n.Off, []string{"tcp-segmentation-offload", "generic-receive-offload"}) {
		t.Errorf("%+v", n)
	}
	// Files of two commands are of two formats, so that they may be about one machine.
	for format, text := range map[string]string{
		"ethtool -g": ringText, "ethtool -k": featureText, "ethtool": ringText + featureText,
	} {
		f := read(t, text)
		if d := f.Types[0].Devices; len(d) != 1 || d[0].Label != "eth0" || f.Format != format {
			t.Errorf("%s: %s, %+v", format, f.Format, d)
		}
	}
}
