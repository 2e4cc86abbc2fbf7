package health

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
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
		{"the GPU at 0000:1b:00 of n1 had Xid 48 (double-bit ECC error: the GPU needs a reset) 1 time in", finding.Error, "n1/0000:1b:00"},
	} {
		if f := r.Findings[i]; !strings.HasPrefix(f.Text, want.text) || f.Severity != want.severity || f.Where != want.where || f.Nodes[0] != "n1" || f.Fix == "" {
			t.Errorf("%+v, want %+v", f, want)
		}
	}
	// What was before the last day, and what is the program's own, is no finding; without a driver the reason is told.
	for text, want := range map[string]string{
		"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure …\n": "nor by nvidia-smi: NVIDIA-SMI has failed",
		"": "nor by nvidia-smi: exit status 9",
	} {
		r = (&Sources{Host: "n1", Worker: missing, SMI: prints(text, errors.New("exit status 9"))}).Read(t.Context())
		if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "GPUs were not checked: the program busbar-gpu is not installed; "+want) || len(r.Findings) > 0 {
			t.Errorf("%+v", r)
		}
	}
	r = (&Sources{Host: "n1", SMI: prints(oneGPU, nil), Kernel: func(context.Context) ([]byte, time.Duration, error) { return nil, 0, errors.New("refused") }}).Read(t.Context())
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
