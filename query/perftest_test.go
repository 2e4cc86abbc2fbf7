package query

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestPerftest: where collectives are expected, the error says what perftest's tables are.
func TestPerftest(t *testing.T) {
	table := func(rate string) string {
		return "                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n #bytes     " +
			"#iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n 65536      5000             " + rate +
			"              " + rate + "             0.3\n"
	}
	env := Env{Files: fstest.MapFS{"old.txt": {Data: []byte(table("390.1"))}}}
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
