package nvsmi

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/cluster"
)

// The texts in this file are synthetic; they imitate drivers 440 to 580.

const (
	uuidA = "GPU-00000000-1111-2222-3333-444444444444"
	uuidB = "GPU-00000000-1111-2222-3333-555555555555"
	migA  = "MIG-aaaaaaaa-1111-2222-3333-444444444444"
)

// gpuText prints every GPU of a fragment on a line of its own.
func gpuText(f *cluster.Fragment) string {
	var b strings.Builder
	for _, h := range f.Hosts {
		t := f.Types[h.Type]
		for _, i := range t.Of(cluster.GPU) {
			d := t.Devices[i]
			fmt.Fprintf(&b, "%s/%s %d %q", h.Name, d.Name, d.Index, d.Model.Value)
			if d.UUID != "" {
				fmt.Fprintf(&b, " …%s", d.UUID[len(d.UUID)-4:])
			}
			if d.PCI != "" {
				fmt.Fprintf(&b, " %s", d.PCI)
			}
			if d.GPU.Memory.Known() {
				fmt.Fprintf(&b, " %v", d.GPU.Memory.Value)
			}
			if d.GPU.SM > 0 {
				fmt.Fprintf(&b, " sm%d", d.GPU.SM)
			}
			if d.GPU.Links > 0 {
				fmt.Fprintf(&b, " %d links", d.GPU.Links)
			}
			for _, s := range d.GPU.Slices {
				fmt.Fprintf(&b, " mig%d %s %t", s.Index, s.Profile, s.UUID != "")
			}
			for _, l := range t.Links {
				if l.B == i {
					fmt.Fprintf(&b, " %v x%d/%d %g/%g", l.Kind, l.Lanes, l.MaxLanes, l.GTs, l.MaxGTs)
				}
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func TestGPUs(t *testing.T) {
	for _, c := range []struct {
		name  string
		match func([]byte) bool
		read  readFunc
		in    string
		want  string
		warn  []string
	}{
		{
			"list", MatchList, ReadList,
			"$ nvidia-smi -L\nGPU 0: NVIDIA A100-SXM4-40GB (UUID: " + uuidA + ")\n  MIG 3g.20gb     Device  0: (UUID: " + migA +
				")\n  MIG 1g.5gb Device 1: (UUID: MIG-GPU-00000000-1111-2222-3333-444444444444/7/0)\nGPU 1: NVIDIA " +
				"A100-SXM4-40GB (UUID: " + uuidB + ")\n",
			"/gpu0 0 \"NVIDIA A100-SXM4-40GB\" …4444 mig0 3g.20gb true mig1 1g.5gb true\n/gpu1 1 \"NVIDIA A100-SXM4-40GB\" " +
				"…5555\n",
			nil,
		},
		{
			"list of hosts", MatchList, ReadList,
			"n1: GPU 0: Tesla V100 (UUID: " + uuidA + ")\nn2: GPU 0: Tesla V100 (UUID: " + uuidB + ")\n",
			"n1/gpu0 0 \"Tesla V100\" …4444\nn2/gpu0 0 \"Tesla V100\" …5555\n",
			nil,
		},
		{
			"two nameless machines", MatchList, ReadList,
			"GPU 0: Tesla V100 (UUID: " + uuidA + ")\n\nGPU 0: Tesla V100 (UUID: " + uuidB + ")\n",
			"/gpu0 0 \"Tesla V100\" …4444\n/gpu0 0 \"Tesla V100\" …5555\n",
			nil,
		},
		{
			"blotted UUIDs tie nothing together", MatchList, ReadList,
			"GPU 0: X (UUID: GPU-xxxx)\nGPU 1: X (UUID: GPU-xxxx)\n\tLink 0: 25 GB/s\n",
			"/gpu0 0 \"X\"\n/gpu1 1 \"X\" 1 links\n",
			nil,
		},
		{
			"links", MatchList, ReadList,
			"GPU 0: NVIDIA H100 (UUID: " + uuidA + ")\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n\t Link 2: 26.562 GB/s\n" +
				"GPU 1: NVIDIA H100 (UUID: " + uuidB + ")\n\t Link 0: 26.562 GB/s\n\t Link 1: 13.281 GB/s\n",
			"/gpu0 0 \"NVIDIA H100\" …4444 3 links\n/gpu1 1 \"NVIDIA H100\" …5555 2 links\n",
			[]string{"gpu0: 1 of 3 NVLinks inactive"},
		},
		{
			"links that ended at a GPU which is not there", MatchList, ReadList,
			"GPU 0: X (UUID: " + uuidA + ")\n\t Link 0: 20 GB/s\n\t Link 1: <inactive>\n" +
				"GPU 2: X (UUID: " + uuidB + ")\n\t Link 0: <inactive>\n\t Link 1: 20 GB/s\n",
			"/gpu0 0 \"X\" …4444 2 links\n/gpu2 2 \"X\" …5555 2 links\n",
			[]string{
				"2 GPUs are listed, and GPU 2 is one of them",
				"2 NVLinks inactive (1 of GPU 0, 1 of GPU 2), as many as one GPU has",
			},
		},
		{
			"errors of links", MatchList, ReadList,
			"GPU 0: NVIDIA H100\n\t Link 0: Replay Errors: 0\n\t Link 0: FEC Errors - 0: 7\n\t Link 1: CRC Errors: 9\n\n" +
				"\t Link 1: Replay Errors: 12\nGPU 1: NVIDIA H100\n\t Link 0: Replay Errors: 0\n",
			"/gpu0 0 \"NVIDIA H100\"\n/gpu1 1 \"NVIDIA H100\"\n",
			[]string{"gpu0: NVLink errors since the driver was loaded: link 1: 9 CRC Errors, link 1: 12 Replay Errors"},
		},
		{
			"links all down, list and links in one text", MatchList, ReadList,
			"GPU 0: RTX (UUID: " + uuidA + ")\nGPU 0: RTX (UUID: " + uuidA +
				")\nNVML: Unable to retrieve NVLink information as all links are inActive\n",
			"/gpu0 0 \"RTX\" …4444\n",
			nil,
		},
		{
			"table", MatchSMI, ReadSMI,
			"+----+\n| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n" +
				"|=====+===|\n" +
				"|   0  NVIDIA H100 80GB HBM3          On  |   00000000:06:00.0 Off |                    0 |\n| N/A   34C    P0  " +
				"           70W /  700W |       0MiB /  81559MiB |      0%      Default |\n|      |    |   Enabled |\n+---+\n" +
				"|   1  NVIDIA A100 80G...  Off  | 00000001:07:00.0 Off |                    0 |\n| N/A   34C    P0    70W / " +
				"700W |       0MiB /  81920MiB |      0%      Default |\n" +
				"| MIG devices: |\n|  0    7   0   0  |               5MiB /  9984MiB  | 14      0 |  1   0    0    0    0 |\n|  " +
				"                |               0MiB /  8191MiB  |           |                       |\n" +
				"| Processes: |\n|    0   N/A  N/A     12806      C   /usr/bin/python                           26130MiB |\n",
			"/gpu0 0 \"NVIDIA H100 80GB HBM3\" 0000:06:00.0 81559 MiB\n/gpu1 1 \"NVIDIA A100 80G...\" " +
				"0001:07:00.0 80 GiB\n",
			[]string{"is cut short"},
		},
		{
			"table of a host, indented", MatchSMI, ReadSMI,
			"n3:     |   0  NVIDIA L4      WDDM  |   00000000:01:00.0  On |   0 |\nn3:     | 30%   35C    P8             12W " +
				"/  425W |       0MiB /  24564MiB |      0%      Default |\n",
			"n3/gpu0 0 \"NVIDIA L4\" 0000:01:00.0 24564 MiB\n",
			nil,
		},
		{
			"query with units", MatchQuery, ReadQuery,
			"index, name, uuid, pci.bus_id, memory.total [MiB], pcie.link.gen.current, pcie.link.gen.max, " +
				"pcie.link.width.current, pcie.link.width.max, compute_cap\n" +
				"0, NVIDIA H200, " + uuidA + ", 00000000:0A:00.0, 143771 MiB, 1, 5, 8, 16, 9.0\n1, NVIDIA H200, " + uuidB +
				", 00000000:0B:00.0, 143771 MiB, 5, 5, 16, 16, 9.0\n",
			"/gpu0 0 \"NVIDIA H200\" …4444 0000:0a:00.0 143771 MiB sm90 pcie x8/16 2.5/32\n/gpu1 1 \"NVIDIA H200\" …5555 " +
				"0000:0b:00.0 143771 MiB sm90 pcie x16/16 32/32\n",
			[]string{"1 of 2 GPUs report a lower PCIe generation than they can do (1 of 5): idle"},
		},
		{
			"query without units, other names, a repeat", MatchQuery, ReadQuery,
			"gpu_name, gpu_bus_id, memory.total [MiB], pcie.link.gen.gpumax, pcie.link.gen.hostmax, pcie.link.width.max\n" +
				"Tesla T4, 00000000:3B:00.0, 15360, 3, [N/A], 16\nTesla T4, 00000000:3B:00.0, 15360, 3, [N/A], 16\n",
			"/gpu0 -1 \"Tesla T4\" 0000:3b:00.0 15 GiB pcie x0/16 0/8\n",
			nil,
		},
		{
			"query by name and memory only, prose after it", MatchQuery, ReadQuery,
			"name, memory.total [MiB]\nTesla T4, 15360 MiB\nTesla T4, 15360 MiB\n\nThat is all, folks\n",
			"/gpu0 0 \"Tesla T4\" 15 GiB\n/gpu1 1 \"Tesla T4\" 15 GiB\n",
			nil,
		},
		{
			"query cut off", MatchQuery, ReadQuery,
			"index, name, uuid\n0, Tesla T4, " + uuidA + "\n1, Tesla T4",
			"/gpu0 0 \"Tesla T4\" …4444\n",
			[]string{"in:3: 2 fields; the header has 3"},
		},
		{
			"query by name cut off", MatchQuery, ReadQuery,
			"timestamp, name, memory.total [MiB]\n2026/07/03, NVIDIA H200, 143771 MiB\n2026/07/03, NVIDIA H200",
			"/gpu0 0 \"NVIDIA H200\" 143771 MiB\n",
			[]string{"in:3: 2 fields; the header has 3"},
		},
		{
			"commands of other queries beside it", MatchQuery, ReadQuery,
			"$ nvidia-smi --query-compute-apps=timestamp,gpu_name,gpu_bus_id,pid --format=csv\n" +
				"timestamp, gpu_name, gpu_bus_id, pid\n2026/07/03, NVIDIA H200, 00000000:83:00.0, 17\n" +
				"$ nvidia-smi --query-retired-pages=timestamp,gpu_name,gpu_bus_id,cause --format=csv\n" +
				"# per-device monitor (incl. PCIe rx, tx)\n",
			"/gpu0 -1 \"NVIDIA H200\" 0000:83:00.0\n",
			nil,
		},
		{
			"query of hosts", MatchQuery, ReadQuery,
			"hostname, index, name\nn1, 0, NVIDIA GB200\nn2, 0, NVIDIA GB200\n",
			"n1/gpu0 0 \"NVIDIA GB200\"\nn2/gpu0 0 \"NVIDIA GB200\"\n",
			nil,
		},
		{
			"xml", MatchXML, ReadXML,
			"log line\n<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>\n" +
				"\t<attached_gpus>2</attached_gpus>\n" +
				"\t<gpu id=\"00000000:0A:00.0\">\n\t\t<product_name>NVIDIA A100</product_name>\n\t\t<mig_devices>\n" +
				"\t\t\t<mig_device>\n\t\t\t\t<index>0</index>\n\t\t\t\t<uuid>" + migA +
				"</uuid>\n\t\t\t</mig_device>\n\t\t</mig_devices>\n" +
				"\t\t<uuid>" + uuidA + "</uuid>\n\t\t<minor_number>7</minor_number>\n" +
				"\t\t<pci><pci_device_id>20B010DE</pci_device_id><pci_gpu_link_info><pcie_gen><max_link_gen>4</max_link_gen><current_link_gen>4</current_link_gen></pcie_gen>" +
				"<link_widths><max_link_width>16x</max_link_width><current_link_width>8x</current_link_width></link_widths></pci_gpu_link_info></pci>\n\t\t<fb_memory_usage><total>40960 MiB</total></fb_memory_usage>\n\t\t<processes><process_info><process_name>uuid</process_name></process_info></processes>\n\t</gpu>\n" +
				"\t<gpu id=\"00000000:0B:00.0\"><uuid>" + uuidB +
				"</uuid><c2c_mode>Enabled</c2c_mode></gpu>\n</nvidia_smi_log>\nmore log\n",
			"/gpu0 0 \"NVIDIA A100\" …4444 0000:0a:00.0 40 GiB mig0  true pcie x8/16 16/16\n/gpu1 1 \"\" …5555 " +
				"0000:0b:00.0 c2c x0/0 0/0\n",
			nil,
		},
		{
			"plain", MatchPlain, ReadPlain, plainText,
			"/gpu0 0 \"NVIDIA A100\" …4444 0000:0a:00.0 40 GiB pcie x8/16 16/16\n/gpu1 1 \"\" …5555 0000:0b:00.0 c2c x0/0 " +
				"0/0\n",
			nil,
		},
		{
			"plain of hosts", MatchPlain, ReadPlain, prefixed("n1: ", plainText) +
				prefixed("n2: ", strings.Replace(plainText, "Attached GPUs                             : 2", "Attached GPUs : 9",
					1)),
			"n1/gpu0 0 \"NVIDIA A100\" …4444 0000:0a:00.0 40 GiB pcie x8/16 16/16\nn1/gpu1 1 \"\" …5555 0000:0b:00.0 c2c " +
				"x0/0 0/0\n" +
				"n2/gpu0 -1 \"NVIDIA A100\" …4444 0000:0a:00.0 40 GiB pcie x8/16 16/16\nn2/gpu1 -1 \"\" …5555 0000:0b:00.0 " +
				"c2c x0/0 0/0\n",
			nil,
		},
		{
			"xml cut off", MatchXML, ReadXML,
			"<nvidia_smi_log><attached_gpus>2</attached_gpus>\n<gpu id=\"00000000:0A:00.0\"><uuid>" + uuidA +
				"</uuid></gpu>\n<gpu id=\"00000000:0B:00.0\"><uuid>GPU-0",
			"/gpu0 0 \"\" …4444 0000:0a:00.0\n/gpu1 1 \"\" 0000:0b:00.0\n",
			[]string{"in:3: the text ends inside nvidia_smi_log; what came before is kept"},
		},
		{
			"two documents", MatchXML, ReadXML,
			"<nvidia_smi_log><gpu id=\"1:2:3\"><uuid>" + uuidA +
				"</uuid></gpu></nvidia_smi_log>\n<nvidia_smi_log><gpu id=\"4:5:6\"/></nvidia_smi_log>",
			"/gpu0 -1 \"\" …4444 0001:02:03.0\n/gpu0 -1 \"\" 0004:05:06.0\n",
			nil,
		},
		{
			"entities are text", MatchXML, ReadXML,
			"<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;\">]><nvidia_smi_log><gpu " +
				"id=\"0:1:0\"><product_name>&b;</product_name></gpu></nvidia_smi_log>",
			"/gpu0 -1 \"&b;\" 0000:01:00.0\n",
			nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !c.match([]byte(c.in)) {
				t.Error("not recognised")
			}
			f, err := c.read("in", strings.NewReader(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if got := gpuText(f); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
			checkWarnings(t, f.Warnings, c.warn)
			for _, n := range f.Types {
				if err := n.Check(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestGPUErrors(t *testing.T) {
	deep := "<nvidia_smi_log>" + strings.Repeat("<a>", 100)
	for _, c := range []struct {
		name string
		read readFunc
		in   string
		want string
	}{
		{"list", ReadList, "GPU zero: x\n", "in: no list of GPUs found"},
		{"table", ReadSMI, "| 0 | 1 |\n", "in: no table of GPUs found"},
		{"query", ReadQuery, "index, name\n", "in: no CSV of GPUs found"},
		{"query without header", ReadQuery, "0, Tesla T4, 1\n", "in: no CSV of GPUs found"},
		{"xml", ReadXML, "<gpu/>", "in: no GPU in an nvidia_smi_log"},
		{"xml deep", ReadXML, deep, "in: no GPU in an nvidia_smi_log"},
		{"xml without end", ReadXML, "\n\n<nvidia_smi_log>", "in: no GPU in an nvidia_smi_log"},
		{"peer access", readP2POnly, "\tGPU0\tGPU1\nGPU0\t X \tPIX\n", "in: no matrix of nvidia-smi topo -p2p"},
		{"peer access too wide", readP2POnly, "\t" + wide(200) + "\nGPU0\tX\tOK\n", "in:1: 200 columns"},
	} {
		_, err := c.read("in", strings.NewReader(c.in))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: error %v; want %q", c.name, err, c.want)
		}
	}
}

func TestP2P(t *testing.T) {
	const head, legend = " \t\x1b[4mGPU0\tGPU1\t\x1b[0m\n",
		"\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n  NS   = Not supported\n"
	ok := head + " GPU0\tX\tOK\t\n GPU1\tOK\tX\t\n" + legend
	no := head + " GPU0\tX\tNS\t\n GPU1\tGNS\tX\t\n" + legend
	for _, c := range []struct {
		name, in, want string
		warn           []string
	}{
		{"yes", ok, "gpu0>gpu1 yes , gpu1>gpu0 yes ", nil},
		{"no, with the driver's word", no, "gpu0>gpu1 no NS: not supported, gpu1>gpu0 no GNS: GPU not supported", nil},
		{"reads yes, writes no", ok + no, "gpu0>gpu1 no NS: not supported, gpu1>gpu0 no GNS: GPU not supported", nil},
		{"no NVLink does not mean no peer access", "$ nvidia-smi topo -p2p n\n" + no, "", nil},
		{"NVLink means peer access", "$ nvidia-smi topo -p2p n\n" + ok, "gpu0>gpu1 yes , gpu1>gpu0 yes ", nil},
		{
			"rw", "$ nvidia-smi topo -p2p rw\n" + no, "gpu0>gpu1 no NS: not supported, gpu1>gpu0 no GNS: GPU not supported", nil,
		},
		{
			"unknown, disabled", head + "GPU0 X U\nGPU1 DR X\n",
			"gpu0>gpu1 unknown , gpu1>gpu0 no DR: disabled by a registry key", nil,
		},
		{
			"a foreign word", head + "GPU0 X OK\nGPU1 PIX X\n", "gpu0>gpu1 yes ",
			[]string{"row GPU1, column GPU0: PIX in a matrix of peer access"},
		},
		{"cut off", head + " GPU0\tX\tOK\t\n", "gpu0>gpu1 yes ", []string{"no row for GPU1"}},
	} {
		if !matchP2P([]byte(c.in)) || matchTopo([]byte(c.in)) && c.warn == nil {
			t.Errorf("%s: not recognised, or as a matrix of classes", c.name)
		}
		f, err := readP2POnly("in", strings.NewReader(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		n := f.Types[0]
		var got []string
		for _, p := range n.Pairs {
			got = append(got, fmt.Sprintf("%s>%s %v %s", n.Devices[p.A].Name, n.Devices[p.B].Name, p.P2P, p.Why))
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s: got %q; want %q", c.name, s, c.want)
		}
		checkWarnings(t, f.Warnings, c.warn)
	}
}
