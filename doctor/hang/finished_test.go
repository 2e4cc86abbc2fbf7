package hang

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// A run of RCCL that ended is not said to wait for ranks that never joined; the same lines give the same verdict.
func TestFinished(t *testing.T) {
	var b strings.Builder
	for _, what := range []string{"- Init START", "localSize 384 used 667533643 bytes on core 48 - Init COMPLETE"} {
		for r := range 8 {
			fmt.Fprintf(&b, "amd-07:%d:%d [%d] NCCL INFO ncclCommInitRank_impl comm 0x3cf9%02x rank %d nranks 8 cudaDev %d "+
				"nvmlDev "+
				"%d busId %x000 commId 0xea12d82f079d0527 %s\n", 400+r, 1400+r, r, r, r, r, r, 16*r+5, what)
		}
	}
	old := ""
	for r := range 4 {
		if old += fmt.Sprintf("%d: n%[1]d:9:8 [0] NCCL INFO NET/IB : No device found.\n%[1]d: starts\n", r); r != 1 {
			old += fmt.Sprintf("%d: n%[1]d:9:8 [0] NCCL INFO comm 0x8 rank %[1]d nranks 32 cudaDev 2 busId 1d0 - Init "+
				"COMPLETE\n", r)
		}
	}
	c := NewCase()
	if _, err := c.Add("before 2.16.log",
		[]byte(strings.Replace(old, "1: n1:9:8 [0] NCCL INFO NET/IB : No device found.\n", "", 1))); err != nil {
		t.Fatal(err)
	}
	if v := c.Judge(); v.Kind == NeverJoined {
		t.Errorf("%s", v.Text)
	}
	for _, cut := range []int{1, 2} { // the first half is ranks that wait
		lines := strings.SplitAfter(b.String(), "\n")
		text := strings.Join(lines[:8*cut-1], "")
		var first string
		for range 8 {
			c := NewCase()
			if _, err := c.Add("job.log", []byte(text)); err != nil {
				t.Fatal(err)
			}
			v := c.Judge()
			if (v.Kind == NeverJoined) != (cut == 1) {
				t.Errorf("%s %s: %s", v.State, v.Kind, v.Text)
			}
			doc, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if now := string(doc); first == "" {
				first = now
			} else if now != first {
				t.Errorf("another verdict:\n%s\n%s", first, now)
			}
		}
	}
}
