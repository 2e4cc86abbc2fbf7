package doctor

import (
	"strings"
	"testing"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// A table of perftest is judged by the rate of the port, where an input says it, and is said not to be judged
// otherwise.
func TestReached(t *testing.T) {
	const table = " RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_7\n #bytes     #iterations    " +
		"BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n 65536      5000             93.20              92.78     " +
		"0.17\n"
	port := func(rate string) string {
		return "CA 'mlx5_7'\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n\t\tRate: " + rate + "\n"
	}
	for _, tt := range []struct {
		table, port string
		severity    finding.Severity
		title       string
	}{
		{table, "", finding.Note, "perftest moved 92.8 Gb/s over mlx5_7"},
		{table, port("100"), 0, ""},
		{table, port("200"), finding.Warn, "46% of its port's 200 Gb/s"},
		{
			strings.Replace(table, " 65536 ", " 1024 ", 1), port("200"), finding.Note,
			"92.8 Gb/s over mlx5_7 in messages of 1 KiB",
		},
	} {
		r := evidence.NewReader()
		for i, text := range []string{tt.table, tt.port} {
			if err := r.Read([]string{"bw.txt", "ibstat.txt"}[i], strings.NewReader(text)); err != nil {
				t.Fatal(err)
			}
		}
		set, err := r.Set()
		if err != nil {
			t.Fatal(err)
		}
		found := reached(set)
		if len(found) == 0 != (tt.title == "") ||
			len(found) > 0 && (found[0].Severity != tt.severity || !strings.Contains(found[0].Title, tt.title)) {
			t.Errorf("%q: %+v", tt.port, found)
		}
	}
}
