package predict

import (
	"testing"

	"busbar.dev/coll"
	"busbar.dev/nccl"
	"busbar.dev/result"
)

// TestLevels holds predictions to what users may allow and forbid.
func TestLevels(t *testing.T) {
	price := func(preset string, nodes, gpus int, env map[string]string, which ...int) *result.Run {
		t.Helper()
		p := block(t, preset, nodes, gpus, nccl.Version{Major: 2, Minor: 28, Patch: 9}, env, which...)
		op := coll.Op{Kind: coll.AllReduce, Bytes: 1 << 30}
		r, err := p.Price(op, Setting{"ring", "simple", p.Plan.Channels})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	far, near := price("baskerville", 2, 2, nil, 2, 3),
		price("baskerville", 2, 2, map[string]string{"NCCL_NET_GDR_LEVEL": "SYS"}, 2, 3)
	if far.Limit.Kind != result.ByHost || near.Limit.Kind != result.ByNIC || near.Time*2 > far.Time {
		t.Errorf("GPUDirect over the host bridge: %v by %v, without %v by %v", near.Time, near.Limit, far.Time, far.Limit)
	}
	on, off := price("dgx-h100", 1, 8, nil), price("dgx-h100", 1, 8, map[string]string{"NCCL_P2P_DISABLE": "1"})
	if on.Limit.Kind != result.ByNVLink || off.Limit.Kind == result.ByNVLink || off.Time < 5*on.Time {
		t.Errorf("without peer access: %v by %v, with %v by %v", off.Time, off.Limit, on.Time, on.Limit)
	}
}

// TestNotes names the releases that lose their trees on machines of one NIC a GPU.
func TestNotes(t *testing.T) {
	for minor, want := range map[int]int{24: 0, 27: 1, 29: 0} {
		p := block(t, "hgx-a100", 2, 8, nccl.Version{Major: 2, Minor: minor, Patch: 5}, nil)
		if got := p.Plan.Notes(); len(got) != want {
			t.Errorf("2.%d: %v", minor, got)
		}
	}
}
