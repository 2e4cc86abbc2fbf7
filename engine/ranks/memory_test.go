package ranks

import (
	"errors"
	"strings"
	"testing"

	"busbar.dev/internal/failure"
	"busbar.dev/unit"
)

func TestRoomHolds(t *testing.T) {
	if err := holds(4, 100*unit.MiB, unit.GiB, "this host", "less"); err != nil {
		t.Error(err)
	}
	for _, each := range []unit.Bytes{300 * unit.MiB, 16 << 40, 1 << 60} {
		err := holds(1024, each, unit.GiB, "this host", "fewer ranks")
		if !errors.Is(err, failure.ErrCannot) || !strings.Contains(err.Error(), "1024 ranks of") ||
			!strings.Contains(err.Error(), "this host has 1.00 GiB free") || !strings.Contains(err.Error(), "take fewer ranks") {
			t.Errorf("%v each: %v", each, err)
		}
	}
}

func TestLocalRanks(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		want int
	}{
		{nil, 1},
		{map[string]string{"LOCAL_WORLD_SIZE": "4"}, 4},
		{map[string]string{"SLURM_NTASKS_PER_NODE": "2(x3)"}, 1},
		{map[string]string{"MPI_LOCALNRANKS": "99"}, 1},
	} {
		if got := localRanks(func(k string) string { return tt.env[k] }, 8); got != tt.want {
			t.Errorf("%v: %d", tt.env, got)
		}
	}
}
