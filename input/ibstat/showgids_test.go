package ibstat

import (
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/readertest"
)

// Written after the columns that NVIDIA's show_gids prints.
const gids = `DEV	PORT	INDEX	GID					IPv4  		VER	DEV
---	----	-----	---					------------  	---	---
mlx5_0	1	0	fe80:0000:0000:0000:0e42:a1ff:fe00:0001			v1	ens1f0np0
mlx5_0	1	1	fe80:0000:0000:0000:0e42:a1ff:fe00:0001			v2	ens1f0np0
mlx5_0	1	3	0000:0000:0000:0000:0000:ffff:0a00:0001	10.0.0.1  	v2	ens1f0np0
mlx5_1	1	0	fe80:0000:0000:0000:0e42:a1ff:fe00:0002			v1	ens2f0np0
n_gids_found=4
`

func TestReadGIDs(t *testing.T) {
	if !MatchGIDs([]byte(gids)) {
		t.Fatal("not recognised")
	}
	f, err := ReadGIDs("gids.txt", strings.NewReader(gids))
	if err != nil {
		t.Fatal(err)
	}
	nics := f.Types[0].Of(cluster.NIC)
	if len(nics) != 2 {
		t.Fatalf("%d NICs", len(nics))
	}
	for i, want := range []string{"mlx5_0 ens1f0np0", "mlx5_1 ens2f0np0"} {
		d := &f.Types[0].Devices[nics[i]]
		if len(d.NIC.Ports) != 1 || d.Label+" "+d.NIC.Ports[0].Label != want || d.NIC.Kind != cluster.RoCE {
			t.Errorf("%+v of %+v, want %s", d.NIC, d, want)
		}
	}
	if len(f.Warnings) != 1 || f.Warnings[0].Where != "mlx5_1" {
		t.Errorf("warnings %v", f.Warnings)
	}
}

func FuzzReadGIDs(f *testing.F) {
	readertest.Reader{Match: MatchGIDs, Read: ReadGIDs}.Fuzz(f, func(*testing.T, *cluster.Fragment) {}, gids)
}
