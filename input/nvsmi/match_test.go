package nvsmi

import (
	"bytes"
	"strings"
	"testing"

	"busbar.dev/internal/test/corpus"
)

// forms are the package's readers by name.
var forms = []struct {
	name  string
	match func([]byte) bool
	read  readFunc
}{
	{"topo", matchTopo, readTopoOnly},
	{"p2p", matchP2P, readP2POnly},
	{"list", MatchList, ReadList},
	{"table", MatchSMI, ReadSMI},
	{"query", MatchQuery, ReadQuery},
	{"xml", MatchXML, ReadXML},
	{"plain", MatchPlain, ReadPlain},
}

// No sample of another tool is taken for one of nvidia-smi's, and what is
// recognised can be read.
func TestMatchCorpus(t *testing.T) {
	for _, e := range corpus.Index(t) {
		data := corpus.Open(t, e.File)
		for _, f := range forms {
			got := f.match(data)
			if got && !strings.HasPrefix(e.Format, "nvidia-smi") {
				t.Errorf("%s (%s) was taken for %s", e.File, e.Format, f.name)
			}
			if !got {
				continue
			}
			if _, err := f.read(e.File, bytes.NewReader(data)); err != nil {
				t.Errorf("%s matches %s but: %v", e.File, f.name, err)
			}
		}
	}
}

// Noise is refused quickly and without keeping it.
func TestNoise(t *testing.T) {
	noise := strings.Repeat("GPU0 GPU1 NIC0: nvidia-smi --- >> | 0 x | 1 |\n", 20000)
	for _, f := range forms {
		if f.match([]byte(noise)) {
			t.Errorf("%s: noise was recognised", f.name)
		}
		if _, err := f.read("in", strings.NewReader(noise)); err == nil {
			t.Errorf("%s: noise was read", f.name)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\nGPU0\t X \tNV18\tPIX\t0-7\t0\t\tN/A\n" +
			"GPU1\tNV18\t X \tSYS\t\t1\t\tN/A\nNIC0\tPIX\tSYS\t X \t\t\t\t\n\nNIC Legend:\n\n  NIC0: mlx5_0\n",
		"        GPU0    GPU1\nNIC0    CPU Affinity\nGPU0     X      NV4\nPIX     0-7\nGPU1    NV4      X\nNO\nDE 0-7\n",
		"n7: GPU0 GPU1 GPU2\nn7: GPU0 X PIX SYS\nn7: GPU1 PIX X PIX\nn7: GPU2 SYS PIX X\n",
		"-----\nn[1-3] (3)\n-----\nGPU0 GPU1 CPU Affinity\nGPU0 X NV2 0\nGPU1 NV4 X 0\n",
		"GPU0 GPU1 GPU2\nGPU0 X NV12 NV12\nGPU1 NV12 X NV10\nGPU2 NV12 PIX X\n",
		"$ nvidia-smi topo -p2p rw\n \tGPU0\tGPU1\t\n GPU0\tX\tCNS\t\n GPU1\tOK\tX\t\n",
		"GPU 0: NVIDIA A100 (UUID: " + uuidA + ")\n  MIG 3g.20gb     Device  0: (UUID: " + migA +
			")\n\t Link 0: 25 GB/s\n\t Link 1: <inactive>\n",
		"|   0  NVIDIA H100          On  |   00000000:06:00.0 Off |   0 |\n| N/A   34C    P0   70W /  700W |       0MiB /  " +
			"81559MiB |      0%      Default |\n|  0    7   0   0  |   5MiB /  9984MiB  | 14 |\n",
		"index, name, uuid, pci.bus_id, memory.total [MiB], pcie.link.gen.current, pcie.link.gen.max\n0, H200, " + uuidA +
			", 00000000:0A:00.0, 143771 MiB, 1, 5\n",
		"<nvidia_smi_log><attached_gpus>1</attached_gpus><gpu id=\"00000000:0A:00.0\"><uuid>" + uuidA +
			"</uuid><mig_devices><mig_device><index>0</index></mig_device></mig_devices></gpu></nvidia_smi_log>",
		plainText,
		"n7:GPU0GPU1GPU0\nA0:GPU0 0000 SYS\nn7:GPU1 0A X 0000000000000000000",
		"n1: ==============NVSMI LOG==============\nn1: GPU 00000000:0A:00.0\nn1:     PCI\nn1:         Bus Id : " +
			"00000000:0A:00.0\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, form := range forms {
			matched := form.match([]byte(s))
			frag, err := form.read("in", strings.NewReader(s))
			if err != nil {
				// A header alone is recognised, and the error says what is missing.
				if matched && form.name != "xml" && form.name != "query" && !strings.Contains(err.Error(), "column") {
					t.Errorf("%s matches but: %v", form.name, err)
				}
				continue
			}
			if len(frag.Types) == 0 || len(frag.Hosts) == 0 {
				t.Fatalf("%s: nothing and no error", form.name)
			}
			for _, n := range frag.Types {
				if err := n.Check(); err != nil {
					t.Fatalf("%s: %v", form.name, err)
				}
				n.Matrix()
			}
		}
	})
}
