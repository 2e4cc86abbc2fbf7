package ncclxml

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
)

// pair is synthetic: two GPUs with NVLink and a NIC, as NCCL 2.28 dumps them.
const pair = `<system version="1">
  <cpu host_hash="0x1f" numaid="0" affinity="00000000,0000ffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:17:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="90" rank="0" gdr="1">
        <nvlink target="0000:65:00.0" count="6" tclass="0x030200"/>
      </gpu>
    </pci>
    <pci busid="0000:4b:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">
      <nic>
        <net name="mlx5_0" dev="0" latency="0" speed="400000" port="1" guid="0x58a32a0003d23fb8" maxconn="131072" gdr="1" coll="1"/>
      </nic>
    </pci>
    <pci busid="0000:65:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="1" sm="90" rank="1" gdr="1">
        <nvlink target="0000:17:00.0" count="6" tclass="0x030200"/>
      </gpu>
    </pci>
  </cpu>
</system>
`

func read(t *testing.T, text string) *cluster.Fragment {
	t.Helper()
	f, err := Read("in", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, nt := range f.Types {
		if err := nt.Check(); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// describe prints a type in a line a device and a link, for comparison.
func describe(nt *cluster.NodeType) string {
	var out strings.Builder
	for _, d := range nt.Devices {
		parent := "-"
		if d.Parent >= 0 {
			parent = nt.Devices[d.Parent].Name
		}
		fmt.Fprintf(&out, "%s<%s %s\n", d.Name, parent, d.PCI)
	}
	for _, l := range nt.Links {
		arrow := "="
		if l.OneWay {
			arrow = ">"
		}
		fmt.Fprintf(&out, "%s%s%s %s %d %g\n", nt.Devices[l.A].Name, arrow, nt.Devices[l.B].Name, l.Kind, l.Lanes, l.GTs)
	}
	return out.String()
}

func TestRead(t *testing.T) {
	f := read(t, pair)
	if len(f.Warnings) > 0 {
		t.Error(f.Warnings)
	}
	want := `numa0<- 
root0<numa0 
root1<numa0 
root2<numa0 
gpu0<root0 0000:17:00.0
gpu1<root2 0000:65:00.0
nic0<root1 0000:4b:00.0
numa0=root0 on-die 0 0
numa0=root1 on-die 0 0
numa0=root2 on-die 0 0
root0=gpu0 pcie 16 32
root2=gpu1 pcie 16 32
root1=nic0 pcie 16 32
gpu0=gpu1 nvlink 6 0
`
	nt := f.Types[0]
	if got := describe(nt); got != want {
		t.Errorf("got\n%s", got)
	}
	gpu, nic, cpu := &nt.Devices[4], &nt.Devices[6], nt.Devices[0].CPU
	if gpu.GPU.SM != 90 || gpu.GPU.GDR != cluster.Yes || gpu.GPU.Vendor != "nvidia" || gpu.PCIID.Device != "2330" ||
		gpu.PCIID.Class != "030200" {
		t.Errorf("gpu %+v %+v", *gpu.GPU, *gpu.PCIID)
	}
	if cpu.Cores != "0-15" || cpu.Model != 143 || cpu.Vendor != "GenuineIntel" {
		t.Errorf("cpu %+v", *cpu)
	}
	p := nic.NIC.Ports[0]
	if nic.Label != "mlx5_0" || p.Label != "mlx5_0" || p.Rate.Value.Gbps() != 400 || p.Rate.Origin != cluster.Read ||
		p.Num != 1 ||
		p.GUID != "0xb83fd203002aa358" || nic.NIC.GDR != cluster.Yes || nic.NIC.Reduction != cluster.Yes ||
		nic.NIC.Kind != cluster.InfiniBand {
		t.Errorf("nic %+v %+v", nic, p)
	}
	if nt.Tree != cluster.Read || nt.Trays != 0 {
		t.Errorf("tree %v trays %d", nt.Tree, nt.Trays)
	}
}

// TestReadAround holds the reader to finding the same topology whatever is
// around it or between its lines.
func TestReadAround(t *testing.T) {
	want := describe(read(t, pair).Types[0])
	prefixed := func(p string) string {
		return "starting\n" + p + strings.ReplaceAll(strings.TrimSpace(pair), "\n", "\n"+p) + "\ndone <0> \n"
	}
	for name, text := range map[string]string{
		"log":         "NCCL INFO a < b\n<b>x</b>\n" + pair + "NCCL INFO done\n",
		"mpirun":      prefixed("[1,0]<stdout>:"),
		"srun":        prefixed(" 0: "),
		"markdown":    prefixed("    "),
		"crlf":        strings.ReplaceAll(pair, "\n", "\r\n"),
		"one line":    strings.ReplaceAll(pair, "\n", ""),
		"comment":     "<!--\n <system version=\"9\">\n-->\n" + pair,
		"declaration": "<?xml version=\"1.0\"?>\n<!DOCTYPE system>\n" + pair,
		"entities":    `<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;">]>` + "\n" + pair,
		"quotes":      strings.ReplaceAll(pair, `"`, `'`),
		"colour":      strings.ReplaceAll(pair, "    <pci", "\x1b[1m    <pci"),
		"unknown": strings.Replace(pair, "    <pci",
			"    <future a=\"1\"><pci busid=\"0000:99:00.0\" class=\"0x030200\"/></future>\n    <pci", 1),
		"unclosed": strings.Replace(pair, "</nic>", "", 1),
	} {
		if !Match([]byte(text)) {
			t.Errorf("%s: not matched", name)
		}
		f := read(t, text)
		if len(f.Types) != 1 || describe(f.Types[0]) != want {
			t.Errorf("%s: %d types:\n%s", name, len(f.Types), describe(f.Types[0]))
		}
		if warn := name == "unknown" || name == "unclosed"; warn != (len(f.Warnings) == 1) {
			t.Errorf("%s: warnings %v", name, f.Warnings)
		}
	}
}

func TestReadTruncated(t *testing.T) {
	for at := range len(pair) {
		f, err := Read("in", strings.NewReader(pair[:at]))
		if err != nil {
			continue
		}
		if at < strings.Index(pair, "</system>") && len(f.Warnings) == 0 {
			t.Fatalf("cut at %d of %d: no warning", at, len(pair))
		}
		if err := f.Types[0].Check(); err != nil {
			t.Fatalf("cut at %d: %v", at, err)
		}
	}
	f := read(t, pair[:strings.Index(pair, "      </nic>")])
	if n := f.Types[0].Count(cluster.NIC); n != 1 || !has(f, "in:10: the topology ends inside <nic>: cut off") {
		t.Errorf("%d NICs, %v", n, f.Warnings)
	}
	// The second dump is whole: the first is reported and kept apart.
	f = read(t, strings.Replace(pair[:400], "0x1f", "0x2e", 1)+"\n"+pair)
	if len(f.Types) != 2 || !has(f, "cut off") {
		t.Errorf("%d types, %v", len(f.Types), f.Warnings)
	}
}

func has(f *cluster.Fragment, text string) bool {
	return slices.ContainsFunc(f.Warnings, func(w cluster.Warning) bool { return strings.Contains(w.String(), text) })
}

func TestReadRefuses(t *testing.T) {
	deep := "<system version=\"1\"><cpu numaid=\"0\">" + strings.Repeat("<pci busid=\"0000:01:00.0\">", 300)
	for _, c := range []struct{ text, want string }{
		{"", "in:1: no <system> element"},
		{"no tags", "no <system> element"},
		{"<graphs version=\"1\"><graph/></graphs>", "no <system> element"},
		{"<system version=\"1\"/>", "in:1: <system> holds no <cpu>"},
		{"\n<system version=\"1\">\n</system>", "in:2: <system> holds no <cpu>"},
		{deep, "nested more than 256 deep"},
		{"\x00\x01<sys\xff", "no <system> element"},
	} {
		f, err := Read("in", strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: %v %v; want %s", c.text, f, err, c.want)
		}
	}
}

// TestReadWarns holds the reader to naming what is odd and keeping the rest.
func TestReadWarns(t *testing.T) {
	swap := func(old, new string) string {
		if !strings.Contains(pair, old) {
			t.Fatalf("%q is not in the sample", old)
		}
		return strings.Replace(pair, old, new, 1)
	}
	for _, c := range []struct{ name, text, want string }{
		{
			"one way", swap(`target="0000:17:00.0" count="6"`, `target="0000:17:00.0" count="1"`),
			"gpu0 has 6 NVLinks to gpu1, gpu1 has 1 to gpu0: a ring is limited by the 1",
		},
		{
			"none back", swap(`        <nvlink target="0000:17:00.0" count="6" tclass="0x030200"/>`, ``),
			"gpu0 has 6 NVLinks to gpu1, gpu1 has 0 to gpu0",
		},
		{"itself", swap(`target="0000:65:00.0"`, `target="0000:17:00.0"`), "gpu0: names itself as the target of 6 NVLinks"},
		{
			"not there", swap(`target="0000:65:00.0"`, `target="0000:99:00.0"`),
			"6 NVLinks to 0000:99:00.0, which is no GPU of this file",
		},
		{"no count", swap(`count="6"`, `count=""`), `nvlink count ""`},
		{"negative count", swap(`count="6"`, `count="-6"`), `nvlink count "-6"`},
		{"speed", swap(`speed="400000"`, `speed="-1"`), `speed "-1" Mb/s`},
		{"zero speed", swap(`speed="400000"`, `speed="0"`), `speed "0" Mb/s`},
		{"busid", swap(`busid="0000:4b:00.0"`, `busid="zz"`), `busid "zz"`},
		{"twice", swap(`busid="0000:4b:00.0"`, `busid="0000:17:00.0"`), "0000:17:00.0 is there twice"},
		{"numaid", swap(`numaid="0"`, `numaid="x"`), `numaid "x"`},
		{"affinity", swap(`affinity="00000000,0000ffff"`, `affinity="0-15"`), `affinity "0-15"`},
		{
			"suffix", swap(`32.0 GT/s PCIe`, `32.0 GT/s`),
			`NCCL does not know link_speed "32.0 GT/s" and counts the link as 8 GT/s; write "32.0 GT/s PCIe"`,
		},
		{"link speed", swap(`32.0 GT/s PCIe`, `fast`), `link_speed "fast"`},
		{"version", swap(`version="1"`, `version="7"`), `system version "7"`},
		{"nesting", swap(`<net name`, `<gpu dev="5"/><net name`), "<gpu> inside <nic> is not part of the format"},
		{"broken", swap(`speed="400000"`, "speed=\"4000\n"), "<net is not a whole tag"},
		{
			"nothing known", swap(`<pci busid="0000:17`, `<pci busid="0000:11:00.0"/><pci busid="0000:17`),
			"1 pci elements have neither a class nor a gpu or nic inside",
		},
	} {
		f := read(t, c.text)
		if !has(f, c.want) {
			t.Errorf("%s: %v; want %s", c.name, f.Warnings, c.want)
		}
		if n := f.Types[0].Count(cluster.GPU); n != 2 {
			t.Errorf("%s: %d GPUs", c.name, n)
		}
	}
}

func TestReadNVSwitch(t *testing.T) {
	text := strings.ReplaceAll(pair, `<nvlink target="0000:65:00.0" count="6" tclass="0x030200"/>`,
		`<nvlink target="0000:05:00.0" count="4" tclass="0x068000"/><nvlink target="0000:06:00.0" count="5" tclass="0x068000"/>`)
	text = strings.ReplaceAll(text, `target="0000:17:00.0" count="6" tclass="0x030200"`,
		`target="fffffff:ffff:ff" count="9" tclass="0x068000"`)
	text = strings.Replace(text, `    <pci busid="0000:4b`,
		`    <pci busid="0000:05:00.0" class="0x068000"/>`+"\n"+`    <pci busid="0000:4b`, 1)
	nt := read(t, text).Types[0]
	if nt.Count(cluster.NVSwitch) != 1 {
		t.Fatalf("%d NVSwitches", nt.Count(cluster.NVSwitch))
	}
	if got := nt.Matrix().Class[0][1]; got != "NV9" {
		t.Errorf("gpu0 to gpu1: %s", got)
	}
	roundTrip(t, nt)
}

// TestReadTrays reads two hosts of one NVLink domain (synthetic, as a dump of
// MNNVL has them).
func TestReadTrays(t *testing.T) {
	var text strings.Builder
	text.WriteString("<system version=\"1\">\n")
	for h := range 2 {
		for n := range 2 {
			fmt.
				Fprintf(&text, `<cpu host_hash="0x%x" numaid="%d" arch="arm64"><pci busid="000%d:01:00.0" class="0x030200"><gpu dev="%d" sm="100">`+
					`<nvlink target="fffffff:ffff:ff" count="18" tclass="0x068000"/><c2c bw="44712" count="10"/></gpu></pci></cpu>`+
					"\n", h+7, n, n, n)
		}
	}
	text.WriteString("</system>")
	nt := read(t, text.String()).Types[0]
	m := nt.Matrix()
	if nt.Trays != 2 || nt.Count(cluster.GPU) != 4 || nt.Count(cluster.NUMA) != 4 || m.Class[0][3] != "NV18" {
		t.Fatalf("trays %d:\n%s%v", nt.Trays, describe(nt), m)
	}
	smp, c2c := 0, 0
	for _, l := range nt.Links {
		switch l.Kind {
		case cluster.SMP:
			smp++
		case cluster.C2C:
			c2c++
			if l.Lanes != 10 || l.Rate.Value.GBps() != 447.12 {
				t.Errorf("c2c %+v", l)
			}
		}
	}
	if smp != 2 || c2c != 4 || nt.Devices[nt.ByName("gpu2")].Tray != 1 {
		t.Errorf("%d SMP and %d C2C links\n%s", smp, c2c, describe(nt))
	}
	if err := writeOne(&strings.Builder{}, nt); err == nil || !strings.Contains(err.Error(), "spans 2 hosts") {
		t.Errorf("a node of two hosts was written: %v", err)
	}
	for i := range 2 {
		one := read(t, write(t, nt.Tray(i))).Types[0]
		if one.Count(cluster.GPU) != 2 || one.Count(cluster.NUMA) != 2 || one.Trays != 0 {
			t.Errorf("tray %d:\n%s", i, describe(one))
		}
		roundTrip(t, one)
	}
}

// GPUs that boards join by NVLink, in a dump without any and in what people wrote for NCCL to complete, without gpu
// elements: PCIe's paths are not given without a word.
func TestReadModulesWithoutLinks(t *testing.T) {
	bare := nvlinkElement.ReplaceAllString(pair, "")
	if f := read(t, bare); len(f.Warnings) != 1 ||
		!strings.Contains(f.Warnings[0].Text, "boards join NVIDIA H100 80GB HBM3 "+
			"by NVLink, and the file shows no such link, so that these are PCIe's paths: check that they are up") {
		t.Errorf("%v", f.Warnings)
	}
	template := read(t, gpuElement.ReplaceAllString(bare, "")).Warnings
	if len(template) != 1 || !strings.Contains(template[0].Text, "PCIe's paths: NCCL adds those that it finds") {
		t.Errorf("template: %v", template)
	}
	for name, text := range map[string]string{"with links": pair, "cards": strings.ReplaceAll(bare, "0x2330", "0x2331")} {
		if f := read(t, text); strings.Contains(fmt.Sprint(f.Warnings), "boards join") {
			t.Errorf("%s: %v", name, f.Warnings)
		}
	}
}

var (
	nvlinkElement = regexp.MustCompile(`<nvlink [^>]*/>`)
	gpuElement    = regexp.MustCompile(`(?s)<gpu .*?</gpu>`)
)

// NCCL lists every interface with an address; those of bridges and tunnels are no NICs.
func TestReadVirtual(t *testing.T) {
	f, err := Read("x", strings.NewReader(
		`<system version="1"><cpu numaid="0"><nic><net name="tunl0" dev="0" speed="10000"/>`+
			`<net name="br-0a1b" dev="1"/><net name="eth0" dev="2"/></nic></cpu></system>`))
	if err != nil {
		t.Fatal(err)
	}
	if nics := f.Types[0].Of(cluster.NIC); len(nics) != 1 || f.Types[0].Devices[nics[0]].Label != "eth0" ||
		len(f.Warnings) != 1 || !strings.HasSuffix(f.Warnings[0].Text, "tunl0 (a tunnel), br-0a1b (a Docker bridge)") {
		t.Errorf("%+v, %v", f.Types[0].Devices, f.Warnings)
	}
}

func TestReadRootBus(t *testing.T) {
	text := strings.NewReplacer("0000:17:00.0", "0000:00:06.0", "0000:65:00.0", "0000:00:07.0").Replace(pair)
	nt := read(t, text).Types[0]
	if got := nt.Matrix().Class[0][2]; got != "NODE" {
		t.Errorf("gpu0 to nic0: %s", got)
	}
	if a, b := nt.Devices[nt.ByName("gpu0")].Parent, nt.Devices[nt.ByName("gpu1")].Parent; a != b {
		t.Errorf("devices of one root bus are below %d and %d", a, b)
	}
	roundTrip(t, nt)
}

func TestReadSwitchLinks(t *testing.T) {
	text := `<system version="1"><cpu numaid="0">
	<pci busid="0000:01:00.0" class="0x060400"><pcilink target="0000:02:00.0"/></pci>
	<pci busid="0000:02:00.0" class="0x060400"><pcilink target="0000:01:00.0"/><pcilink target="0000:03:00.0"/></pci>
	</cpu></system>`
	f := read(t, text)
	nt := f.Types[0]
	if got := describe(nt); !strings.Contains(got, "pci0=pci1 direct 0 0") || !has(f, "pcilink to 0000:03:00.0") {
		t.Errorf("got\n%s%v", got, f.Warnings)
	}
	roundTrip(t, nt)
}

func TestReadRCCL(t *testing.T) {
	text := `<system version="2"><cpu numaid="0">
	<pci busid="0000:c1:00.0" class="0x038000"><gpu dev="0" sm="104" gcn="910" arch="38911" rank="0" gdr="0"><xgmi target="0000:c5:00.0" count="4" tclass="0x038000"/></gpu></pci>
	<pci busid="0000:c5:00.0" class="0x120000"><gpu dev="1" sm="304" gcn="gfx942" rank="1"><xgmi target="0000:c1:00.0" count="4" tclass="0x038000"/></gpu></pci>
	</cpu></system>`
	f := read(t, text)
	nt := f.Types[0]
	a, b := nt.Devices[nt.ByName("gpu0")].GPU, nt.Devices[nt.ByName("gpu1")].GPU
	if a.Arch != "gfx90a" || b.Arch != "gfx942" || a.SM != 0 || a.Vendor != "amd" || a.GDR != cluster.No ||
		b.GDR != cluster.Maybe {
		t.Errorf("%+v %+v", *a, *b)
	}
	if f.Format != formatRCCL || nt.Matrix().Class[0][1] != "XGMI" || nt.Links[len(nt.Links)-1].Lanes != 4 {
		t.Errorf("%s\n%s", f.Format, describe(nt))
	}
	roundTrip(t, nt)
}

func TestReadManyElements(t *testing.T) {
	var text strings.Builder
	text.WriteString("<system version=\"1\"><cpu numaid=\"0\">\n")
	for i := range 40000 {
		fmt.Fprintf(&text, "<pci busid=\"%04x:01:00.0\" class=\"0x030200\"/>\n", i)
	}
	f := read(t, text.String())
	if n := f.Types[0].Count(cluster.GPU); n >= 40000 || n < 8000 || !has(f, "the rest is left out") {
		t.Errorf("%d GPUs, %v", n, f.Warnings)
	}
	if len(f.Warnings) > 501 {
		t.Errorf("%d warnings", len(f.Warnings))
	}
}
