package natural

import "testing"

func TestCompare(t *testing.T) {
	names := []string{"", "eth0", "mlx5_0", "mlx5_02", "mlx5_2", "mlx5_10", "mlx5_bond_0", "node1-a", "node1a", "node2"}
	for i := range names {
		for k := range names {
			if c := Compare(names[i], names[k]); (c < 0) != (i < k) || (c == 0) != (i == k) {
				t.Errorf("Compare(%q, %q) = %d", names[i], names[k], c)
			}
		}
	}
}
