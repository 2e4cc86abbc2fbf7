package query

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"busbar.dev/internal/test/eventually"
)

const umad2sim = "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so"

// simNet is the fabric of site as a net file of ibsim.
func simNet(nodes int) string {
	const unit = 32
	var b strings.Builder
	units := (nodes + unit - 1) / unit
	spines, up := 4*units, 8/units
	for leaf := range units * 8 {
		fmt.Fprintf(&b, "switchguid=0x%[1]x(%[1]x)\nSwitch 64 \"leaf%02[2]d\"\n", uint64(0xfc6a1c0300000000)+uint64(leaf),
			leaf+1)
		for k := 0; k < unit && leaf/8*unit+k < nodes; k++ {
			fmt.Fprintf(&b, "[%d] \"dgx%03d %s\"[1]\n", k+1, leaf/8*unit+k+1, adapters[leaf%8])
		}
		for s := range spines {
			for c := range up {
				fmt.Fprintf(&b, "[%d] \"spine%02d\"[%d]\n", 33+s*up+c, s+1, leaf*up+c+1)
			}
		}
		b.WriteByte('\n')
	}
	for s := range spines {
		fmt.Fprintf(&b, "switchguid=0x%[1]x(%[1]x)\nSwitch 64 \"spine%02[2]d\"\n", uint64(0xfc6a1c0400000000)+uint64(s), s+1)
		for leaf := range units * 8 {
			for c := range up {
				fmt.Fprintf(&b, "[%d] \"leaf%02d\"[%d]\n", leaf*up+c+1, leaf+1, 33+s*up+c)
			}
		}
		b.WriteByte('\n')
	}
	for h := range nodes {
		for r, a := range adapters {
			fmt.Fprintf(&b, "Hca 1 \"dgx%03d %s\"\n[1] \"leaf%02d\"[%d]\n\n", h+1, a, h/unit*8+r+1, h%unit+1)
		}
	}
	return b.String()
}

// A fabric that ibsim simulates and the real ibnetdiscover walks joins as the made one does. The simulator knows no
// speed above SDR: NDR is written in its place, and nothing else is changed.
func TestSiteSimulated(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a simulator")
	}
	for _, tool := range []string{"ibsim", "ibnetdiscover"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s here; Debian's packages are ibsim-utils and infiniband-diags", tool)
		}
	}
	if _, err := os.Stat(umad2sim); err != nil {
		t.Skip(err)
	}
	for _, nodes := range []int{16, 128} {
		files := site(nodes)
		text := simulated(t, simNet(nodes))
		files["ibnetdiscover.txt"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(text, "4xSDR", "4xNDR"))}
		joinsToPreset(t, files, nodes)
	}
}

// simulated is what ibnetdiscover prints of a fabric of ibsim.
func simulated(t *testing.T, net string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "net")
	if err := os.WriteFile(file, []byte(net), 0o644); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("IBSIM_SOCKNAME=busbar%d", os.Getpid())
	sim := exec.CommandContext(t.Context(), "ibsim", "-s", "-n", file)
	sim.Env = append(os.Environ(), name)
	in, err := sim.StdinPipe() // it ends with its input
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Start(); err != nil {
		t.Skip(err)
	}
	defer func() { in.Close(); sim.Process.Kill(); sim.Wait() }()
	var out, errs bytes.Buffer
	if !eventually.Within(eventually.Limit, func() bool { // it has to read the net first
		out.Reset()
		errs.Reset()
		cmd := exec.CommandContext(t.Context(), "ibnetdiscover")
		cmd.Env = append(os.Environ(), name, "SIM_HOST=dgx001 mlx5_0", "LD_PRELOAD="+umad2sim)
		cmd.Stdout, cmd.Stderr = &out, &errs
		return cmd.Run() == nil && out.Len() > 0
	}) {
		t.Fatalf("ibnetdiscover on ibsim: %s", errs.String())
	}
	return out.String()
}
