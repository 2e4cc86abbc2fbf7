package hardware

import (
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// Words fill the fields that they are about, and what nothing is made of is returned.
func TestReadWords(t *testing.T) {
	for text, want := range map[string]Spec{
		"NVLink4 NVSwitch (900 GB/s bidir per GPU)":            {Join: "nvswitch"},
		"PCIe 4.0 x16 (no NVLink), GPUs at 61:00 and e1:00":    {Join: "none", Slots: 4, Sockets: 2},
		"PCIe (GPUs 1a, 1b, 3d, 3e), no P2P, no NVLink":        {Join: "none", Sockets: 1, Behind: 2, Peers: cluster.No},
		"PCIe 4, GPUs 0a,c1, P2P enabled by a patched driver":  {Join: "none", Slots: 4, Sockets: 2, Peers: cluster.Yes},
		"NVLink2 all-to-all, 4 GPUs (2 links per pair)":        {Join: "mesh 2"},
		"NVLink2 hybrid cube mesh":                             {Join: "mesh"},
		"PCIe with NVLink bridges (bridge width not stated)":   {Join: "bridge"},
		"2 of 8 GPUs per node take part":                       {Of: 8},
		"PCIe 3.0 x16, both GPUs behind one PCIe switch (PIX)": {Join: "none", Slots: 3, Behind: 4},
		"EFA v1, GPUDirect RDMA":                               {Kind: cluster.EFA, GDR: cluster.Yes},
		"RoCEv2 (ConnectX-3 Pro 40GbE, 2 ports, no GPUDirect RDMA)": {
			Kind: cluster.RoCE, Port: 40 * unit.Gbps, GDR: cluster.No,
		},
		"plain TCP sockets (GPUDirect-TCPX off)":         {Kind: cluster.Ethernet},
		"HPE Slingshot-11 (libfabric cxi, aws-ofi-nccl)": {Kind: cluster.Slingshot},
		"InfiniBand Quantum-X800 between racks":          {Kind: cluster.InfiniBand, Port: 800 * unit.Gbps},
		"GPUDirect-TCPXO (Ethernet)":                     {Kind: cluster.TCPXO},
		"TCP sockets over IPoIB":                         {Kind: cluster.Ethernet},
	} {
		got := Spec{Count: 4}
		if _, unread := got.Read(text); len(unread) > 1 {
			t.Errorf("%q: not read: %q", text, unread)
		}
		got.Count = 0
		if !sameSpec(&got, &want) {
			t.Errorf("%q:\n%+v, want\n%+v", text, got, want)
		}
	}
	for text, want := range map[string]cluster.Tri{
		"NVL72 across nodes of a rack (MNNVL)": cluster.Yes, "nodes in different NVLink domains": cluster.No,
		"NVSwitch": cluster.Maybe,
	} {
		if got, _ := new(Spec).Read(text); got != want {
			t.Errorf("%q: a rack %v, want %v", text, got, want)
		}
	}
	if _, unread := new(Spec).Read("NVSwitch; behind a purple hub"); !slices.Equal(unread,
		[]string{"behind a purple hub"}) {
		t.Errorf("not read: %q", unread)
	}
	s := Spec{Join: "none", Kind: cluster.EFA, Port: unit.Gbps}
	if s.Read("NVSwitch, HDR InfiniBand"); s.Join != "none" || s.Kind != cluster.EFA || s.Port != unit.Gbps {
		t.Errorf("what was known changed: %+v", s)
	}
}

func sameSpec(a, b *Spec) bool {
	return a.Join == b.Join && a.Behind == b.Behind && a.Sockets == b.Sockets && a.Slots == b.Slots && a.Of == b.Of &&
		a.Peers == b.Peers && a.GDR == b.GDR && a.Kind == b.Kind && a.Port == b.Port
}

// Words may be anything.
func FuzzRead(f *testing.F) {
	f.Add("PCIe 3.0, GPUs at 18, 3b, 86, af (two per socket), NVLink bridge not stated")
	f.Fuzz(func(t *testing.T, text string) {
		s := Spec{Count: 2}
		if _, unread := s.Read(text); s.Of < 0 || s.Behind < 0 || len(strings.Join(unread, "")) > len(text) {
			t.Errorf("%+v, not read %q", s, unread)
		}
	})
}
