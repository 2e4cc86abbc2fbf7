package input

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"busbar.dev/internal/test/corpus"
	"busbar.dev/internal/test/readertest"
)

// holders says, per format of the sample index, which package's tests hold its
// reader to what the index says must be found, and as what Read recognises it.
// Formats that hold no topology are recognised and refused with their name.
var holders = map[string]struct{ pkg, as string }{
	"nvidia-smi topo -m":               {"input/nvsmi", "nvidia-smi topo -m or -p2p"},
	"nvidia-smi topo -p2p":             {"input/nvsmi", "nvidia-smi topo -m or -p2p"},
	"rocm-smi --showtopo":              {"input/rocmsmi", "rocm-smi --showtopo"},
	"NCCL topology XML":                {"input/ncclxml", "NCCL topology XML"},
	"RCCL topology XML":                {"input/ncclxml", "NCCL topology XML"},
	"NCCL graph XML":                   {"input/ncclxml", "NCCL graph XML"},
	"NCCL_DEBUG log":                   {"input/nccllog", "NCCL log"},
	"nccl-tests output":                {"input/nccltests", "nccl-tests"},
	"p2pBandwidthLatencyTest":          {"input/p2pbw", "p2pBandwidthLatencyTest"},
	"nvbandwidth":                      {"input/p2pbw", "nvbandwidth"},
	"hwloc lstopo XML":                 {"input/hwloc", "lstopo XML"},
	"ibnetdiscover":                    {"input/ibnet", "ibnetdiscover"},
	"ibnetdiscover -p":                 {"input/ibnet", "ibnetdiscover -p"},
	"ibsim net":                        {"input/ibnet", "ibnetdiscover"},
	"iblinkinfo":                       {"input/ibnet", "iblinkinfo"},
	"perfquery":                        {"input/ibnet", "perfquery"},
	"ibqueryerrors":                    {"input/ibnet", "ibqueryerrors"},
	"ibstat":                           {"input/ibstat", "ibstat"},
	"ibstatus":                         {"input/ibstat", "ibstatus"},
	"ibv_devinfo":                      {"input/ibstat", "ibv_devinfo"},
	"ethtool":                          {"input/ethtool", "ethtool"},
	"Slurm topology.conf":              {"input/slurm", "Slurm topology.conf, scontrol show topology"},
	"scontrol show topology":           {"input/slurm", "Slurm topology.conf, scontrol show topology"},
	"Kubernetes topology manifests":    {"input/k8s", "Kubernetes nodes"},
	"NetQ topology JSON":               {"input/netq", "NetQ topology"},
	"MSCCL algorithm XML":              {"input", ""},
	"NCCL tuner-plugin CSV":            {"input", ""},
	"tuner training CSV":               {"input", ""},
	"/sys and /proc snapshot (tar)":    {"input/sysfs", "archive"},
	"/sys/class/infiniband tree (tar)": {"input/sysfs", "archive"},
}

// TestEverySampleIsRecognised reads every file of the sample folder by content
// alone. What each must give is held by the tests of the packages in holders.
func TestEverySampleIsRecognised(t *testing.T) {
	table := map[string]Kind{}
	for _, f := range kinds {
		table[f.Name] = f
	}
	count := map[string]int{}
	for _, e := range corpus.Index(t) {
		if e.Format == "Slurm topology.yaml" || e.Format == "topograph model YAML" ||
			strings.Contains(e.File, "kind-cluster") {
			continue // a manual page, models for simulations and the configuration of a test's cluster: nothing is read of them
		}
		h, ok := holders[e.Format]
		if !ok {
			t.Errorf("%s: no reader for format %q", e.File, e.Format)
			continue
		}
		data := corpus.Open(t, e.File)
		frags, err := Read(e.File, bytes.NewReader(data))
		switch {
		case h.as == "":
			if !errors.Is(err, ErrUnknown) || otherwise(data) == "" {
				t.Errorf("%s: %d fragments, %v; want it named as holding no topology", e.File, len(frags), err)
			}
		case err != nil:
			t.Errorf("%s: %v", e.File, err)
		case h.as != "archive" && !table[h.as].Match(data):
			t.Errorf("%s: not recognised as %s", e.File, h.as)
		}
		for _, f := range frags {
			for _, ty := range f.Types {
				if err := ty.Check(); err != nil {
					t.Errorf("%s: %v", e.File, err)
				}
			}
		}
		count[e.Format]++
	}
	total := 0
	for _, f := range slices.Sorted(maps.Keys(count)) {
		t.Logf("%3d  %-34s held by %s", count[f], f, holders[f].pkg)
		total += count[f]
	}
	t.Logf("%3d  files", total)
}

// A log with several tools' output gives all of them.
func TestSeveralFormatsInOneText(t *testing.T) {
	text := "$ nvidia-smi topo -m\n\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV2\t0-23\tN/A\nGPU1\tNV2\t X " +
		"\t0-23\tN/A\n\n$ nvidia-smi -L\nGPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-aaaaaaaa-0000-0000-0000-000000000000)\n" +
		"GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-bbbbbbbb-0000-0000-0000-000000000000)\n"
	frags, err := Read("log", bytes.NewReader([]byte(text)))
	if err != nil || len(frags) != 2 {
		t.Fatalf("%d fragments, %v; want the matrix and the list", len(frags), err)
	}
}

func TestBadTexts(t *testing.T) {
	utf16 := []byte{0xff, 0xfe}
	for _, b := range []byte("GPU 0: NVIDIA A100 (UUID: GPU-aaaaaaaa-0000-0000-0000-000000000000)\n") {
		utf16 = append(utf16, b, 0)
	}
	if _, err := Read("powershell.txt", bytes.NewReader(utf16)); err != nil {
		t.Errorf("UTF-16: %v", err)
	}
	for name, data := range map[string][]byte{
		"empty": nil, "space": []byte(" \n\t"), "binary": {1, 2, 0, 3}, "noise": noise(1 << 16),
		"open": []byte("<system version=\"1\">"),
	} {
		if frags, err := Read(name, bytes.NewReader(data)); err == nil && len(frags) == 0 {
			t.Errorf("%s: neither a result nor an error", name)
		} else if name != "open" && err == nil {
			t.Errorf("%s: read as %s", name, frags[0].Format)
		}
	}
}

// FuzzRead holds the recogniser and every reader behind it to their manners.
func FuzzRead(f *testing.F) {
	f.Add([]byte("\tGPU0\tGPU1\nGPU0\tX\tNV2\nGPU1\tNV2\tX\n"))
	f.Add([]byte("<system version=\"1\"><cpu numaid=\"0\"></cpu></system>"))
	f.Add([]byte("SwitchName=s Nodes=n[1-4]\n"))
	f.Add([]byte("nodes:\n  - hosts: a\n    type: h200\n"))
	f.Add([]byte("Switch\t36 \"S-01\"\t# \"leaf\"\n[1]\t\"H-02\"[1](3) \t# \"n1 mlx5_0\" lid 1 4xHDR\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<14 {
			return
		}
		frags, err := Read("fuzz", bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, fr := range frags {
			readertest.Check(t, fr)
		}
	})
}
