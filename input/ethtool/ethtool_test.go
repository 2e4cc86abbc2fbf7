package ethtool

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/internal/test/readertest"
	"busbar.dev/unit"
)

// whole is the reader of all that ethtool prints.
var whole = readertest.Reader{Match: Match, Read: Read}

func read(t *testing.T, text string) *cluster.Fragment {
	t.Helper()
	f := whole.Text(t, text)
	check(t, f)
	return f
}

func check(t *testing.T, f *cluster.Fragment) {
	t.Helper()
	if len(f.Types) != 1 || len(f.Hosts) != 1 || f.Hosts[0].Name != "" {
		t.Errorf("%d types, hosts %+v", len(f.Types), f.Hosts)
	}
}

func TestEverySampleMatchesItsFormatOnly(t *testing.T) {
	for _, e := range corpus.Index(t) {
		if got := Match(corpus.Open(t, e.File)); got != (e.Format == "ethtool") {
			t.Errorf("%s (%s) taken for ethtool: %v", e.File, e.Format, got)
		}
	}
}

func TestSamples(t *testing.T) {
	want := map[string]func(d cluster.Device, p cluster.Port) bool{
		"ethtool/ethtool-eth-1g.txt": func(d cluster.Device, p cluster.Port) bool {
			return d.Label == "eth1" && p.Rate.Value == 1*unit.Gbps && p.Max.Value == 1*unit.Gbps && p.State == cluster.Up &&
				d.NIC.Kind == cluster.Ethernet
		},
		"ethtool/ethtool-variant.txt": func(d cluster.Device, p cluster.Port) bool {
			return d.Label == "eth1" && !p.Rate.Known() && !p.Max.Known() && p.State == cluster.StateUnknown
		},
		"ethtool/ethtool-i.txt": func(d cluster.Device, p cluster.Port) bool {
			return d.Label == "" && d.PCI == "0000:00:03.0" && d.NIC.Driver == "virtio_net" && d.NIC.Firmware == ""
		},
		"ethtool/ethtool-S.txt": func(d cluster.Device, p cluster.Port) bool {
			return d.Label == "" && len(p.Counters) == 0 // all error counters are zero
		},
	}
	files := corpus.Index(t, "ethtool")
	if len(files) != len(want) {
		t.Errorf("%d samples; %d are held", len(files), len(want))
	}
	for _, e := range files {
		f := read(t, string(corpus.Open(t, e.File)))
		if n := len(f.Types[0].Devices); n != 1 {
			t.Fatalf("%s: %d NICs", e.File, n)
		}
		if d := f.Types[0].Devices[0]; !want[e.File](d, d.NIC.Ports[0]) {
			t.Errorf("%s: %+v, %+v", e.File, d, d.NIC)
		}
	}
}

// Synthetic, in the layout of ethtool 6.1 with the driver mlx5_core.
const settingsText = `Settings for ens1f0np0:
	Supported ports: [ Backplane ]
	Supported link modes:   1000baseKX/Full
	                        100000baseSR4/Full
	                        200000baseCR4/Full
	Supported pause frame use: Symmetric
	Advertised link modes:  400000baseCR8/Full
	Speed: 100000Mb/s
	Lanes: 4
	Duplex: Full
	Link detected: yes
`

const infoText = `driver: mlx5_core
version: 5.8-1.1.2
firmware-version: 22.35.2000 (MT_0000000436)
expansion-rom-version: 
bus-info: 0000:3b:00.0
supports-statistics: yes
`

const statsText = `NIC statistics:
     rx_packets: 912398
     rx_bytes: 96506134
     rx_discards_phy: 12
     rx_out_of_buffer: 3
     tx_pause_ctrl_phy: 77
     rx_err_lane_0_phy: 5
     rx_corrected_bits_phy: 123456
     link_down_events_phy: 2
     [0]: rx_drops: 4
     rx_interrupts: 99
     rx_dropped_bytes: 9
     rx_crc_errors_phy: 0
     rx_crc_errors_long: 99999999999999999999999
`

