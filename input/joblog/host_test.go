package joblog

import "testing"

func TestHostOf(t *testing.T) {
	for name, want := range map[string]string{
		"dmesg.gpu017": "gpu017", "logs/dmesg.gpu017.txt": "gpu017", "gpu017-dmesg.txt": "gpu017", "r3n12.dmesg": "r3n12",
		"kern-a-07.log.gz": "a-07", "node-3.log": "node-3", "smi.dgx-a100-07": "dgx-a100-07",
		"gpu017.log": "gpu017", "nvidia-smi.txt": "", "dmesg.txt": "", "dmesg.1": "", "dmesg.old2": "", "rank0.log": "",
		"run1.log": "", "slurm-4711.out": "", "train.log": "", "stderr.0.log": "", "job7-dmesg.log": "", "gpus.txt": "",
		"kern.log": "", "kern.log.1": "", "syslog.2.gz": "",
	} {
		if got := HostOf(name, ""); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := HostOf("dmesg.gpu017", "Nov 12 10:01:41 gpu07 kernel: NVRM: Xid (PCI:0000:3b:00): 79"); got != "gpu07" {
		t.Errorf("%q", got)
	}
	if got := HostOf("dmesg.gpu017", "[12.5] NVRM: Xid (PCI:0000:3b:00): 79"); got != "gpu017" {
		t.Errorf("%q", got)
	}
}
