package query

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDoctorKind checks that a table of nccl-tests without a row, as a run that hangs leaves it, is read for causes,
// and that one with a row is measured.
func TestDoctorKind(t *testing.T) {
	const head = "It hangs at once:\n$ ./build/all_reduce_perf -b 8 -e 128M -f 2 -g 2\n" +
		"# nThread 1 nGpus 2 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20\n" +
		"#   Rank  0 Pid  21284 on box device  0 [0000:2f:00.0] AMD Instinct MI100\n" +
		"#   Rank  1 Pid  21284 on box device  1 [0000:03:00.0] AMD Instinct MI100\n" +
		"#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw " +
		"#wrong\n" +
		"#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
	const row = "     1048576        262144     float     sum      -1    52.31   20.05   20.05      0    51.90   20.20  " +
		" 20.20      0\n"
	for text, want := range map[string]string{head: "doctor", head + row: "measured"} {
		name := filepath.Join(t.TempDir(), "post.txt")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := (Doctor{Sources: []string{name}}).Kind(t.Context(), Env{}, ""); got != want {
			t.Errorf("%q is taken for %s, want %s", text, got, want)
		}
	}
}
