package numactl

import (
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/readertest"
	"busbar.dev/unit"
)

var whole = readertest.Reader{Match: Match, Read: Read}

// Made up, in the layout of numactl 2.0.
const text = `available: 4 nodes (0-3)
node 0 cpus: 0 1 2 8 9
node 0 size: 2048 MB
node 0 free: 11 MB
node 1 cpus: 3 4
node 1 size: 0 MB
node 2 cpus:
node 2 size: 4096 MB
node 3 cpus:
node 3 size: 0 MB
node distances:
node   0   1   2
  0:  10  21  32
`

func TestRead(t *testing.T) {
	f := whole.Text(t, "$ numactl -H\n"+text)
	d := f.Types[0].Devices
	if len(f.Hosts) != 1 || len(d) != 4 || d[0].Kind != cluster.NUMA || d[0].CPU.Cores != "0-2,8-9" ||
		d[0].CPU.Memory.Value != 2*unit.GiB || d[2].CPU.Cores != "" || d[2].CPU.Memory.Value != 4*unit.GiB {
		t.Errorf("%+v", d)
	}
	if len(f.Warnings) != 1 || !strings.HasPrefix(f.Warnings[0].Text, "cores without memory") ||
		f.Warnings[0].Where != "numa1" {
		t.Errorf("%v", f.Warnings)
	}
	if f := whole.Text(t, "available: 1 nodes (0)\nnode 0 cpus: 0 1  (2 cores)\nnode 0 size: n MB\n"); len(
		f.Warnings) != 0 ||
		f.Types[0].Devices[0].CPU.Cores != "0-1" {
		t.Errorf("a size that is none: %v, %+v", f.Warnings, f.Types[0].Devices)
	}
	if f := whole.Text(t, text+text); len(f.Hosts) != 2 {
		t.Errorf("two lists are %d nodes", len(f.Hosts))
	}
	for _, bad := range []string{
		"", "available: many", "node 0 cpus: 0 1\n", "available: 1 nodes (0)\nnode 0 cpus: 99999999\n",
	} {
		if _, err := Read("x", strings.NewReader(bad)); err == nil || !strings.HasPrefix(err.Error(), "x:") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzRead(f *testing.F) { whole.Fuzz(f, nil, text) }
