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
		t.Add(Device{Kind: GPU, Index: g.index, PCI: g.pci, Parent: -1, UUID: g.uuid, Model: FromRead("NVIDIA A100", "test"), GPU: &GPUInfo{}})
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
	if o := CUDAOrder(nt, nil, nil); names(nt, o.GPUs) != "gpu0 gpu1 gpu2 gpu3" || !strings.Contains(o.Doubt, "unlike GPUs") {
		t.Errorf("without figures: %q, doubt %q; want the PCI order and a doubt", names(nt, o.GPUs), o.Doubt)
	}
	for i := range nt.Devices {
		nt.Devices[i].Model = Fact[string]{}
	}
	if o := CUDAOrder(nt, nil, nil); !strings.Contains(o.Doubt, "nobody said") {
		t.Errorf("unknown models: doubt %q", o.Doubt)
	}
}

func TestROCmVisibleDevices(t *testing.T) {
	nt := fourGPUs()
	for _, c := range []struct{ rocr, hip, cuda, want string }{
		{"-", "-", "-", "gpu0 gpu1 gpu2 gpu3"},
		{"3,1", "-", "-", "gpu3 gpu1"},
		{"3,1", "1", "-", "gpu1"},
		{"3,1", "2", "-", ""},
		{"-", "2,0", "1", "gpu2 gpu0"},
		{"-", "-", "1", "gpu1"},
		{"1,1,2", "-", "-", "gpu1"},
		{"0,GPU-bbbb", "-", "-", "gpu0 gpu1"},
		{"", "-", "-", ""},
	} {
		env := map[string]string{}
		for k, v := range map[string]string{"ROCR_VISIBLE_DEVICES": c.rocr, "HIP_VISIBLE_DEVICES": c.hip, "CUDA_VISIBLE_DEVICES": c.cuda} {
			if v != "-" {
				env[k] = v
			}
		}
		if got := names(nt, ROCmOrder(nt, nil, env).GPUs); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestMIGOrder(t *testing.T) {
	nt := fourGPUs()
	g := nt.Devices[nt.ByName("gpu1")].GPU
	g.Slices = []Slice{{Index: 0, UUID: "MIG-11110000-0000-0000-0000-000000000000"}, {Index: 1, UUID: "MIG-22220000-0000-0000-0000-000000000000"}}
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

// Seven names, one GPU.
func TestFindGPU(t *testing.T) {
	nt := fourGPUs()
	nt.Devices[nt.ByName("gpu1")].GPU.Slices = []Slice{{Index: 4, UUID: "MIG-11110000-0000-0000-0000-000000000000"}}
	// A joined cluster keeps UUIDs with the host.
	ids := []Identity{{Device: "gpu1", UUID: nt.Devices[nt.ByName("gpu1")].UUID}}
	nt.Devices[nt.ByName("gpu1")].UUID = ""
	order := []GPURef{{nt.ByName("gpu3"), -1}, {nt.ByName("gpu1"), -1}}
	for _, name := range []string{
		"gpu1", "1", "GPU1", "GPU 1", "0000:0b:00.0", "00000000:0B:00.0", "0b:00.0", "0000:0b:00",
		"GPU-bbbb0000-0000-0000-0000-000000000000", "GPU-bbbb", "cuda:1", "hip:1", "local:1", " gpu1 ",
	} {
		r, err := FindGPU(nt, ids, name, order)
		if err != nil || names(nt, []GPURef{r}) != "gpu1" {
			t.Errorf("%q: %v, %v; want gpu1", name, r, err)
		}
	}
	for _, name := range []string{"MIG-1111", "MIG-11110000-0000-0000-0000-000000000000", "1:4", "GPU1:4"} {
		r, err := FindGPU(nt, ids, name, order)
		if err != nil || names(nt, []GPURef{r}) != "gpu1/mig4" {
			t.Errorf("%q: %v, %v; want slice 4 of gpu1", name, r, err)
		}
	}
	if node, r, err := GPUOfRank(5, 2, order); err != nil || node != 2 || names(nt, []GPURef{r}) != "gpu1" {
		t.Errorf("rank 5 of 2 a node: node %d, %v, %v; want node 2, gpu1", node, r, err)
	}
	for name, want := range map[string]string{
		"gpu9": `no GPU "gpu9"; the node has 4, gpu2 to gpu1`, "cuda:2": `no GPU "cuda:2"; the process sees 2`, "GPU-ffff": "no GPU of the node has UUID",
		"GPU-cccc": "begins that of 2 GPUs", "0000:99:00.0": "no GPU at PCI address 0000:99:00.0", "1:9": `no MIG slice "1:9"`, "": `no GPU ""`, "bogus": `no GPU "bogus"`, "GPU-": "nothing after",
	} {
		if _, err := FindGPU(nt, ids, name, order); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v; want %q", name, err, want)
		}
	}
	if _, _, err := GPUOfRank(3, 0, order); err == nil {
		t.Error("no ranks a node: expected an error")
	}
}
