package doctor

import (
	"strings"
	"testing"

	"busbar.dev/finding"
)

// Healthy outputs with frightening words in them give nothing above a note.
func TestFrighteningWords(t *testing.T) {
	for name, text := range map[string]string{
		"training": `step 1 | loss 10.532 | lr 1e-4 | error: 0 | 812 ms/step
no error found
WARN: this is a print by the user, WARNING nothing
errors=0 timeouts=0 failed=0
All tests passed, 0 failures; no timeout, no hang
Checking for OOM: none; out of memory: never
0 packets dropped
`,
		"start before the first rank": `2026-01-01 10:00:01,123 - WARNING - Failed to import flash_attn, falling back to sdpa
[rank0]:[W1115 10:00:00.123 ProcessGroupNCCL.cpp:4115] Warning: destroy_process_group() was not called before program exit, which can leak resources.
[W socket.cpp:663] [c10d] The client socket has failed to connect to [node1]:29500 (errno: 111 - Connection refused).
[W socket.cpp:663] [c10d] The client socket has failed to connect to [node1]:29500 (errno: 111 - Connection refused).
heartbeat timeout is 480 s
Training finished successfully
`,
		"told": "The run is fine now. We had no timeouts, no hangs, and the errors went away.\n",
		"dmesg": `[    0.004000] ACPI BIOS finding.Error (bug): Failure creating named object [\_SB.PCI0.RP01], AE_ALREADY_EXISTS
[    0.6] iommu: Default domain type: Passthrough (set via kernel command line)
[    1.6] RAS: Correctable Errors collector initialized.
[    2.2] nvidia: module verification failed: signature and/or required key missing - tainting kernel
[    3.0] EXT4-fs (sda1): mounted filesystem with ordered data mode. Opts: errors=remount-ro
[   13.0] ata1: SATA link down (SStatus 0 SControl 300)
`,
	} {
		r := vocabulary().NewReader()
		if err := r.Read(name, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		set, err := r.Set()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range Examine(set).Findings {
			if f.Severity != finding.Note {
				t.Errorf("%s: %s (%s): %v", name, f.ID, f.Title, f.Evidence)
			}
		}
	}
}
