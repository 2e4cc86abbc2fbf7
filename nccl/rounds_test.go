package nccl

import (
	"fmt"
	"os"
	"reflect"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
)

// TestRoundsRepeat holds searches that leave out rounds against searches of every round, on the first
// GPUs of all presets that NCCL runs on, and on every second and fourth as groups beside tensor
// parallelism have them.
func TestRoundsRepeat(t *testing.T) {
	left, whole := 0, 0
	seen := map[string]bool{}
	for _, preset := range hardware.Presets() {
		c, err := hardware.Preset(preset.Name, 1)
		if err != nil {
			t.Fatal(err)
		}
		typ := c.TypeOf(0)
		// One of several that are wired alike; BUSBAR_LONG=1m (make test-long) takes all.
		alike := fmt.Sprint(typ.Count(cluster.GPU), typ.Count(cluster.NVSwitch), typ.Count(cluster.NIC),
			typ.Count(cluster.PCISwitch), len(typ.Links))
		if seen[alike] && os.Getenv("BUSBAR_LONG") == "" {
			continue
		}
		seen[alike] = true
		for _, gpus := range parts(typ.Of(cluster.GPU)) {
			for _, minor := range []int{21, 26, 30} {
				if minor != 30 && (typ.Count(cluster.NVSwitch) == 0 || gpus[len(gpus)-1] != typ.Of(cluster.GPU)[len(gpus)-1]) {
					continue // as with 2.30, and long
				}
				v := Version{2, minor, 3}
				search := func(every bool) (Graphs, int) {
					nets, err := netsOf(typ, gpus, nil)
					if err != nil {
						return Graphs{}, 0
					}
					s, err := newSystem(typ, gpus, nets, v, nil)
					if err != nil {
						return Graphs{}, 0 // GPUs that are not NVIDIA's
					}
					s.everySpeed = every
					w := &View{sys: s}
					(&Plan{Comm: Comm{Version: v, rules: v.rules()}}).search(w)
					return w.Graphs, s.work
				}
				some, few := search(false)
				all, many := search(true)
				if !reflect.DeepEqual(some, all) {
					t.Errorf("%s, GPUs %v, %v: %v\nwith every round %v", preset.Name, gpus, v, fmt.Sprint(some), fmt.Sprint(all))
				}
				left, whole = left+few, whole+many
			}
		}
	}
	if left >= whole/2 {
		t.Errorf("%d hops of %d: few rounds were left out", left, whole)
	}
	t.Logf("%d hops of %d", left, whole)
}

// parts are the first GPUs of a node, and as many with others between.
func parts(gpus []int) (list [][]int) {
	for n := 1; n <= min(len(gpus), 8); n *= 2 {
		for apart := 1; apart <= 4 && apart*n <= len(gpus) && (n > 1 || apart == 1); apart *= 2 {
			var some []int
			for i := range n {
				some = append(some, gpus[i*apart])
			}
			list = append(list, some)
		}
	}
	return list
}

// TestGiveBack holds a search that may have run out of steps, depending on rounds that it left out, to
// go on, and to know whether it found more afterwards.
func TestGiveBack(t *testing.T) {
	for _, x := range []struct {
		channels, left, owed int
		over, doubt          bool
	}{
		{channels: 0, left: -100, owed: 500},
		{channels: 1, left: 100},
		{channels: 1, left: -100, owed: 99, over: true},
		{channels: 1, left: -100, owed: 100, doubt: true},
	} {
		c := &compute{searcher: &searcher{found: 3}, left: x.left, owed: x.owed}
		c.best.NChannels = x.channels
		if over := c.giveBack(); over != x.over || c.doubt != x.doubt || !c.sure() {
			t.Errorf("%+v: over %t, doubt %t, sure %t", x, over, c.doubt, c.sure())
		}
		if c.found++; c.sure() == x.doubt {
			t.Errorf("%+v: sure %t after more was found", x, c.sure())
		}
	}
}
