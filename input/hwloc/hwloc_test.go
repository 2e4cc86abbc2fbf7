package hwloc

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/readertest"
	"busbar.dev/unit"
)

// machineXML is synthetic. It imitates lstopo 2.9 on a two-socket server: a
// switch with a GPU and a NIC, a second switch behind it with another GPU, the
// management controller's display, and a virtio interface on the second root.
const machineXML = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x000000ff" nodeset="0x00000003" gp_index="1">
    <info name="HostName" value="node7"/>
    <info name="Architecture" value="x86_64"/>
    <object type="Package" os_index="0" cpuset="0x0000000f" nodeset="0x00000001" gp_index="2">
      <info name="CPUVendor" value="AuthenticAMD"/>
      <info name="CPUFamilyNumber" value="25"/>
      <info name="CPUModelNumber" value="17"/>
      <info name="CPUModel" value="AMD EPYC 9654 96-Core Processor "/>
      <object type="NUMANode" os_index="0" cpuset="0x0000000f" nodeset="0x00000001" gp_index="3" local_memory="1073741824"/>
      <object type="L3Cache" cpuset="0x0000000f" gp_index="4"><info name="CPUModel" value="not this"/>
        <object type="Core" os_index="0" gp_index="5"><object type="PU" os_index="0" gp_index="6"/></object>
      </object>
      <object type="Bridge" gp_index="10" bridge_type="0-1" depth="0" bridge_pci="0000:[00-20]">
        <object type="Bridge" gp_index="11" bridge_type="1-1" bridge_pci="0000:[01-10]" pci_busid="0000:00:01.1" pci_type="0604 [1022:14ab] [0000:0000] 01" pci_link_speed="31.507692">
          <object type="Bridge" gp_index="12" bridge_type="1-1" bridge_pci="0000:[02-10]" pci_busid="0000:01:00.0" pci_type="0604 [1000:c030] [1000:100b] b0" pci_link_speed="63.015385">
            <object type="Bridge" gp_index="13" bridge_type="1-1" pci_busid="0000:02:00.0" pci_type="0604 [1000:c030] [1000:100b] b0" pci_link_speed="63.015385">
              <object type="PCIDev" gp_index="14" pci_busid="0000:03:00.0" pci_type="0302 [10de:2330] [10de:16c1] a1" pci_link_speed="63.015385">
                <object type="OSDev" gp_index="15" name="cuda1" subtype="CUDA" osdev_type="5"><info name="CUDAGlobalMemorySize" value="83886080"/></object>
                <object type="OSDev" gp_index="16" name="nvml0" subtype="NVML" osdev_type="1"><info name="GPUModel" value="NVIDIA H100 80GB HBM3"/><info name="NVIDIAUUID" value="GPU-1"/></object>
              </object>
            </object>
            <object type="Bridge" gp_index="17" bridge_type="1-1" pci_busid="0000:02:01.0" pci_type="0604 [1000:c030] [1000:100b] b0" pci_link_speed="31.507692">
              <object type="PCIDev" gp_index="18" pci_busid="0000:04:00.0" pci_type="0200 [15b3:1021] [15b3:0023] 00" pci_link_speed="31.507692">
                <object type="OSDev" gp_index="19" name="eth0" osdev_type="2"><info name="Address" value="02:00:00:00:00:01"/></object>
                <object type="OSDev" gp_index="20" name="mlx5_0" osdev_type="3"><info name="NodeGUID" value="0000:0000:0000:0001"/><info name="Port1State" value="1"/><info name="Port1LID" value="0x0"/></object>
              </object>
              <object type="PCIDev" gp_index="21" pci_busid="0000:04:00.1" pci_type="0200 [15b3:1021] [15b3:0023] 00" pci_link_speed="31.507692">
                <object type="OSDev" gp_index="22" name="mlx5_1" osdev_type="3"><info name="Port1State" value="4"/></object>
              </object>
            </object>
            <object type="Bridge" gp_index="23" bridge_type="1-1" pci_busid="0000:02:02.0" pci_type="0604 [1000:c030] [1000:100b] b0" pci_link_speed="63.015385">
              <object type="Bridge" gp_index="24" bridge_type="1-1" pci_busid="0000:05:00.0" pci_type="0604 [1000:c030] [1000:100b] b0" pci_link_speed="63.015385">
                <object type="Bridge" gp_index="25" bridge_type="1-1" pci_busid="0000:06:00.0" pci_type="0604 [1000:c030] [1000:100b] b0" pci_link_speed="63.015385">
                  <object type="PCIDev" gp_index="26" pci_busid="0000:07:00.0" pci_type="0302 [10de:2330] [10de:16c1] a1" pci_link_speed="63.015385">
                    <object type="OSDev" gp_index="27" name="nvml1" subtype="NVML" osdev_type="1"><info name="GPUModel" value="NVIDIA H100 80GB HBM3"/></object>
                  </object>
                </object>
              </object>
            </object>
          </object>
        </object>
        <object type="Bridge" gp_index="30" bridge_type="1-1" pci_busid="0000:00:05.0" pci_type="0604 [1022:14ab] [0000:0000] 01" pci_link_speed="0.500000">
          <object type="PCIDev" gp_index="31" pci_busid="0000:20:00.0" pci_type="0300 [1a03:2000] [1a03:2000] 41" pci_link_speed="0.500000">
            <object type="OSDev" gp_index="32" name="card0" osdev_type="1"/>
          </object>
        </object>
      </object>
    </object>
    <object type="Package" os_index="1" cpuset="0x000000f0" nodeset="0x00000002" gp_index="40">
      <object type="NUMANode" os_index="1" cpuset="0x000000f0" nodeset="0x00000002" gp_index="41" local_memory="2147483648"/>
      <object type="Bridge" gp_index="42" bridge_type="0-1" depth="0" bridge_pci="0001:[00-00]">
        <object type="PCIDev" gp_index="43" pci_busid="0001:00:03.0" pci_type="0200 [1af4:1041] [1af4:1041] 01" pci_link_speed="0.000000">
          <object type="OSDev" gp_index="44" name="eth1" osdev_type="2"/>
        </object>
      </object>
    </object>
  </object>
  <distances2hetero nbobjs="2" kind="25" name="NVLinkBandwidth">
    <indexes length="20">OSDev:16 OSDev:27 </indexes>
    <u64values length="30">1000000 450000 425000 1000000 </u64values>
  </distances2hetero>
