package truth

import (
	"strings"
	"testing"
)

// Fields of one size that mean different times are refused with both; those that agree but for rounding are not.
func TestContradictoryFields(t *testing.T) {
	const line = `{"id":"a","collective":"all_reduce","nodes":1,"gpus_per_node":8,"n_ranks":8,"gpu":"H100 SXM","sizes_bytes":[1073741824],`
	for fields, want := range map[string]string{
		`"time_us":[4000],"algbw_GBps":[268.4],"busbw_GBps":[469.8]}`: "",
		`"time_us":[4.0],"busbw_GBps":[469.8]}`:                       "contradict each other at 1 GiB: 4 and 4000 µs",
		`"algbw_GBps":[268.4],"busbw_GBps":[469800]}`:                 "contradict each other",
		`"busbw_GBps":[469.8]}`:                                       "",
	} {
		list, _, err := Read("x", strings.NewReader(line+fields))
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %v", fields, err)
		}
		if got := list[0].Problem; want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", fields, got, want)
		}
	}
}
