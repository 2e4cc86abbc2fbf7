package query

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"busbar.dev/hardware"
	"busbar.dev/input"
	"busbar.dev/input/ncclxml"
)

// topoText is nvidia-smi topo -m of a DGX H100 with its compute adapters, or with all twelve.
func topoText(all bool) string {
	nics := adapters
	if all {
		nics = []string{
			"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_7", "mlx5_8", "mlx5_9", "mlx5_10",
			"mlx5_11",
		}
	}
	rail := map[string]int{}
	for r, a := range adapters {
		rail[a] = r
	}
	socket := map[string]int{"mlx5_1": 0, "mlx5_2": 0, "mlx5_7": 1, "mlx5_8": 1}
	for a, r := range rail {
		socket[a] = r / 4
	}
	half := func(same bool) string {
		if same {
			return "NODE"
		}
		return "SYS"
	}
	var b strings.Builder
	for g := range 8 {
		fmt.Fprintf(&b, "\tGPU%d", g)
	}
	for n := range nics {
		fmt.Fprintf(&b, "\tNIC%d", n)
	}
	b.WriteString("\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n")
	for g := range 8 {
		fmt.Fprintf(&b, "GPU%d", g)
		for o := range 8 {
			b.WriteString(map[bool]string{true: "\t X ", false: "\tNV18"}[o == g])
		}
		for _, n := range nics {
			if r, ok := rail[n]; ok && r == g {
				b.WriteString("\tPIX")
			} else {
				b.WriteString("\t" + half(socket[n] == g/4))
			}
		}
		fmt.Fprintf(&b, "\t%s\t%d\tN/A\n", []string{"0-55,112-167", "56-111,168-223"}[g/4], g/4)
	}
	for i, n := range nics {
		fmt.Fprintf(&b, "NIC%d", i)
		for g := range 8 {
			if r, ok := rail[n]; ok && r == g {
				b.WriteString("\tPIX")
			} else {
				b.WriteString("\t" + half(socket[n] == g/4))
			}
		}
		for _, o := range nics {
			if o == n {
				b.WriteString("\t X ")
			} else {
				b.WriteString("\t" + half(socket[n] == socket[o]))
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("\nNIC Legend:\n\n")
	for i, n := range nics {
		fmt.Fprintf(&b, "  NIC%d: %s\n", i, n)
	}
	return b.String()
}

// ibstatText is ibstat of one host of site.
func ibstatText(h int) string {
	var b strings.Builder
	for r, a := range adapters {
		guid := fmt.Sprintf("0xb83fd203%04x%04x", h, r)
		fmt.Fprintf(&b, "CA '%s'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tFirmware version: 28.39.1002\n\tHardware "+
			"version: 0\n\tNode GUID: %s\n\tSystem image GUID: %s\n"+
			"\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tBase lid: %d\n\t\tLMC: 0\n\t\tSM "+
			"lid: 1\n\t\tCapability mask: 0xa751e848\n\t\tPort GUID: %s\n\t\tLink layer: InfiniBand\n",
			a, guid, guid, 3000+h*8+r, guid)
	}
	return b.String()
}

// siteFiles adds to a site what its nodes, scheduler and cluster manager print.
func siteFiles(t *testing.T, nodes int) fstest.MapFS {
	t.Helper()
	files := site(nodes)
	add := func(name, text string) { files[name] = &fstest.MapFile{Data: []byte(text)} }
	preset, err := hardware.Preset("dgx-h100", 1)
	if err != nil {
		t.Fatal(err)
	}
	var xml bytes.Buffer
	if _, err := ncclxml.Write(&xml, preset.Types[0]); err != nil {
		t.Fatal(err)
	}
	add("topo.xml", xml.String())
	add("topo-m.txt", topoText(false))
	add("topo-all.txt", topoText(true))
	var slurm, kube strings.Builder
	for h := range nodes {
		host := fmt.Sprintf("dgx%03d", h+1)
		fmt.Fprintf(&slurm, "NodeName=%[1]s Arch=x86_64 CoresPerSocket=56\n   CPUAlloc=0 CPUTot=224 CPULoad=0.10\n   "+
			"Gres=gpu:h100:8(S:0-1)\n   NodeAddr=%[1]s NodeHostName=%[1]s Version=24.05.2\n   RealMemory=2000000 Sockets=2 "+
			"Boards=1\n   State=IDLE ThreadsPerCore=2\n\n", host)
		fmt.Fprintf(&kube, `%s{"kind":"Node","metadata":{"name":"%s","labels":{"kubernetes.io/hostname":"%s","nvidia.com/gpu.product":"NVIDIA-H100-80GB-HBM3","nvidia.com/gpu.count":"8"}},"status":{"capacity":{"nvidia.com/gpu":"8"},"allocatable":{"nvidia.com/gpu":"8"}}}`,
			map[bool]string{true: "", false: ","}[h == 0], host, host)
		add("topo/"+host+".txt", topoText(false))
		add("nodes/"+host+"/ibstat.txt", ibstatText(h))
		add("nodes/"+host+"/topo.txt", topoText(false))
	}
	add("scontrol-nodes.txt", slurm.String())
	add("nodes.json", `{"apiVersion":"v1","kind":"List","items":[`+kube.String()+`]}`)
	add("topology.yaml", "- topology: default\n  cluster_default: true\n  tree:\n    switches:\n      - switch: unit1\n "+
		"       nodes: "+fmt.Sprintf("dgx[001-%03d]", nodes)+"\n")
	add("README.md", "What our site has.\n")
	return files
}

// Each file of a site contributes what it should, in ten mixtures of them given as one folder.
func TestSiteFolder(t *testing.T) {
	const nodes = 16
	have := siteFiles(t, nodes)
	want, err := LoadCluster(context.Background(), Env{}, fmt.Sprintf("dgx-h100:%d", nodes))
	if err != nil {
		t.Fatal(err)
	}
	const fabric = "ibnetdiscover.txt: 16 nodes, 128 NICs, 12 switches"
	const groups = ": 16 nodes, 1 group of nodes, compared with the cabling"
	for _, mixture := range []struct {
		files []string
		gives []string // of the first file of each format
	}{
		{[]string{"ibnetdiscover.txt", "topo-m.txt"}, []string{fabric, "topo-m.txt: 8 GPUs, 8 NICs"}},
		{[]string{"ibnetdiscover.txt", "topo.xml"}, []string{fabric, "topo.xml: 8 GPUs, 8 NICs"}},
		{
			[]string{"ibnetdiscover.txt", "topology.conf", "topo-m.txt"},
			[]string{fabric, "topo-m.txt: 8 GPUs, 8 NICs", "topology.conf" + groups},
		},
		{
			[]string{"ibnetdiscover.txt", "topology.yaml", "topo.xml"},
			[]string{fabric, "topo.xml: 8 GPUs, 8 NICs", "topology.yaml" + groups},
		},
		{[]string{"ibnetdiscover.txt", "topo/"}, []string{fabric, "topo/dgx001.txt: 8 GPUs, 8 NICs"}},
		{
			[]string{"ibnetdiscover.txt", "topology.conf", "nodes/"},
			[]string{
				fabric, "nodes/dgx001/ibstat.txt: 8 NICs", "nodes/dgx001/topo.txt: 8 GPUs, 8 NICs", "topology.conf" + groups,
			},
		},
		{
			[]string{"ibnetdiscover.txt", "scontrol-nodes.txt", "topo-m.txt"},
			[]string{fabric, "scontrol-nodes.txt: 16 nodes, 128 GPUs", "topo-m.txt: 8 GPUs, 8 NICs"},
		},
		{
			[]string{"ibnetdiscover.txt", "nodes.json", "topo-m.txt"},
			[]string{fabric, "nodes.json: 16 nodes, 128 GPUs", "topo-m.txt: 8 GPUs, 8 NICs"},
		},
		{
			[]string{"ibnetdiscover.txt", "topology.conf", "scontrol-nodes.txt", "nodes.json", "topo.xml", "README.md"},
			[]string{
				"README.md: left out: no known format in it", fabric, "nodes.json: 16 nodes, 128 GPUs",
				"scontrol-nodes.txt: 16 nodes, 128 GPUs", "topo.xml: 8 GPUs, 8 NICs", "topology.conf" + groups,
			},
		},
		{[]string{
			"ibnetdiscover.txt", "topology.conf", "topology.yaml", "topo/", "nodes/", "scontrol-nodes.txt", "nodes.json",
			"topo.xml",
		}, []string{
			fabric, "nodes/dgx001/ibstat.txt: 8 NICs", "nodes/dgx001/topo.txt: 8 GPUs, 8 NICs", "nodes.json: 16 nodes, 128 GPUs",
			"scontrol-nodes.txt: 16 nodes, 128 GPUs", "topo.xml: 8 GPUs, 8 NICs", "topology.conf" + groups,
			"topology.yaml" + groups,
		}},
	} {
		files := fstest.MapFS{}
		for _, prefix := range mixture.files {
			for name, f := range have {
				if name == prefix || strings.HasSuffix(prefix, "/") && strings.HasPrefix(name, prefix) {
					files["site/"+name] = f
				}
			}
		}
		doc, err := Map{Sources: []string{"site"}}.Run(context.Background(), Env{Files: files})
		if err != nil {
			t.Errorf("%v: %v", mixture.files, err)
			continue
		}
		if got := firstOfEach(doc.Contributed); strings.Join(got, "\n") != strings.Join(mixture.gives, "\n") {
			t.Errorf("%v gave\n%s\nwant\n%s", mixture.files, strings.Join(got, "\n"), strings.Join(mixture.gives, "\n"))
		}
		if got, preset := doc.Summary,
			want.Summary(); got.Nodes != preset.Nodes || got.GPUs != preset.GPUs || got.NICs != preset.NICs {
			t.Errorf("%v: %+v; the preset has %+v", mixture.files, got, preset)
		}
		if len(doc.Audit) > 0 {
			t.Errorf("%v: findings %v", mixture.files, doc.Audit)
		}
		for _, w := range doc.Warnings {
			if !strings.Contains(w.Text, "aggregation nodes") {
				t.Errorf("%v: %s", mixture.files, w)
			}
		}
		if n := &doc.cluster.Network; n.Rails != 8 {
			t.Errorf("%v: %d rails", mixture.files, n.Rails)
		}
	}
}

// firstOfEach is what the first source of each format in a folder gave.
func firstOfEach(list []input.Contribution) []string {
	var out []string
	seen := map[string]bool{}
	for _, c := range list {
		if !seen[c.Format] {
			text := strings.Join(c.Gives, ", ")
			if c.LeftOut != "" {
				text = "left out: " + c.LeftOut
			}
			out = append(out, strings.TrimPrefix(c.Source, "site/")+": "+text)
		}
		seen[c.Format] = c.LeftOut == ""
	}
	return out
}

// Adapters that serve storage are no compute NICs and no finding.
func TestSiteStorage(t *testing.T) {
	files := siteFiles(t, 16)
	doc, err := Map{Sources: []string{"ibnetdiscover.txt", "topo-all.txt"}}.Run(context.Background(), Env{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	if doc.Summary.GPUs != 128 || doc.Summary.NICs != 16*12 || len(doc.Audit) > 0 || doc.cluster.Network.Rails != 8 {
		t.Errorf("%+v, %d rails, findings %v", doc.Summary, doc.cluster.Network.Rails, doc.Audit)
	}
}
