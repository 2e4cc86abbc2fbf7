package input

import (
	"strings"
	"testing"
)

// What a text is that is near to a known one, and what to give in its place.
func TestTextsWithoutTopology(t *testing.T) {
	for text, want := range map[string]string{
		"Machine (15GB total)\n  Package L#0\n    Core L#0 + PU L#0 (P#0)\n":                  "lstopo --of xml",
		"{\n  \"nvidia.com/gpu.count\": \"2\",\n  \"nvidia.com/gpu.product\": \"X-4C\"\n}\n":  "kubectl get nodes -o json",
		"node.kubernetes.io/instance-type=x9\ntopology.kubernetes.io/zone=north # a remark\n": "kubectl get nodes -o json",
		"status:\n  allocatable:\n    nvidia.com/gpu: \"1\"\n":                                "kubectl get nodes -o json",
		strings.Repeat("args\n", 1<<15) +
			"step 1 loss 2 tok/s 8\nstep 2 loss 2 tok/s 8\nstep 3 loss 2 tok/s 8\n": "log of a training",
		"==== ROCm System Management Interface ====\n==== Concise Info ====\n": "rocm-smi --showtopo",
		"GPU: 0\n    BDF: 0000:05:00.0\n":                                      "amd-smi topology",
		"0, NVIDIA L40S, 00000000:01:00.0, 46068 MiB\n":                        "noheader",
		"Topology: GPU0 GPU1 CPU Affinity GPU0 X NV8 0-31 GPU1 NV8 X 0-31":     "lines ran together",
		"        GPU0 GPU1 ... NIC5\nGPU0     X   NV18 PXB\n":                  "left out",
		"# REASON               USER      TIMESTAMP           NODELIST\n":      "sinfo -N -l",
		"nvidia.com is a site, and Machine (old) a word\n":                     "",
	} {
		if got := otherwise([]byte(text)); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A log that was cut while it was written to has a hole of zeros, and is no binary file for it.
func TestHoles(t *testing.T) {
	log := strings.Repeat("Epoch begins\n", 9) + "Traceback (most recent call last):\n"
	_, err := Read("x", strings.NewReader(log+strings.Repeat("\x00", 5000)+log))
	if err == nil || !strings.Contains(err.Error(), "job's log") {
		t.Error(err)
	}
}
