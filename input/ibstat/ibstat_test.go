package ibstat

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/internal/test/readertest"
	"busbar.dev/unit"
)

var formats = map[string]readertest.Reader{
	"ibstat":      {Match: Stat.Match, Read: Stat.Read},
	"ibstatus":    {Match: Status.Match, Read: Status.Read},
	"ibv_devinfo": {Match: Devinfo.Match, Read: Devinfo.Read},
	"rdma link":   {Match: RDMA.Match, Read: RDMA.Read},
}

func read(t *testing.T, format, text string) *cluster.Fragment {
	t.Helper()
	f := formats[format].Text(t, text)
	check(t, f)
	return f
}

func check(t *testing.T, f *cluster.Fragment) {
	t.Helper()
	if len(f.Hosts) != len(f.Types) || len(f.Hosts) == 0 {
		t.Errorf("%d hosts, %d types", len(f.Hosts), len(f.Types))
	}
	readertest.Check(t, f)
	for _, ty := range f.Types {
		for _, d := range ty.Devices {
			for _, p := range d.NIC.Ports {
				if p.Num < 1 {
					t.Errorf("%s: %+v", d.Label, p)
				}
			}
		}
	}
}

func TestEverySampleMatchesItsFormatOnly(t *testing.T) {
	for _, e := range corpus.Index(t) {
		data := corpus.Open(t, e.File)
		for name, f := range formats {
			if got := f.Match(data); got != (name == e.Format) {
				t.Errorf("%s (%s) taken for %s: %v", e.File, e.Format, name, got)
			}
		}
	}
}

func TestIbstatFacts(t *testing.T) {
	for _, e := range corpus.Index(t, "ibstat") {
		f, err := Stat.Read(e.File, bytes.NewReader(corpus.Open(t, e.File)))
		if err != nil {
			t.Fatal(err)
		}
		check(t, f)
		var cas []string
		states, rates, layers, ports := map[string]int{}, map[string]int{}, map[string]int{}, 0
		for _, d := range f.Types[0].Devices {
			cas = append(cas, d.Label)
			for _, p := range d.NIC.Ports {
				ports++
				states[map[cluster.State]string{cluster.Up: "Active", cluster.Down: "Down"}[p.State]]++
				rates[strconv.FormatFloat(p.Rate.Value.Gbps(), 'g', -1, 64)]++
				layers[p.Layer]++
			}
			if !strings.HasPrefix(d.UUID, "0x") || d.NIC.Firmware == "" || !d.Model.Known() {
				t.Errorf("%s: %+v", e.File, d)
			}
		}
		var want []string
		for _, c := range e.Facts["cas"].([]any) {
			want = append(want, c.(string))
		}
		if !slices.Equal(cas, want) || ports != int(e.Facts["ports"].(float64)) {
			t.Errorf("%s: adapters %q with %d ports", e.File, cas, ports)
		}
		sameCounts(t, e.File, "states", states, e.Facts["states"])
		sameCounts(t, e.File, "rates", rates, e.Facts["rates"])
		sameCounts(t, e.File, "link_layers", layers, e.Facts["link_layers"])
		for _, w := range f.Warnings {
			if w.ID != "subnets-differ" {
				t.Errorf("%s: %v", e.File, w)
			}
		}
		if f.Hosts[0].Name != "" {
			t.Errorf("%s: %+v", e.File, f.Hosts)
		}
	}
}

func sameCounts(t *testing.T, file, what string, got map[string]int, want any) {
	t.Helper()
	n := 0
	for k, v := range want.(map[string]any) {
		if k == "IB" {
			k = "InfiniBand" // written in full by the reader
		}
		if got[k] != int(v.(float64)) {
			t.Errorf("%s: %s of %q: %d; want %v", file, what, k, got[k], v)
		}
		n++
	}
	if len(got) != n {
		t.Errorf("%s: %s %v; want %v", file, what, got, want)
	}
}

