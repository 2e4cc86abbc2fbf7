package nvsmi

import (
	"strings"
	"testing"

	"busbar.dev/cluster"
)

// A header whose names ran together: where a GPU's ends is known, where a NIC's ends is not.
func TestNamesTogether(t *testing.T) {
	const rows = "GPU0\t X \tNV12\tPXB\tSYS\t0-31\t0\nGPU1\tNV12\t X \tSYS\tPXB\t32-63\t1\nmlx5_0\tPXB\tSYS\t X " +
		"\tSYS\t\t\n" +
		"mlx5_1\tSYS\tPXB\tSYS\t X \t\t\n"
	f, err := ReadTopo("x", strings.NewReader("\tGPU0\tGPU1mlx5_0\tmlx5_1\tCPU Affinity\tNUMA Affinity\n"+rows))
	if err != nil || f.Types[0].Count(cluster.GPU) != 2 || f.Types[0].Count(cluster.NIC) != 2 {
		t.Errorf("%+v, %v", f, err)
	}
	_, err = ReadTopo("x", strings.NewReader("\tGPU0\tGPU1\tmlx5_0mlx5_1\tCPU Affinity\tNUMA Affinity\n"+rows))
	if err == nil || !strings.Contains(err.Error(), "2 of 2 rows have more cells than the header has columns (3)") {
		t.Errorf("%v", err)
	}
}