</topology>
`

func read(t *testing.T, text string) *cluster.Fragment {
	t.Helper()
	f, err := Read("in", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, ty := range f.Types {
		if err := ty.Check(); err != nil {
			t.Error(err)
		}
	}
	return f
}

func TestMachine(t *testing.T) {
	f := read(t, machineXML)
	if len(f.Warnings) != 0 || f.Hosts[0].Name != "node7" {
		t.Errorf("host %q, warnings %v", f.Hosts[0].Name, f.Warnings)
	}
	ty := f.Types[0]
	want := `2 sockets
gpu0 0000:03:00.0  [X NV18 PIX PIX SYS]
gpu1 0000:07:00.0  [NV17 X PXB PXB SYS]
nic0 0000:04:00.0 mlx5_0 [PIX PXB X PIX SYS]
nic1 0000:04:00.1 mlx5_1 [PIX PXB PIX X SYS]
nic2 0001:00:03.0 eth1 [SYS SYS SYS SYS X]
`
	if got := outline(ty); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	socket := ty.Devices[ty.ByName("socket0")]
	if c := socket.CPU; c.Vendor != "AuthenticAMD" || c.Family != 175 || c.Model != 17 || c.Cores != "0-3" ||
		socket.Model.Value != "AMD EPYC 9654 96-Core Processor" {
		t.Errorf("socket0 is %+v of model %q", c, socket.Model.Value)
	}
	gpu := ty.Devices[ty.ByName("gpu0")]
	if gpu.Index != 0 || gpu.UUID != "GPU-1" || gpu.GPU.Memory.Value != 80*unit.GiB || gpu.GPU.NUMA.Value != 0 ||
		*gpu.PCIID != (cluster.PCIID{Class: "030200", Vendor: "10de", Device: "2330", SubVendor: "10de", SubDevice: "16c1"}) {
		t.Errorf("gpu0 is %+v %+v %+v", gpu, gpu.GPU, gpu.PCIID)
	}
	nic := ty.Devices[ty.ByName("nic0")]
	if nic.NIC.Kind != cluster.RoCE || nic.UUID != "0x0000000000000001" || nic.NIC.Ports[0].State != cluster.Down ||
		nic.NIC.Ports[0].Label != "eth0" {
		t.Errorf("nic0 is %+v %+v", nic, nic.NIC)
	}
	// The slower root port bounds the switch's way up.
	for _, l := range ty.Links {
		if ty.Devices[l.B].Name == "pci0" && l.Rate.Value.String() != "31.5 GB/s" {
			t.Errorf("pci0 has %v upwards", l.Rate.Value)
		}
	}
}

func TestInsideLogs(t *testing.T) {
	want := outline(read(t, machineXML).Types[0])
	prefix := func(p, s string) string {
		return p + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n"+p) + "\n"
	}
	for name, tc := range map[string]struct {
		text  string
		nodes int
	}{
		"noise around":      {"Loading modules\n<topology sockets='2' cores='4'/>\n" + machineXML + "\nbye\n", 1},
		"libvirt before":    {"<topology>\n<cells num='1'>\n</cells>\n</topology>\n" + machineXML, 1},
		"windows":           {strings.ReplaceAll(machineXML, "\n", "\r\n"), 1},
		"one line":          {strings.ReplaceAll(machineXML, "\n", " "), 1},
		"one line with log": {strings.Repeat("x", 200000) + strings.ReplaceAll(machineXML, "\n", " ") + "x", 1},
		"mpirun":            {prefix("[1,0]<stdout>:", machineXML), 1},
		"srun -l":           {prefix("0: ", machineXML), 1},
		"markdown":          {prefix("    ", machineXML), 1},
		"colour":            {"\x1b[32m" + strings.ReplaceAll(machineXML, "<info", "\x1b[1m<info"), 1},
		"two in a row":      {machineXML + machineXML, 2},
		"undefined entity":  {strings.Replace(machineXML, "<distances2hetero", "&lol9;<distances2hetero", 1), 1},
		"command in front":  {"$ lstopo --of xml - " + machineXML, 1},
		"broken firmware": {strings.Replace(machineXML, "node7\"/>",
			"node7\"/><info name=\"DMIProductName\" value=\"\x01\xff\"/>", 1), 1},
	} {
		if !Match([]byte(tc.text)) {
			t.Errorf("%s: Match does not see it", name)
		}
		f, err := Read("log", strings.NewReader(tc.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(f.Types) != tc.nodes || len(f.Warnings) > 0 {
			t.Errorf("%s: %d nodes, warnings %v", name, len(f.Types), f.Warnings)
		}
		for _, ty := range f.Types {
			if got := outline(ty); got != want {
				t.Errorf("%s: got\n%s", name, got)
			}
		}
	}
}

func TestMatchRefuses(t *testing.T) {
	for _, s := range []string{
		"", "<topology", "<topology>", "<topology version=\"2.0\">",
		"<topology sockets='2' dies='1' cores='4' threads='2'/>",
		"<topology><cells num='1'><cell id='0'></cell></cells></topology><object type=\"x\"/>",
		"<system version=\"1\"><cpu numaid=\"0\"/></system>",
		"SwitchName=leaf1 Nodes=node[1-4]",
	} {
		if Match([]byte(s)) {
			t.Errorf("Match takes %q", s)
		}
	}
}

func TestBadInput(t *testing.T) {
	cut := machineXML[:strings.Index(machineXML, `gp_index="26"`)]
	for name, tc := range map[string]struct {
		text string
		err  string // part of the error, or
		warn string // part of a warning
	}{
		"nothing":       {"", "no <topology>", ""},
		"binary":        {"\x00\xff\xfe<topo\x00", "no <topology>", ""},
		"empty machine": {"<topology><object type=\"Machine\"/></topology>", "names no package", ""},
		"cut":           {cut, "", "in:37: the topology ends inside <object>: cut off"},
		"cut, then new": {cut + "\n" + machineXML, "", "in:40: the topology ends inside <object>: cut off"},
		"wrong end": {
			strings.Replace(machineXML, "</object>\n            </object>\n            <object "+
				"type=\"Bridge\" gp_index=\"17\"", "</objet>\n            <object type=\"Bridge\" gp_index=\"17\"", 1), "",
			"</topology> while <object> is open",
		},
		"twice":       {strings.Replace(machineXML, "0000:04:00.1", "0000:04:00.0", 1), "", "occurs twice"},
		"bad address": {strings.Replace(machineXML, "0000:04:00.1", "0000:zz:00.1", 1), "", "PCI address"},
		"bad mask":    {strings.Replace(machineXML, `cpuset="0x0000000f"`, `cpuset="0xf...f"`, 1), "", "CPU mask"},
		"idle":        {strings.ReplaceAll(machineXML, "63.015385", "4.000000"), "", "while a GPU is idle"},
		"nested too deep": {
			"<topology><object type=\"Machine\">" + strings.Repeat("<object type=\"Package\">", 600),
			"nested more than 256 deep", "",
		},
		"entities": {
			"<topology><!DOCTYPE lolz [<!ENTITY a \"aaaa\">]><object type=\"Machine\"><object " +
				"type=\"Package\">&a;</object></object></topology>",
			"declares XML entities", "",
		},
	} {
		f, err := Read("in", strings.NewReader(tc.text))
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) || !strings.HasPrefix(err.Error(), "in") {
				t.Errorf("%s: error %v; want %q", name, err, tc.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !strings.Contains(fmt.Sprint(f.Warnings), tc.warn) {
			t.Errorf("%s: warnings %v; want %q", name, f.Warnings, tc.warn)
		}
		for _, ty := range f.Types {
			if err := ty.Check(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// An external entity or document type is text like any other: nothing is loaded,
// nothing grows.
func TestBomb(t *testing.T) {
	bomb := "<?xml version=\"1.0\"?><!DOCTYPE topology [<!ENTITY a \"" + strings.Repeat("x", 1000) + "\">"
	for i := range 20 {
		bomb += fmt.Sprintf("<!ENTITY a%d \"%s\">", i, strings.Repeat("&a;", 50))
	}
	bomb += "]>" + strings.Replace(machineXML[strings.Index(machineXML, "<topology"):], "node7", "&a19;", 1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f, err := Read("in", strings.NewReader(bomb))
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
		t.Errorf("took %d bytes", grown)
	}
	if err == nil && len(f.Warnings) == 0 {
		t.Error("neither error nor warning")
	}
}

// Memory stays within bounds on the densest text: objects without contents.
func TestMemory(t *testing.T) {
	text := "<topology><object type=\"Machine\"><object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x1\"/>" +
		strings.Repeat("<object type=\"PU\"/>", 200_000) + "</object></topology>"
	f, err := Read("in", strings.NewReader(text))
	if err != nil || f.Types[0].Count(cluster.NUMA) != 1 {
		t.Fatalf("%v", err)
	}
	many := "<topology><object type=\"Machine\">" + strings.Repeat("<object type=\"NUMANode\" cpuset=\"0x1\"/>", 60_000) +
		"</object></topology>"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f, err = Read("in", strings.NewReader(many))
	runtime.GC()
	runtime.ReadMemStats(&after)
	if err != nil || len(f.Types[0].Devices) > 256 || len(f.Warnings) == 0 {
		t.Errorf("%v, %d devices, warnings %v", err, len(f.Types[0].Devices), f.Warnings)
	}
	if after.HeapAlloc > before.HeapAlloc+32<<20 {
		t.Errorf("holds %d bytes more", after.HeapAlloc-before.HeapAlloc)
	}
}

func TestNoise(t *testing.T) {
	noise := bytes.Repeat([]byte("no topology here, only a long log <topolog \x00\n"), 200_000)
	if _, err := Read("in", bytes.NewReader(noise)); err == nil {
		t.Error("found something in noise")
	}
	if _, err := Read("in", bytes.NewReader(bytes.ReplaceAll(noise, []byte("\n"), nil))); err == nil {
		t.Error("found something in noise without lines")
	}
}

func FuzzRead(f *testing.F) {
	readertest.Reader{Match: Match, Read: Read}.Fuzz(f, nil,
		machineXML,
		strings.ReplaceAll(machineXML, "version=\"2.0\"", "version=\"3.0\""),
		"0: <topology><object type=\"Machine\"><object type=\"Socket\"/></object></topology>",
		"<topology><object type=\"Machine\" cpuset=\"0x3\"><object type=\"Bridge\" bridge_type=\"0-1\" "+
			"bridge_pci=\"0004:[00-0a]\">"+
			"<object type=\"PCIDev\" pci_busid=\"0004:03:00.0\" pci_type=\"0302 [10de:1db1] [0:0] "+
			"a1\"/></object></object></topology>")
}

// TestXGMI: a link is where the matrix of hops has one hop, and hwloc's bandwidth of it is no rate.
func TestXGMI(t *testing.T) {
	text := strings.Replace(machineXML, `  <distances2hetero nbobjs="2" kind="25" name="NVLinkBandwidth">`,
		`  <distances2hetero nbobjs="2" kind="9" name="XGMIHops">
    <indexes length="20">OSDev:16 OSDev:27 </indexes>
    <u64values length="8">0 1 1 0 </u64values>
  </distances2hetero>
  <distances2hetero nbobjs="2" kind="25" name="XGMIBandwidth">`, 1)
	text = strings.Replace(text, "450000 425000", "100000 100000", 1)
	for hops, links := range map[string]int{"0 1 1 0": 1, "0 2 2 0": 0} {
		found := 0
		for _, l := range read(t, strings.Replace(text, "0 1 1 0", hops, 1)).Types[0].Links {
			if l.Kind == cluster.XGMI {
				found++
				if l.Rate.Known() || l.Lanes != 0 {
					t.Errorf("a rate of hwloc's: %+v", l)
				}
			}
		}
		if found != links {
			t.Errorf("hops %s: %d links, want %d", hops, found, links)
		}
	}
}