func TestNERSC(t *testing.T) {
	data := corpus.Open(t, "ib/ibstat-nersc-9hca.txt")
	f := read(t, "ibstat", string(data))
	d := f.Types[0].Devices[1]
	if d.Label != "mlx5_0" || d.UUID != "0x506b4b0300f9f8ea" || d.Model.Value != "MT4119" ||
		d.NIC.Firmware != "16.24.1000" || d.NIC.Kind != cluster.InfiniBand {
		t.Errorf("%+v", d)
	}
	if p := d.NIC.Ports[0]; p.LID != 59 || p.GUID != "0x506b4b0300f9f8ea" || p.State != cluster.Up ||
		p.Rate.Value != 100*unit.Gbps || p.Rate.Source != "ibstat" {
		t.Errorf("%+v", p)
	}
	if k := f.Types[0].Devices[4].NIC.Kind; k != cluster.RoCE {
		t.Errorf("mlx5_3 is %s", k)
	}
	// The same machine twice in a log is one machine; with other GUIDs it is two.
	if f := read(t, "ibstat", string(data)+string(data)); len(f.Hosts) != 1 {
		t.Errorf("%d hosts", len(f.Hosts))
	}
	if f := read(t, "ibstat", string(data)+strings.ReplaceAll(string(data), "0x506b", "0x506c")); len(f.Hosts) != 2 ||
		len(f.Types[1].Devices) != 9 {
		t.Errorf("%d hosts", len(f.Hosts))
	}
}

func TestMixedSamples(t *testing.T) {
	f := read(t, "ibv_devinfo", string(corpus.Open(t, "ib/ibv_devinfo-mlx4-2port-mixed.txt")))
	d := f.Types[0].Devices[0]
	if d.Label != "mlx4_0" || d.UUID != "0xf45214030091ba20" || d.Model.Value != "MT4099" ||
		d.NIC.Kind != cluster.InfiniBand || d.NIC.Firmware != "2.42.5000" || len(d.NIC.Ports) != 2 {
		t.Fatalf("%+v", d)
	}
	if p := d.NIC.Ports[0]; p.State != cluster.Up || p.Layer != "InfiniBand" || p.LID != 3 || p.MTU.Value != 4096 ||
		p.Rate.Known() {
		t.Errorf("%+v", p)
	}
	if p := d.NIC.Ports[1]; p.State != cluster.Down || p.Layer != "Ethernet" || p.MTU.Value != 1024 {
		t.Errorf("%+v", p)
	}

	f = read(t, "ibstatus", string(corpus.Open(t, "ib/ibstatus-mlx4-2port.txt")))
	d = f.Types[0].Devices[0]
	if len(f.Types[0].Devices) != 1 || d.Label != "mlx4_0" || len(d.NIC.Ports) != 2 || d.NIC.Kind != cluster.InfiniBand {
		t.Fatalf("%+v", d)
	}
	if p := d.NIC.Ports[0]; p.State != cluster.Up || p.Rate.Value != 40*unit.Gbps || p.Speed != "4xQDR" || p.LID != 10 ||
		p.GUID != "0xf45214030091ba11" {
		t.Errorf("%+v", p)
	}
	if p := d.NIC.Ports[1]; p.State != cluster.Down || p.Rate.Known() || p.Speed != "" || p.Layer != "Ethernet" {
		t.Errorf("%+v", p)
	}
}

// Synthetic, in the layout of rdma-core 44.
const verbose = `hca_id:	mlx5_10
	transport:			InfiniBand (0)
	fw_ver:				28.39.1002
	node_guid:			e09d:7303:007a:4bd8
	vendor_id:			0x02c9
	vendor_part_id:			4129
	phys_port_cnt:			1
		port:	1
			state:			PORT_ACTIVE (4)
			max_mtu:		4096 (5)
			active_mtu:		4096 (5)
			sm_lid:			1
			port_lid:		647
			link_layer:		InfiniBand
			active_width:		4X (2)
			active_speed:		100.0 Gbps (128)
			phys_state:		LINK_UP (5)
			GID[  0]:		fe80:0000:0000:0000:e09d:7303:007a:4bd8

hca_id:	mlx5_2
	phys_port_cnt:			2
		port:	1
			state:			PORT_INIT (2)
			active_width:		4X (2)
			active_speed:		-1.0 Gbps (0)

hca_id:	rdmap0s6
	transport:			unspecified (4)
	vendor_id:			0x1d0f
	phys_port_cnt:			1
		port:	1
			state:			PORT_ACTIVE (4)
			link_layer:		Unspecified
`

