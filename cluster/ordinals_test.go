package cluster

import (
	"strings"
	"testing"
)

// fourGPUs is a node whose GPUs the source listed out of order.
func fourGPUs() *NodeType {
	t := &NodeType{}
	for _, g := range []struct {
		index int
		pci   PCI
		uuid  string
	}{
		{2, "0000:41:00.0", "GPU-cccc0000-0000-0000-0000-000000000000"},
		{0, "0000:07:00.0", "GPU-aaaa0000-0000-0000-0000-000000000000"},
		{3, "10000:01:00.0", "GPU-cccc1111-0000-0000-0000-000000000000"},
		{1, "0000:0b:00.0", "GPU-bbbb0000-0000-0000-0000-000000000000"},
	} {
		t.Add(Device{
			Kind: GPU, Index: g.index, PCI: g.pci, Parent: -1, UUID: g.uuid, Model: FromRead("NVIDIA A100", "test"),
			GPU: &GPUInfo{},
		})
	}
	return t
}

func names(t *NodeType, gpus []int) string {
	var out []string
	for _, i := range gpus {
		out = append(out, t.Devices[i].Name)
	}
	return strings.Join(out, " ")
}

func TestCUDAVisibleDevices(t *testing.T) {
	nt := fourGPUs()
	for visible, want := range map[string]string{
		"unset":                 "gpu0 gpu1 gpu2 gpu3",
		"":                      "",
		"2,0":                   "gpu2 gpu0",
		"0,2,-1,1":              "gpu0 gpu2",
		"1,7,0":                 "gpu1",
		"-1":                    "",
		"NoDevFiles":            "",
		" 1 , 0":                "gpu1 gpu0",
		"0,":                    "gpu0",
		",0":                    "",
		"GPU-bbbb,GPU-AAAA0000": "gpu1 gpu0",
		"GPU-cccc":              "",
		"GPU-cccc1":             "gpu3",
		"gpu-aaaa":              "",
		"GPU-aaaa,MIG-1":        "gpu0",
		"GPU-aaaa,GPU-aaaa0":    "",
		"0,1,0":                 "",
		"GPU-dddd,GPU-aaaa":     "",
	} {
		env := map[string]string{"CUDA_VISIBLE_DEVICES": visible}
		if visible == "unset" {
			env = nil
		}
		if got, doubt := CUDAOrder(nt, env); names(nt, got) != want || doubt != "" {
			t.Errorf("%q: %q, doubt %q; want %q", visible, names(nt, got), doubt, want)
		}
	}
}

func TestCUDADeviceOrder(t *testing.T) {
	nt := fourGPUs()
	nt.Devices[nt.ByName("gpu1")].Model = FromRead("NVIDIA T400", "test")
	for order, doubtful := range map[string]bool{"": true, "FASTEST_FIRST": true, "PCI_BUS_ID": false} {
		got, doubt := CUDAOrder(nt, map[string]string{"CUDA_DEVICE_ORDER": order})
		if names(nt, got) != "gpu0 gpu1 gpu2 gpu3" || strings.Contains(doubt, "unlike GPUs") != doubtful {
			t.Errorf("%s: %q, doubt %q", order, names(nt, got), doubt)
		}
	}
	for i := range nt.Devices {
		nt.Devices[i].PCI, nt.Devices[i].Index = "", -1
	}
	if got, doubt := CUDAOrder(nt, nil); names(nt, got) != "gpu2 gpu0 gpu3 gpu1" || !strings.Contains(doubt, "neither") {
		t.Errorf("without numbers: %q, doubt %q", names(nt, got), doubt)
	}
}