func TestOneInterface(t *testing.T) {
	counters := map[string]uint64{
		"rx_discards_phy": 12, "rx_out_of_buffer": 3, "tx_pause_ctrl_phy": 77, "link_down_events_phy": 2, "[0]: rx_drops": 4,
	}
	all := settingsText + infoText + statsText
	for name, text := range map[string]string{
		"one after another": all,
		"prompts": "[root@n1 ~]# ethtool -i ens1f0np0\n" + infoText + "$ sudo ethtool -S ens1f0np0\n" + statsText +
			"$ ethtool ens1f0np0\n" + settingsText + "$ uptime\n",
		"CR LF":    strings.ReplaceAll(all, "\n", "\r\n"),
		"srun -l":  "3: " + strings.ReplaceAll(all, "\n", "\n3: "),
		"indented": "    " + strings.ReplaceAll(all, "\n", "\n    "),
	} {
		f := read(t, text)
		if len(f.Types[0].Devices) != 1 || len(f.Warnings) != 0 {
			t.Errorf("%s: %d NICs, %v", name, len(f.Types[0].Devices), f.Warnings)
			continue
		}
		d := f.Types[0].Devices[0]
		p := d.NIC.Ports[0]
		if d.Label != "ens1f0np0" || d.PCI != "0000:3b:00.0" || d.NIC.Driver != "mlx5_core" ||
			d.NIC.Firmware != "22.35.2000" {
			t.Errorf("%s: %+v, %+v", name, d, d.NIC)
		}
		if p.Rate.Value != 100*unit.Gbps || p.Max.Value != 200*unit.Gbps || p.State != cluster.Up ||
			!maps.Equal(p.Counters, counters) {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestSeveralInterfaces(t *testing.T) {
	second := func(s string) string {
		return strings.NewReplacer("ens1f0np0", "ens1f0np10", "3b:00.0", "3b:00.1", "phy: 12", "phy: 13").Replace(s)
	}
	inTurns := settingsText + infoText + statsText + second(settingsText+infoText+statsText)
	f := read(t, inTurns)
	d := f.Types[0].Devices
	if len(d) != 2 || d[1].Label != "ens1f0np10" || d[1].PCI != "0000:3b:00.1" ||
		d[1].NIC.Ports[0].Counters["rx_discards_phy"] != 13 || d[0].NIC.Ports[0].Counters["rx_discards_phy"] != 12 {
		t.Errorf("in turns: %+v", d)
	}
	// All settings, then all driver information: whose is whose is not said, and the
	// PCI addresses are all there is to go by.
	byKind := settingsText + second(settingsText) + infoText + second(infoText)
	if d := read(t, byKind).Types[0].Devices; len(d) != 4 || d[0].PCI != "" || d[1].PCI != "" || d[2].Label != "" ||
		d[2].PCI != "0000:3b:00.0" || d[3].PCI != "0000:3b:00.1" {
		t.Errorf("by kind: %+v", d)
	}
	f = read(t, statsText+statsText)
	if len(f.Types[0].Devices) != 2 || len(f.Warnings) != 1 ||
		!strings.Contains(f.Warnings[0].Text, "2 blocks do not say whose they are") {
		t.Errorf("%d NICs, %v", len(f.Types[0].Devices), f.Warnings)
	}
}

func TestUnknown(t *testing.T) {
	for text, want := range map[string]unit.Rate{
		"Unknown!": 0, "65535Mb/s": 0, "4294967295Mb/s": 0, "0Mb/s": 0, "-1Mb/s": 0, "99999999999Mb/s": 0, "25Gb/s": 0, "": 0,
		"400000Mb/s": 400 * unit.Gbps,
	} {
		f := read(t, "Settings for eth0:\n\tSupported link modes:   Not reported\n\tSpeed: "+text+"\n\tLink detected: yes\n")
		p := f.Types[0].Devices[0].NIC.Ports[0]
		if p.Rate.Known() != (want > 0) || p.Rate.Value != want || p.Max.Known() {
			t.Errorf("%s: %+v", text, p)
		}
	}
	f := read(t, "Settings for eth0:\n\tSpeed: 1000Mb/s\n\tLink detected: no (No cable)\n")
	if p := f.Types[0].Devices[0].NIC.Ports[0]; p.State != cluster.Down || p.Rate.Known() {
		t.Errorf("%+v", p)
	}
	f = read(t, "Settings for lo:\n\tLink detected: yes\nSettings for eth9:\nNo data available\n")
	if len(f.Types[0].Devices) != 0 || len(f.Warnings) != 2 {
		t.Errorf("%+v, %v", f.Types[0].Devices, f.Warnings)
	}
	f = read(t, "driver: mlx5_core[ib_ipoib]\nfirmware-version: N/A\nbus-info: virtio0\n")
	if d := f.Types[0].Devices[0]; d.NIC.Kind != cluster.InfiniBand || d.NIC.Firmware != "" || d.PCI != "" {
		t.Errorf("%+v", d)
	}
}

// Bridges, tunnels and containers' cables are told in one note and are no NICs; a card is one whatever its name.
func TestSoftware(t *testing.T) {
	text := "driver: mlx5_core\nfirmware-version: 1.2\nbus-info: 0000:3b:00.0\n"
	f := read(t, "$ ethtool -i tunnel0\n"+text+"$ ethtool -i br-card\n"+strings.ReplaceAll(text, "3b", "3c")+
		"$ ethtool -i tunl0\ndriver: ipip\nfirmware-version: \nbus-info: \nSettings for br-0a1b2c:\n\tSpeed: 10000Mb/s\n"+
		"Settings for cali12ab:\n\tSpeed: 10000Mb/s\nSettings for vethab:\n\tSpeed: 10000Mb/s\n")
	var names []string
	for _, d := range f.Types[0].Devices {
		names = append(names, d.Label)
	}
	if !slices.Equal(names, []string{"br-card", "tunnel0"}) {
		t.Errorf("NICs %q", names)
	}
	want := "no NICs, and left out: br-0a1b2c (a Docker bridge), cali12ab (Calico's cable), tunl0 (a tunnel) and 1 more"
	if len(f.Warnings) != 1 || f.Warnings[0].Text != want {
		t.Errorf("%v; want %s", f.Warnings, want)
	}
}

// Made up, in the layout of iproute2 6: the second interface has the shorter names of version 4.
const linkText = `2: ens1f0np0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP mode DEFAULT group default qlen 1000
    link/ether 3c:ec:ef:00:11:22 brd ff:ff:ff:ff:ff:ff
    RX:  bytes packets errors dropped  missed   mcast
       1293809      12      7       0       9     123
    TX:  bytes packets errors dropped carrier collsns
             5       6      0       0       3       0
    RX errors: length  crc     frame   fifo    missed
               0       21      0       0       9
3: ens2f0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc mq state DOWN group default qlen 1000
4: ib0: <BROADCAST,MULTICAST> mtu 2044 qdisc mq state DOWN mode DEFAULT group default qlen 256
    link/infiniband 00:00:10:29:fe:80 brd 00:ff:ff
5: veth12@if2: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP
`

func TestLink(t *testing.T) {
	f := read(t, "$ ip -s link\n"+linkText)
	d := f.Types[0].Devices
	if len(d) != 3 || f.Format != "ip link" {
		t.Fatalf("%s, %+v", f.Format, d)
	}
	want := map[string]uint64{"rx_errors": 7, "rx_missed_errors": 9, "tx_carrier_errors": 3, "rx_crc_errors": 21}
	if p := d[0].NIC.Ports[0]; d[0].Label != "ens1f0np0" || p.MTU.Value != 9000 || p.State != cluster.Up ||
		!maps.Equal(p.Counters, want) {
		t.Errorf("%+v", p)
	}
	if p := d[1].NIC.Ports[0]; p.State != cluster.Down {
		t.Errorf("%+v", p)
	}
	if p := d[2].NIC.Ports[0]; d[2].NIC.Kind != cluster.InfiniBand || p.State != cluster.StateUnknown {
		t.Errorf("%+v", d[2].NIC)
	}
	both := read(t, linkText+settingsText).Types[0].Devices
	if p := both[0].NIC.Ports[0]; len(both) != 3 || p.MTU.Value != 9000 || p.Rate.Value != 100*unit.Gbps {
		t.Errorf("ip and ethtool of one interface: %+v", p)
	}
}

func TestRefuses(t *testing.T) {
	for _, text := range []string{
		"", "Settings for :\n", "Settings for two words:\n", "driver: x\n", "bus-info: x\nfirmware-version: y\n",
		"no NIC statistics: here", "\x00\xff",
	} {
		if Match([]byte(text)) {
			t.Errorf("%q taken for ethtool", text)
		}
		if strings.HasPrefix(text, "driver:") {
			continue
		}
		if _, err := Read("log", strings.NewReader(text)); err == nil ||
			!strings.HasPrefix(err.Error(), "log: no interfaces; expected") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Read("log", strings.NewReader(strings.Repeat("NIC statistics:\n", maxNICs+1))); err == nil ||
		!strings.Contains(err.Error(), "more than 4096 interfaces") {
		t.Errorf("%v", err)
	}
}

func FuzzRead(f *testing.F) {
	whole.Fuzz(f, check,
		settingsText+infoText+statsText, linkText,
		"$ ethtool -S eth0\n"+statsText+"Settings for lo:\n\tLink detected: no\nSettings for eth9:\nNo data available\n")
}

// TestVirtual: an interface whose driver is that of a container's cable is no NIC, whatever its name.
func TestVirtual(t *testing.T) {
	f := read(t, "$ ethtool eth0\nSettings for eth0:\n\tSpeed: 10000Mb/s\n\tLink detected: yes\n$ ethtool -i eth0\n"+
		"driver: veth\nversion: 1.0\nfirmware-version: \nbus-info: \n")
	if n := len(f.Types[0].Devices); n != 0 || len(f.Warnings) != 1 {
		t.Errorf("%d devices, %v", n, f.Warnings)
	}
}
