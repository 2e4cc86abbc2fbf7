package ibnet

import (
	"strings"
	"testing"
)

// tenThousand is a fabric whose ibnetdiscover output has 10,240 port lines.
var tenThousand = fatTree{leaves: 80, spines: 32, hosts: 32, cables: 1, speed: "NDR", scanned: true}

func BenchmarkReadDiscover10000Ports(b *testing.B) {
	text := tenThousand.text()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Discover.Read("bench", strings.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}

// The aim is a quarter of a second, which make bench shows.
func TestTenThousandPorts(t *testing.T) {
	text := tenThousand.text()
	if n := strings.Count(text, "\n["); n != 10240 {
		t.Fatalf("the generator wrote %d port lines", n)
	}
	f, err := Discover.Read("generated", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if s := f.Summary(); s.Nodes != 2560 || s.Switches != 112 || s.NodeTypes != 1 || len(f.Network.Links) != 5120 ||
		len(f.Warnings) != 0 {
		t.Errorf("summary %+v, %d links, warnings %v", s, len(f.Network.Links), f.Warnings)
	}
}
