package ibnet

import (
	"strings"
	"testing"
	"time"
)

// tenThousand is a fabric whose ibnetdiscover output has 10,240 port lines.
var tenThousand = fatTree{leaves: 80, spines: 32, hosts: 32, cables: 1, speed: "NDR", scanned: true}

func BenchmarkReadDiscover10000Ports(b *testing.B) {
	text := tenThousand.text()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadDiscover("bench", strings.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}

// A wide margin: the aim is a tenth of a second, the promise two.
func TestTenThousandPortsUnderTwoSeconds(t *testing.T) {
	text := tenThousand.text()
	if n := strings.Count(text, "\n["); n != 10240 {
		t.Fatalf("the generator wrote %d port lines", n)
	}
	start := time.Now()
	f, err := ReadDiscover("generated", strings.NewReader(text))
	took := time.Since(start)
	if err != nil {
		t.Fatal(err)
	}
	if s := f.Summary(); s.Nodes != 2560 || s.Switches != 112 || s.NodeTypes != 1 || len(f.Network.Links) != 5120 || len(f.Warnings) != 0 {
		t.Errorf("summary %+v, %d links, warnings %v", s, len(f.Network.Links), f.Warnings)
	}
	if took > 2*time.Second {
		t.Errorf("took %v", took)
	}
}
