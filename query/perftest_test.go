package query

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestPerftest: perftest's tables are compared by bench diff; where collectives are expected, the error says what they
// are.
func TestPerftest(t *testing.T) {
	table := func(rate string) string {
		return "                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n #bytes     " +
			"#iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n 65536      5000             " + rate +
			"              " + rate + "             0.3\n"
	}
	twice := func(a, b string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(strings.Repeat(table(a)+table(b), 6))}
	}
	env := Env{Files: fstest.MapFS{"old.txt": twice("390.1", "391.3"), "new.txt": twice("195.2", "196.4")}}
	doc, err := Diff{Old: "old.txt", New: "new.txt"}.Run(t.Context(), env)
	if err != nil || len(doc.Rows) != 1 || !doc.Bad || doc.Rows[0].Transport != "rdma" || doc.Rows[0].Change < 0.9 ||
		doc.Rows[0].Change > 1.1 {
		t.Errorf("%v %+v", err, doc)
	}
	for name, ask := range map[string]func() error{
		"doctor bench": func() error { _, err := DoctorBench{Result: "old.txt"}.Run(t.Context(), env); return err },
		"validate":     func() error { _, err := Validate{Files: []string{"old.txt"}}.Run(t.Context(), env); return err },
		"calibrate": func() error {
			_, err := Calibrate{Cluster: "dgx-h100:2", Files: []string{"old.txt"}}.Run(t.Context(), env)
			return err
		},
	} {
		if err := ask(); err == nil || !strings.Contains(err.Error(), "output of perftest") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
