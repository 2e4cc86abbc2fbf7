package doctor

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"busbar.dev/finding"
)

// A host whose receive queues are full drops and pauses by itself: neither cable nor fabric. With pauses of a priority
// or retransmissions the fabric may be.
func TestHostThatDropsWhatItReceives(t *testing.T) {
	const own = "NIC statistics:\n     rx_packets: 9100\n     rx_out_of_buffer: 1200300400\n     tx_pause_ctrl_phy: " +
		"4455667\n" +
		"     rx_discards_phy: 8123456789\n     rx_prio0_discards: 8123456701\n"
	for text, want := range map[string][]string{
		own:                                     {"host-overrun"},
		own + "     out_of_sequence: 4000100\n": {"host-overrun", "roce-loss"},
	} {
		var ids []string
		for _, f := range examine(t, text).Findings {
			if f.ID == "roce-loss" || f.Severity > finding.Note && f.ID != "nic-none" {
				ids = append(ids, f.ID)
			}
		}
		slices.Sort(ids)
		if !slices.Equal(ids, want) {
			t.Errorf("%q: %v, want %v", text, ids, want)
		}
	}
}

// All ranks time out in their first collective: none is late, and what joins them does not work.
func TestFirstCollectiveOfAllRanks(t *testing.T) {
	line := "[Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=%d, OpType=ALLREDUCE, NumelIn=7, " +
		"NumelOut=7, Timeout(ms)=600000) ran for 600042 milliseconds before timing out.\n"
	for text, want := range map[string]bool{
		fmt.Sprintf(line+line, 0, 1, 1, 1): true,
		fmt.Sprintf(line+line, 0, 1, 2, 1): false, // rank 1 is missing
		fmt.Sprintf(line+line, 0, 9, 1, 9): false,
	} {
		r := examine(t, text)
		never := slices.ContainsFunc(r.Findings, func(f finding.Finding) bool {
			return f.ID == "collective-timeout" && strings.Contains(f.Title, "it never ran")
		})
		late := slices.ContainsFunc(r.Findings, func(f finding.Finding) bool { return f.ID == "late-rank-data" })
		if never != want || never && late {
			t.Errorf("%q: told as joined by all: %v, late rank: %v", text, never, late)
		}
	}
}

// A handle that RCCL cannot make is the fault, the setting that it misses beside it a remark.
func TestHandleOfMemoryBeforeIOMMU(t *testing.T) {
	r := examine(t, "n1:7:7 [1] src/init.cc:213 NCCL WARN Missing \"iommu=pt\" from kernel command line which can lead "+
		"to "+
		"system instablity or hang!\nn1:7:7 [1] src/transport/p2p.cc:256 NCCL WARN hipIpcGetMemHandle failed : invalid "+
		"argument\n")
	if len(r.Findings) < 1 || r.Findings[0].ID != "cuda-ipc" || r.Findings[0].Severity == finding.Note {
		t.Errorf("%+v, want cuda-ipc first", r.Findings)
	}
	for _, f := range r.Findings {
		if f.ID == "iommu" && f.Severity != finding.Note {
			t.Errorf("the setting is called the fault: %+v", f)
		}
	}
}

// What a reader remarks keeps an all-clear away.
func TestRemarksOfReaders(t *testing.T) {
	r := examine(t, "SwitchName=a Nodes=n[1-3]\nSwitchName=b Nodes=n[3-5]\n")
	if len(r.Findings) != 1 || r.Findings[0].ID != "map-notes" || !strings.Contains(r.Findings[0].Cause, "n3") {
		t.Errorf("%+v, want the remark that n3 is on two switches", r.Findings)
	}
}
