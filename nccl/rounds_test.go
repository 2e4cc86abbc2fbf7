package nccl

import (
	"fmt"
	"reflect"
	"testing"

	"busbar/cluster"
	"busbar/hardware"
)

// TestRoundsRepeat holds searches that leave out rounds against searches of every round, on the first
// GPUs of all presets that NCCL runs on, and on every second and fourth as groups beside tensor
// parallelism have them.
func TestRoundsRepeat(t *testing.T) {
	left, whole := 0, 0
	for _, preset := range hardware.Presets() {
		c, err := hardware.Preset(preset.Name, 1)
		if err != nil {
			t.Fatal(err)
		}
		typ := c.TypeOf(0)
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
					(&Plan{Comm: Comm{Version: v}}).search(w)
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

// TestLeftOutUnsure holds a search that ends for want of steps, though rounds that it left out may have
// left some, to be done again with those.
func TestLeftOutUnsure(t *testing.T) {
	c := &compute{searcher: &searcher{}, left: -100}
	for _, x := range []struct {
		found, left, owed int
		over, unsure      bool
	}{
		{found: 0, left: -100, owed: 500},
		{found: 1, left: 100},
		{found: 1, left: -100, owed: 99, over: true},
		{found: 1, left: -100, owed: 100, over: true, unsure: true},
	} {
		c.best.NChannels, c.left, c.owed, c.unsure = x.found, x.left, x.owed, false
		if over := c.giveBack(); over != x.over || c.unsure != x.unsure {
			t.Errorf("%+v: over %t, unsure %t", x, over, c.unsure)
		}
	}
}
