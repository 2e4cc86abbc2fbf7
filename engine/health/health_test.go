package health

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"busbar.dev/engine/device"
	"busbar.dev/finding"
)

// kernel is a log of our own, with lines as the driver writes them.
const kernel = `[  100.000000] NVRM: loading NVIDIA UNIX Open Kernel Module
[  200.500000] NVRM: Xid (PCI:0000:00:06): 43, pid=1296, name=python3, channel 0x00000127
[ 1000.000000] NVRM: Xid (PCI:0000:00:06): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
[200000.000000] NVRM: Xid (PCI:0000:00:06): 74, pid=7, NVLink: fatal error detected on link 3
[200010.000000] NVRM: Xid (PCI:0000:00:06): 74, pid=7, NVLink: fatal error detected on link 3
[200020.000000] NVRM: Xid (PCI:0000:1b:00): 48, pid=9, DBE (double bit error) ECC Error
`

const oneGPU = `<nvidia_smi_log><gpu id="00000000:00:06.0"><product_name>H</product_name><pci><pci_bus_id>00000000:00:06.0</pci_bus_id></pci><ecc_errors><volatile><dram_uncorrectable>3</dram_uncorrectable></volatile></ecc_errors></gpu></nvidia_smi_log>`

// TestRead: where busbar-gpu is missing nvidia-smi is asked, and the kernel's log says what the hardware went through.
func TestRead(t *testing.T) {
	missing := func() (device.Process, error) {
		return nil, errors.New("the program busbar-gpu is not installed")
	}
	prints := func(text string, err error) func(context.Context, io.Writer) error {
		return func(_ context.Context, w io.Writer) error {
			fmt.Fprint(w, text)
			return err
		}
	}
	log := func(context.Context) ([]byte, time.Duration, error) { return []byte(kernel), 200100 * time.Second, nil }
	r := (&Sources{Host: "n1", Worker: missing, SMI: prints(oneGPU, nil), Kernel: log}).Read(t.Context())
	if r.By != "nvidia-smi" || len(r.GPUs) != 1 || len(r.Notes) > 0 || len(r.Findings) != 3 {
		t.Fatalf("%+v", r)
	}
	for i, want := range []struct {
		text     string
		severity finding.Severity
		where    string
	}{
		{"GPU 0 of n1 had 3 uncorrectable memory errors", finding.Error, "n1/gpu0"},
		{"GPU 0 of n1 had Xid 74 (NVLink error) 2 times in the last 24 hours", finding.Warn, "n1/gpu0"},
		{
			"the GPU at 0000:1b:00 of n1 had Xid 48 (double-bit ECC error: the GPU needs a reset) 1 time in", finding.Error,
			"n1/0000:1b:00",
		},
	} {
		if f := r.Findings[i]; !strings.HasPrefix(f.Text, want.text) || f.Severity != want.severity ||
			f.Where != want.where || f.Nodes[0] != "n1" || f.Fix == "" {
			t.Errorf("%+v, want %+v", f, want)
		}
	}
	// What was before the last day, and what is the program's own, is no finding; without a driver the reason is told.
	for text, want := range map[string]string{
		"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure …\n": "nor by nvidia-smi: NVIDIA-SMI has failed",
		"": "nor by nvidia-smi: exit status 9",
	} {
		r = (&Sources{Host: "n1", Worker: missing, SMI: prints(text, errors.New("exit status 9"))}).Read(t.Context())
		if len(r.Notes) != 1 || !strings.Contains(r.Notes[0],
			"GPUs were not checked: the program busbar-gpu is not installed; "+want) || len(r.Findings) > 0 {
			t.Errorf("%+v", r)
		}
	}
	r = (&Sources{
		Host: "n1", SMI: prints(oneGPU, nil),
		Kernel: func(context.Context) ([]byte, time.Duration, error) { return nil, 0, errors.New("refused") },
	}).Read(t.Context())
	if len(r.Notes) != 1 || r.Notes[0] != "Xid errors were not looked for: refused" {
		t.Errorf("%+v", r)
	}
	if r = (&Sources{}).Read(t.Context()); len(r.Notes) != 1 || r.By != "" {
		t.Errorf("%+v", r)
	}
}

