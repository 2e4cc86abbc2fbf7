package query

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"busbar.dev/cluster"
)

// adapters are a DGX H100's eight compute NICs as its InfiniBand tools call them.
var adapters = []string{"mlx5_0", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_9", "mlx5_10", "mlx5_11"}

// site is a made site: ibnetdiscover and topology.conf of DGX H100 nodes in units of 32 on eight leaves each, one of
// each rail, with four spines a unit and an aggregation node in every switch.
func site(nodes int) fstest.MapFS {
	const unit = 32
	var ib, slurm strings.Builder
	ports := map[string][]string{}
	names := map[string]string{}
	units := (nodes + unit - 1) / unit
	spines, up := 4*units, 8/units
	host := func(h int) string { return fmt.Sprintf("dgx%03d", h+1) }
	for u := range units {
		for r := range 8 {
			leaf := fmt.Sprintf("fc6a1c03%08x", u*8+r)
			names[leaf] = fmt.Sprintf("leaf%02d", u*8+r+1)
			for k := 0; k < unit && u*unit+k < nodes; k++ {
				h := u*unit + k
				ca := fmt.Sprintf("b83fd203%04x%04x", h, r)
				ports[leaf] = append(ports[leaf], fmt.Sprintf("[%d]\t\"H-%s\"[1](%s) \t\t# \"%s %s\" lid %d 4xNDR", k+1, ca, ca,
					host(h), adapters[r], 3000+h*8+r))
				fmt.Fprintf(&ib, "vendid=0x2c9\ndevid=0x1021\nsysimgguid=0x%[1]s\ncaguid=0x%[1]s\nCa\t1 \"H-%[1]s\"\t\t# \"%[2]s "+
					"%[3]s\"\n[1](%[1]s) \t\"S-%[4]s\"[%[5]d]\t\t# lid %[6]d lmc 0 \"%[7]s\" lid 9 4xNDR\n\n",
					ca, host(h), adapters[r], leaf, k+1, 3000+h*8+r, names[leaf])
			}
			for s := range spines {
				spine := fmt.Sprintf("fc6a1c04%08x", s)
				names[spine] = fmt.Sprintf("spine%02d", s+1)
				for c := range up {
					here, there := 33+s*up+c, (u*8+r)*up+c+1
					ports[leaf] = append(ports[leaf],
						fmt.Sprintf("[%d]\t\"S-%s\"[%d]\t\t# \"%s\" lid 9 4xNDR", here, spine, there, names[spine]))
					ports[spine] = append(ports[spine],
						fmt.Sprintf("[%d]\t\"S-%s\"[%d]\t\t# \"%s\" lid 9 4xNDR", there, leaf, here, names[leaf]))
				}
			}
		}
		fmt.Fprintf(&slurm, "SwitchName=unit%d Nodes=dgx[%03d-%03d]\n", u+1, u*unit+1, min(nodes, (u+1)*unit))
	}
	if units > 1 {
		fmt.Fprintf(&slurm, "SwitchName=core Switches=unit[1-%d]\n", units)
	}
	for guid, list := range ports {
		inside := "a088" + guid[4:]
		fmt.Fprintf(&ib, "vendid=0x2c9\ndevid=0xd2f2\nsysimgguid=0x%[1]s\nswitchguid=0x%[1]s(%[1]s)\nSwitch\t65 "+
			"\"S-%[1]s\"\t\t# \"%[2]s\" enhanced port 0 lid 9 lmc 0\n%[3]s\n[65]\t\"H-%[4]s\"[1](%[4]s) \t\t# \"Mellanox "+
			"Technologies Aggregation Node\" lid 8 4xHDR\n\n",
			guid, names[guid], strings.Join(list, "\n"), inside)
		fmt.Fprintf(&ib, "vendid=0x2c9\ndevid=0xcf09\nsysimgguid=0x%[1]s\ncaguid=0x%[2]s\nCa\t1 \"H-%[2]s\"\t\t# "+
			"\"Mellanox Technologies Aggregation Node\"\n[1](%[2]s) \t\"S-%[1]s\"[65]\t\t# lid 8 lmc 0 \"%[3]s\" lid 9 4xHDR\n"+
			"\n", guid, inside, names[guid])
	}
	return fstest.MapFS{
		"ibnetdiscover.txt": {Data: []byte("# Topology file: generated on Mon Nov 16 10:00:00 2026\n" + ib.String())},
		"topology.conf":     {Data: []byte(slurm.String())},
	}
}

// What a site has joins into one cluster in whatever mixture: the scheduler's topology is a view on the cabling, not a
// second fabric; a preset says what the named hosts are; rails show in the cabling.
func TestSiteJoins(t *testing.T) {
	for _, nodes := range []int{16, 128} {
		joinsToPreset(t, site(nodes), nodes)
	}
}

// joinsToPreset joins ten mixtures of what a site has, each of which is the preset without a finding.
func joinsToPreset(t *testing.T, files fstest.MapFS, nodes int) {
	t.Helper()
	env := Env{Files: files}
	all := fmt.Sprintf("dgx[001-%03d]=dgx-h100", nodes)
	counted := fmt.Sprintf("dgx-h100:%d", nodes)
	want, err := LoadCluster(context.Background(), Env{}, counted)
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{
		{"ibnetdiscover.txt", "topology.conf", "dgx-h100"},
		{"dgx-h100", "topology.conf", "ibnetdiscover.txt"},
		{"topology.conf", "ibnetdiscover.txt", counted},
		{counted, "ibnetdiscover.txt"},
		{"topology.conf", counted},
		{all},
		{all, "ibnetdiscover.txt"},
		{all, "topology.conf", "ibnetdiscover.txt"},
		{all + fmt.Sprintf(":%d", nodes), "ibnetdiscover.txt", "topology.conf"},
		{"ibnetdiscover.txt", all},
	} {
		c, err := LoadCluster(context.Background(), env, words...)
		if err != nil {
			t.Errorf("%v: %v", words, err)
			continue
		}
		got, preset := c.Summary(), want.Summary()
		if got.Nodes != preset.Nodes || got.GPUs != preset.GPUs || got.NICs != preset.NICs {
			t.Errorf("%v: %+v; the preset has %+v", words, got, preset)
		}
		if c.Network.Rails != 8 {
			t.Errorf("%v: %d rails", words, c.Network.Rails)
		}
		for _, s := range c.Network.Switches {
			if strings.HasPrefix(s.Name, "unit") || s.Ports != 64 {
				t.Errorf("%v: switch %s of %d ports", words, s.Name, s.Ports)
			}
		}
		for _, w := range c.Warnings {
			if !strings.Contains(w.Text, "aggregation nodes") {
				t.Errorf("%v: %s", words, w.Text)
			}
		}
		if nic := c.Types[0].Devices[c.Types[0].Of(cluster.NIC)[0]]; nic.Model.Value != "ConnectX-7" {
			t.Errorf("%v: NIC %s", words, nic.Model.Value)
		}
		doc, err := Audit{Sources: words}.Run(context.Background(), env)
		if err != nil || len(doc.Audit) > 0 {
			t.Errorf("%v: %v, findings %v", words, err, doc.Audit)
		}
	}
}

// Sources that disagree are told: by one question where their counts do, by a warning where their groups do.
func TestSiteDisagrees(t *testing.T) {
	files := site(64)
	env := Env{Files: files}
	if _, err := LoadCluster(context.Background(), env, "topology.conf", "dgx-h100:12"); err == nil ||
		!strings.Contains(err.Error(), "describes 12 nodes") || !strings.Contains(err.Error(), "dgx[001-064]") {
		t.Errorf("counts: %v", err)
	}
	if _, err := LoadCluster(context.Background(), env, "dgx[001-016]=dgx-h100:4"); err == nil ||
		!strings.Contains(err.Error(), "16 hosts") {
		t.Errorf("a list and a count: %v", err)
	}
	files["topology.conf"].Data = []byte("SwitchName=a Nodes=dgx[017-048],other\nSwitchName=b " +
		"Nodes=dgx[001-016,049-064]\nSwitchName=core Switches=a,b\n")
	c, err := LoadCluster(context.Background(), env, "topology.conf", "ibnetdiscover.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, w := range c.Warnings {
		all = append(all, w.Where+": "+w.Text)
	}
	text := strings.Join(all, "\n")
	for _, part := range []string{"no switch for other", "a: groups dgx017, cabled to leaf01, leaf02, leaf03 and 5 " +
		"more, with dgx033, cabled to leaf09", "b: groups dgx001"} {
		if !strings.Contains(text, part) {
			t.Errorf("no warning %q in\n%s", part, text)
		}
	}
}
