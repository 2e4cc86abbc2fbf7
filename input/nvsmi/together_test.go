package nvsmi

import (
	"strings"
	"testing"
)

// A header whose names ran together is refused where nothing parts them: which cell is whose is not known.
func TestNamesTogether(t *testing.T) {
	const rows = "GPU0\t X \tNV12\tPXB\tSYS\t0-31\t0\nGPU1\tNV12\t X \tSYS\tPXB\t32-63\t1\nrdma0\tPXB\tSYS\t X " +
		"\tSYS\t\t\n" +
		"rdma1\tSYS\tPXB\tSYS\t X \t\t\n"
	for head, want := range map[string]string{
		"\tGPU0\tGPU1rdma0\trdma1": "2 of 2 rows have more cells than the header has columns (3)",
		"\tGPU0\tGPU1\trdma0rdma1": "2 of 2 rows have more cells than the header has columns (3)",
	} {
		_, err := readTopoOnly("x", strings.NewReader(head+"\tCPU Affinity\tNUMA Affinity\n"+rows))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", head, err)
		}
	}
}
