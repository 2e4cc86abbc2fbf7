package nccl

import (
	"fmt"
	"reflect"
	"testing"

	"busbar/cluster"
	"busbar/hardware"
)

// TestRoundsRepeat holds searches that leave out rounds against searches at every speed, on all
// presets with NVSwitches, where the order of GPUs does not follow what links have left.
func TestRoundsRepeat(t *testing.T) {
	left, whole := 0, 0
	for _, preset := range hardware.Presets() {
		c, err := hardware.Preset(preset.Name, 1)
		if err != nil {
			t.Fatal(err)
		}
		typ := c.TypeOf(0)
		gpus := typ.Of(cluster.GPU)
		if typ.Count(cluster.NVSwitch) == 0 {
			continue
		}
		for n := 1; n <= len(gpus) && n <= 8; n *= 2 {
			for _, minor := range []int{21, 26, 30} {
				v := Version{2, minor, 3}
				search := func(every bool) (Graphs, int) {
					nets, err := netsOf(typ, gpus[:n], nil)
					if err != nil {
						return Graphs{}, 0
					}
					s, err := newSystem(typ, gpus[:n], nets, v, nil)
					if err != nil {
						t.Fatal(err)
					}
					s.everySpeed = every
					w := &View{sys: s}
					(&Plan{Comm: Comm{Version: v}}).search(w)
					return w.Graphs, s.work
				}
				some, few := search(false)
				all, many := search(true)
				if !reflect.DeepEqual(some, all) {
					t.Errorf("%s, %d GPUs, %v: %v\nat every speed %v", preset.Name, n, v, fmt.Sprint(some), fmt.Sprint(all))
				}
				left, whole = left+few, whole+many
			}
		}
	}
	if left >= whole {
		t.Errorf("%d hops of %d: no round was left out", left, whole)
	}
	t.Logf("%d hops of %d", left, whole)
}