// The kernel's log ends, and nobody waits for more of it; who may not read it is told so.
func TestKernelLog(t *testing.T) {
	if log, up, err := KernelLog(t.Context()); err == nil && (up <= 0 || len(log) > 32<<20) {
		t.Errorf("%d bytes, up %v", len(log), up)
	}
}

// bus is a machine with NVIDIA's GPUs at 0000:1b:00.0 and on; driver is who has them.
func bus(n int, driver string, hidden ...int) fstest.MapFS {
	fsys := fstest.MapFS{}
	for i := range n {
		addr := fmt.Sprintf("0000:%02x:00.0", 0x1b+i)
		dir := "sys/bus/pci/devices/" + addr
		fsys[dir+"/vendor"] = &fstest.MapFile{Data: []byte("0x10de\n")}
		fsys[dir+"/class"] = &fstest.MapFile{Data: []byte("0x030200\n")}
		if driver != "" {
			fsys[dir+"/driver"] = &fstest.MapFile{Data: []byte("../../../bus/pci/drivers/" + driver), Mode: fs.ModeSymlink}
		}
		if !slices.Contains(hidden, i) {
			fsys["proc/driver/nvidia/gpus/"+addr+"/information"] = &fstest.MapFile{Data: []byte(
				fmt.Sprintf("Model: \t\t H\nDevice Minor: \t %d\n", i))}
		}
	}
	return fsys
}

// TestMissing: a GPU on the bus that the driver does not list fails the node, one that is another's does not; and so
// does a driver that is silent.
func TestMissing(t *testing.T) {
	smi := func(n int) string {
		text := "<nvidia_smi_log>"
		for i := range n {
			text += fmt.
				Sprintf(`<gpu id="00000000:%02X:00.0"><product_name>H</product_name><pci><pci_bus_id>00000000:%02[1]X:00.0</pci_bus_id></pci></gpu>`, 0x1b+i)
		}
		return text + "</nvidia_smi_log>"
	}
	says := func(text string, err error) func(context.Context, io.Writer) error {
		return func(_ context.Context, w io.Writer) error {
			fmt.Fprint(w, text)
			return err
		}
	}
	hangs := func(context.Context, io.Writer) error { select {} } // not even the end of the context ends it
	refused := func(name string) error {
		if name == "/dev/nvidia7" {
			return errors.New("operation not permitted")
		}
		return nil
	}
	failed := errors.New("exit status 9")
	for name, tt := range map[string]struct {
		s    Sources
		want string // ID and text of the finding, empty: none
	}{
		"all": {Sources{SMI: says(smi(8), nil), Root: bus(8, "nvidia")}, ""},
		"lost": {
			Sources{SMI: says(smi(7), nil), Root: bus(8, "nvidia")},
			"gpu-missing 7 of 8 GPUs of n1: the driver does not list 0000:22:00.0",
		},
		"never bound": {
			Sources{SMI: says(smi(0), failed), Root: bus(8, "")},
			"gpu-driver-fails the GPU driver of n1 fails, with 8 GPUs on the PCI bus",
		},
		"a guest's":         {Sources{SMI: says(smi(0), failed), Root: bus(8, "vfio-pci")}, ""},
		"in a container":    {Sources{SMI: says(smi(7), nil), Root: bus(8, "nvidia", 7)}, ""},
		"limits of a job":   {Sources{SMI: says(smi(7), nil), Root: bus(8, "nvidia"), May: refused}, ""},
		"hangs":             {Sources{SMI: hangs}, "gpu-driver-hangs the GPU driver of n1 gives no answer within 10ms"},
		"fails without any": {Sources{SMI: says("", failed), Root: fstest.MapFS{}}, ""},
		"not installed":     {Sources{SMI: says("", ErrNone), Root: bus(8, "nvidia")}, ""},
	} {
		if tt.s.Host = "n1"; name == "hangs" {
			tt.s.Limit = 10 * time.Millisecond
		}
		r := tt.s.Read(t.Context())
		got := ""
		for _, f := range r.Findings {
			got += f.ID + " " + f.Text
		}
		if !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		if hidden := map[string]int{"in a container": 1, "limits of a job": 1}[name]; r.Hidden != hidden {
			t.Errorf("%s: %d hidden", name, r.Hidden)
		}
	}
}