func TestVerboseDevinfo(t *testing.T) {
	for name, text := range map[string]string{
		"plain":   verbose,
		"srun -l": "0: " + strings.ReplaceAll(verbose, "\n", "\n0: "),
		"mpirun":  "[1,0]<stdout>:" + strings.ReplaceAll(verbose, "\n", "\r\n[1,0]<stdout>:"),
		"prompt":  "$ ibv_devinfo -v\n" + verbose + "$ exit\n",
	} {
		f := read(t, "ibv_devinfo", text)
		d := f.Types[0].Devices
		if len(d) != 3 || d[0].Label != "mlx5_2" || d[1].Label != "mlx5_10" || d[2].NIC.Kind != cluster.EFA {
			t.Fatalf("%s: %+v", name, d)
		}
		if p := d[1].NIC.Ports[0]; p.Rate.Value != 400*unit.Gbps || p.GUID != "0xe09d7303007a4bd8" || p.LID != 647 ||
			d[1].Model.Value != "MT4129" {
			t.Errorf("%s: %+v", name, p)
		}
		if p := d[0].NIC.Ports[0]; p.State != cluster.Init || p.Rate.Known() {
			t.Errorf("%s: %+v", name, p)
		}
		if len(f.Warnings) != 1 || f.Warnings[0].Where != "mlx5_2" ||
			!strings.Contains(f.Warnings[0].Text, "says it has 2 ports and shows 1") {
			t.Errorf("%s: %v", name, f.Warnings)
		}
	}
}

func TestOnePort(t *testing.T) {
	f := read(t, "ibstat", "CA: 'mlx5_0'\nPort 1:\nState: Initializing\nPhysical state: LinkUp\nRate: 40 (FDR10)\nBase "+
		"lid: 65535\nLink layer: InfiniBand\n")
	if p := f.Types[0].Devices[0].NIC.Ports[0]; p.State != cluster.Init || p.Rate.Value != 40*unit.Gbps ||
		p.Layer != "InfiniBand" {
		t.Errorf("%+v", p)
	}
	f = read(t, "ibstat", "CA 'hfi1_0'\n\tPort 1:\n\t\tState: Down\n\t\tRate: 10\n\tPort 999:\n\t\tRate: 10\n\tPort 2:\n"+
		"\t\tRate: -5\n\t\tState: ???\n")
	d := f.Types[0].Devices[0]
	if p := d.NIC.Ports; len(p) != 2 || p[0].Rate.Known() || p[1].Rate.Known() || p[1].State != cluster.StateUnknown ||
		d.NIC.Kind != cluster.OmniPath {
		t.Errorf("%+v", d.NIC)
	}
}

// NICs of one machine that answer to several subnet managers are on fabrics apart; a port that is down or has no LID
// answers to none.
func TestSubnetManagers(t *testing.T) {
	port := func(name, state, lid, manager string) string {
		return "CA '" + name + "'\n\tPort 1:\n\t\tState: " + state + "\n\t\tBase lid: " + lid + "\n\t\tSM lid: " + manager +
			"\n"
	}
	same := port("a0", "Active", "3", "1") + port("a1", "Active", "4", "1") + port("a2", "Down", "5", "7") +
		port("a3", "Initializing", "0", "8")
	if f := read(t, "ibstat", same); len(f.Warnings) > 0 {
		t.Errorf("%v", f.Warnings)
	}
	f := read(t, "ibstat", same+port("a4", "Active", "9", "0x2c"))
	if len(f.Warnings) != 1 || f.Warnings[0].ID != "subnets-differ" ||
		!strings.Contains(f.Warnings[0].Text, "(LID 1: a[0-1]; LID 44: a4)") {
		t.Errorf("%v", f.Warnings)
	}
}

