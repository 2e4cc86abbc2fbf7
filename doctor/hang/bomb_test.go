package hang

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestShortFiles: what short files claim about a job's size costs nothing.
func TestShortFiles(t *testing.T) {
	var dump strings.Builder
	dump.WriteString(`{"version":"2.10","pg_config":{},"entries":[`)
	for i := range 2000 { // each in a group of its own, far from its first
		fmt.Fprintf(&dump, `{"record_id":%d,"process_group":["g%d","x"],"collective_seq_id":16384,"profiling_name":"nccl:all_reduce","state":"scheduled"},`, i, i)
	}
	dump.WriteString(`{}]}`)
	c := NewCase()
	for name, text := range map[string]string{
		"dump_rank_0": dump.String(),
		"ras.json":    `{"nccl_version":"2.28.9","communicators_count":1,"communicators":[{"hash":"0x1","size":1000000000000,"ranks":[{"rank":0,"host":"a","pid":1}]}]}`,
		"log": "[rank0]: x\n[rank0]: torch.distributed.DistStoreError: Timed out after 61 seconds waiting for " +
			"clients. 1/900000000000 clients joined.\n[rank0]: TCPStore server has shut down too early\n",
	} {
		if _, err := c.Read(nil, name, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	v := c.Judge()
	runtime.ReadMemStats(&after)
	mb := (after.TotalAlloc - before.TotalAlloc) >> 20
	t.Logf("a job of %d ranks: %s, %d MB", v.World, v.State, mb)
	if v.World > maxWorld || mb > 400 {
		t.Errorf("a job of %d ranks took %d MB", v.World, mb)
	}
}
