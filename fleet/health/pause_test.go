package health

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSlowTakerEvidence: a node that is slow in receiving and sends pause frames has both in one finding.
func TestSlowTakerEvidence(t *testing.T) {
	f := shared(8, 0, 10)
	f.run(15)
	f.fault = in(3, 0.5)
	f.run(3)
	for i := range 8 {
		for m := range 10 {
			v := uint64(0)
			if i == 3 {
				v = uint64(m) * 1e6
			}
			f.h.Count(name(i), "eth0", "tx_prio3_pause", v, at(f.sweeps).Add(time.Duration(m)*time.Minute))
		}
	}
	got := f.h.Findings(at(f.sweeps).Add(10 * time.Minute))
	if !slices.Equal(ids(got), []string{"slow-in:node3", "slow-receiver:node3/eth0"}) {
		t.Fatalf("%v", ids(got))
	}
	if e := fmt.Sprint(got[0].Evidence); !strings.Contains(e, "port eth0: tx_prio3_pause rises") {
		t.Errorf("%s", e)
	}
}