// Made up, in the layout of iproute2 6 and, in the last line, 4.
const links = `link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 12 sm_lid 1 lmc 0 state ACTIVE physical_state LINK_UP netdev ib0
link mlx5_1/1: state ACTIVE physical_state LINK_UP netdev ens1f0np0
link mlx5_2/1 state DOWN physical_state DISABLED netdev ens1f1np1
2/1: mlx5_3/1: subnet_prefix fe80:0000:0000:0000 lid 13 sm_lid 9 lmc 0 state INIT physical_state LINK_UP
`

func TestRDMALink(t *testing.T) {
	f := read(t, "rdma link", "$ rdma link\n"+links)
	d := f.Types[0].Devices
	if len(d) != 4 || d[0].NIC.Kind != cluster.InfiniBand || d[1].NIC.Kind != cluster.RoCE || len(f.Warnings) != 0 {
		t.Fatalf("%+v, %v", d, f.Warnings)
	}
	for i, state := range []cluster.State{cluster.Up, cluster.Up, cluster.Down, cluster.Init} {
		if p := d[i].NIC.Ports[0]; p.State != state || p.Num != 1 || p.LID != []int{12, 0, 0, 13}[i] {
			t.Errorf("%s: %+v", d[i].Label, p)
		}
	}
	f = read(t, "rdma link", links+strings.Replace(links[:strings.Index(links, "\n")+1], "mlx5_0/1", "mlx5_9/1", 1)+
		"link mlx5_8/1 subnet_prefix fe80:0000:0000:0000 lid 3 sm_lid 77 lmc 0 state ACTIVE physical_state LINK_UP\n")
	if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].Text, "LID 1: mlx5_[0,9]; LID 77: mlx5_8") {
		t.Errorf("%v", f.Warnings)
	}
}

func TestRefuses(t *testing.T) {
	for format, f := range formats {
		for _, text := range []string{
			"", "CA type: x", "CA ''", "CA 'a b'", "the CA 'mlx5_0' is", "hca_id:", "hca_id:\tno such\n",
			"Infiniband device 'x' port 0 status:", strings.Repeat("CA '", 1000), "\x00\xff",
		} {
			if f.Match([]byte(text)) {
				t.Errorf("%q taken for %s", text, format)
			}
			if _, err := f.Read("log", strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), "log: no ") {
				t.Errorf("%s: %q: %v", format, text, err)
			}
		}
	}
	var b strings.Builder
	for range maxCards + 2 {
		b.WriteString("CA 'a'\n")
	}
	if _, err := Stat.Read("log", strings.NewReader(b.String())); err == nil ||
		!strings.Contains(err.Error(), "more than 65536 adapters") {
		t.Errorf("%v", err)
	}
}

func FuzzRead(f *testing.F) {
	formats["ibstat"].Fuzz(f, check, "CA 'mlx5_0'\n\tCA type: MT4119\n\tNumber of ports: 1\n\tNode GUID: "+
		"0x506b4b0300f9f8ea\n\tPort 1:\n\t\tState: Active\n\t\tRate: 100\n\t\tBase lid: 59\n\t\tPort GUID: "+
		"0x506b4b0300f9f8ea\n\t\tLink layer: InfiniBand\nCA 'mlx5_0'\n\tNode GUID: 0x506b4b0300f9f8eb\n")
}

func FuzzReadStatus(f *testing.F) {
	formats["ibstatus"].Fuzz(f, check, "Infiniband device 'mlx4_0' port 1 status:\n\tdefault gid:\t "+
		"fe80:0000:0000:0000:f452:1403:0091:ba11\n\tbase lid:\t 0xa\n\tstate:\t\t 4: ACTIVE\n\trate:\t\t 40 Gb/sec (4X "+
		"QDR)\n\tlink_layer:\t InfiniBand\nInfiniband device 'mlx4_0' port 2 status:\n")
}

func FuzzReadDevinfo(f *testing.F) { formats["ibv_devinfo"].Fuzz(f, check, verbose) }

func FuzzReadRDMA(f *testing.F) { formats["rdma link"].Fuzz(f, check, links) }
