package cluster

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/unit"
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

func names(t *NodeType, refs []GPURef) string {
	var out []string
	for _, r := range refs {
		s := t.Devices[r.GPU].Name
		if r.Slice >= 0 {
			s += fmt.Sprintf("/mig%d", t.Devices[r.GPU].GPU.Slices[r.Slice].Index)
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestCUDAVisibleDevices(t *testing.T) {
	nt := fourGPUs()
	for _, c := range []struct{ visible, want, note string }{
		{"unset", "gpu0 gpu1 gpu2 gpu3", ""},
		{"", "", "hides every GPU"},
		{"2,0", "gpu2 gpu0", ""},
		{"0,2,-1,1", "gpu0 gpu2", `entry 3 ("-1") names no GPU`},
		{"1,7,0", "gpu1", `entry 2 ("7") names no GPU`},
		{"-1", "", `entry 1 ("-1")`},
		{"NoDevFiles", "", `entry 1 ("NoDevFiles")`},
		{" 1 , 0", "gpu1 gpu0", ""},
		{"0,", "gpu0", ""},
		{"1abc,0", "gpu1", "CUDA reads 1 and no further"},
		{"+1,00", "gpu1 gpu0", ""},
		{",0", "", "hides every GPU"},
		{"0,1,0", "", `entry 3 ("0") names a GPU again; CUDA then starts with none`},
		{"GPU-bbbb,GPU-AAAA0000", "gpu1 gpu0", ""},
		{"GPU-cccc", "", `entry 1 ("GPU-cccc")`},
		{"GPU-cccc1", "gpu3", ""},
		{"GPU-", "", `entry 1 ("GPU-")`},
		{"gpu-aaaa", "", `entry 1 ("gpu-aaaa")`},
		{"GPU-aaaa,1", "gpu0", `entry 2 ("1")`},
		{"1,GPU-aaaa", "gpu1", `entry 2 ("GPU-aaaa")`},
		{"GPU-aaaa,GPU-aaaa0", "", "names a GPU again"},
	} {
		env := map[string]string{"CUDA_VISIBLE_DEVICES": c.visible}
		if c.visible == "unset" {
			env = nil
		}
		o := CUDAOrder(nt, nil, env)
		if got := names(nt, o.GPUs); got != c.want || o.Doubt != "" {
			t.Errorf("%q: %q, doubt %q; want %q", c.visible, got, o.Doubt, c.want)
		}
		if note := strings.Join(o.Notes, " "); (c.note == "") != (note == "") || !strings.Contains(note, c.note) {
			t.Errorf("%q: notes %q; want %q", c.visible, note, c.note)
		}
	}
}

func TestCUDADeviceOrder(t *testing.T) {
	nt := fourGPUs()
	peak := func(name string, tflops float64) {
		d := &nt.Devices[nt.ByName(name)]
		d.Model = FromRead(name+" model", "test")
		d.GPU.Peak = map[Dtype]Fact[unit.FLOPS]{FP32: FromSpec(unit.FLOPS(tflops), "test")}
	}
	peak("gpu0", 10)
	peak("gpu1", 20)
	peak("gpu2", 20)
	peak("gpu3", 5)
	for _, c := range []struct {
		order, visible, want string
		doubt                bool
	}{
		{"", "0,1,2,3", "gpu1 gpu2 gpu0 gpu3", true},
		{"FASTEST_FIRST", "1,0", "gpu2 gpu1", true},
		{"PCI_BUS_ID", "0,1,2,3", "gpu0 gpu1 gpu2 gpu3", false},
		{"PCI_BUS_ID", "3", "gpu3", false},
	} {
		o := CUDAOrder(nt, nil, map[string]string{"CUDA_DEVICE_ORDER": c.order, "CUDA_VISIBLE_DEVICES": c.visible})
		if got := names(nt, o.GPUs); got != c.want || (o.Doubt != "") != c.doubt {
			t.Errorf("%s %s: %q, doubt %q; want %q", c.order, c.visible, got, o.Doubt, c.want)
		}
	}
	nt.Devices[nt.ByName("gpu2")].GPU.Peak = nil
	if o := CUDAOrder(nt, nil, nil); names(nt, o.GPUs) != "gpu0 gpu1 gpu2 gpu3" ||
		!strings.Contains(o.Doubt, "unlike GPUs") {
		t.Errorf("without figures: %q, doubt %q; want the PCI order and a doubt", names(nt, o.GPUs), o.Doubt)
	}
	for i := range nt.Devices {
		nt.Devices[i].Model = Fact[string]{}
	}
	if o := CUDAOrder(nt, nil, nil); !strings.Contains(o.Doubt, "nobody said") {
		t.Errorf("unknown models: doubt %q", o.Doubt)
	}
}

func TestMIGOrder(t *testing.T) {
	nt := fourGPUs()
	g := nt.Devices[nt.ByName("gpu1")].GPU
	g.Slices = []Slice{
		{Index: 0, UUID: "MIG-11110000-0000-0000-0000-000000000000"},
		{Index: 1, UUID: "MIG-22220000-0000-0000-0000-000000000000"},
	}
	for _, c := range []struct{ visible, want string }{
		{"MIG-2222", "gpu1/mig1"},
		{"MIG-2222,MIG-1111", "gpu1/mig1"},
		{"MIG-3333", ""},
		{"1", "gpu1/mig0"},
		{"0,1", "gpu1/mig0"},
		{"0,2", "gpu0 gpu2"},
	} {
		o := CUDAOrder(nt, nil, map[string]string{"CUDA_VISIBLE_DEVICES": c.visible})
		if got := names(nt, o.GPUs); got != c.want {
			t.Errorf("%s: %q; want %q", c.visible, got, c.want)
		}
	}
}

// A joined cluster keeps UUIDs with the host.
func TestCUDAOrderIdentities(t *testing.T) {
	nt := fourGPUs()
	ids := []Identity{{Device: "gpu1", UUID: nt.Devices[nt.ByName("gpu1")].UUID}}
	nt.Devices[nt.ByName("gpu1")].UUID = ""
	if o := CUDAOrder(nt, ids, map[string]string{"CUDA_VISIBLE_DEVICES": "GPU-bbbb"}); names(nt, o.GPUs) != "gpu1" {
		t.Errorf("%q; want gpu1", names(nt, o.GPUs))
	}
}
