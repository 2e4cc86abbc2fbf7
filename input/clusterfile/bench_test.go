package clusterfile

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/goccy/go-yaml"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/unit"
)

// fabric is a cluster in which every cable is listed, as a subnet manager's
// report gives it: eight ports a node, and as many again between the switches.
func fabric(tb testing.TB, nodes int) *cluster.Cluster {
	tb.Helper()
	c, err := hardware.Preset("dgx-h100", nodes)
	if err != nil {
		tb.Fatal(err)
	}
	c.Network = cluster.Network{Kind: cluster.InfiniBand}
	n := &c.Network
	cable := func(a, b cluster.End) {
		n.Links = append(n.Links, cluster.NetLink{
			A: a, B: b, Lanes: 4, Speed: "4xNDR", Rate: cluster.FromRead(unit.Rate(5e10), "ibnetdiscover"),
			Max: cluster.FromRead(unit.Rate(5e10), "iblinkinfo"), State: cluster.Up,
		})
	}
	leaves := (nodes*8 + 31) / 32
	for i := range leaves + leaves/2 + 1 {
		tier := cluster.Leaf
		if i >= leaves {
			tier = cluster.Spine
		}
		n.Switches = append(n.Switches, cluster.Switch{
			Name: fmt.Sprintf("MF0;ib-%04d:MQM9700/U1", i), GUID: fmt.Sprintf("0x%016x", i), Tier: tier, Rail: -1, Ports: 64,
			LID: i + 1,
		})
	}
	for i := range nodes * 8 {
		cable(cluster.AtSwitch(i/32, i%32+1), cluster.End{
			Switch: -1, Hosts: []cluster.Span{{First: i / 8, N: 1}}, NIC: i % 8, Port: 1,
		})
		cable(cluster.AtSwitch(leaves+i%(leaves/2+1), i%64+1), cluster.AtSwitch(i/32, 32+i%32+1))
	}
	for i := range c.Hosts {
		for k := range 8 {
			c.Hosts[i].IDs = append(c.Hosts[i].IDs, cluster.Identity{
				Device: fmt.Sprintf("nic%d", k), Port: 1, GUID: fmt.Sprintf("0x%016x", i*8+k), LID: i*8 + k + 1,
				Counters: map[string]uint64{"SymbolErrorCounter": uint64(i)},
			})
		}
	}
	return c
}

func written10k(tb testing.TB, nodes int) []byte {
	var b bytes.Buffer
	if err := Write(&b, fabric(tb, nodes)); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// BenchmarkRead reads a fabric of 10,000 adapter ports.
func BenchmarkRead(b *testing.B) {
	text := written10k(b, 1250)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read("x", bytes.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	c := fabric(b, 1250)
	b.SetBytes(int64(len(written10k(b, 1250))))
	b.ReportAllocs()
	for b.Loop() {
		if err := Write(io.Discard, c); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGeneralLibrary reads 80 ports, for comparison: its time is quadratic.
func BenchmarkGeneralLibrary(b *testing.B) {
	text := written10k(b, 10)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		var f file
		if err := yaml.Unmarshal(text, &f); err != nil {
			b.Fatal(err)
		}
	}
}

// TestMemory holds reading to a multiple of the text.
func TestMemory(t *testing.T) {
	text := written10k(t, 1250)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	if _, err := Read("x", bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 20*uint64(len(text)) {
		t.Errorf("%d bytes allocated in all for a text of %d", n, len(text))
	} else {
		t.Logf("%d allocated in all, text %d: %dx", n, len(text), n/uint64(len(text)))
	}
}
