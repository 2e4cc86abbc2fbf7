package query

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"busbar.dev/cluster"
	"busbar.dev/input/clusterfile"
	"busbar.dev/input/slurm"
	"busbar.dev/unit"
)

// flawed is a small cluster with what real ones have: eight nodes of four GPUs and two NICs under two leaves.
type flawed struct {
	unnamed bool // an adapter of g4 carries no host name
	slow    bool // one of g2 runs at half its width
	fewer   bool // g6 has lost a GPU
	upper   bool // the fabric writes G5 for g5
}

func (s flawed) files() fstest.MapFS {
	fsys := fstest.MapFS{
		"fabric.txt": {Data: []byte(s.fabric())}, "topo.txt": {Data: []byte(matrix(4))},
		"fewer.txt": {Data: []byte(matrix(3))},
	}
	nodes := ""
	for i := 1; i <= 8; i++ {
		gpus, state := 4, "IDLE"
		if s.fewer && i == 6 {
			gpus = 3
		}
		if i == 7 {
			state = "IDLE+DRAIN\n   Reason=fan: noisy [root@2026-11-12T10:02:11]"
		}
		nodes += fmt.Sprintf("NodeName=g%d Arch=x86_64 CoresPerSocket=32\n   Gres=gpu:a100:%d\n   NodeAddr=g%d "+
			"NodeHostName=g%d Version=23.11.10\n   Sockets=2 Boards=1\n   State=%s\n\n", i, gpus, i, i, state)
	}
	fsys["nodes.txt"] = &fstest.MapFile{Data: []byte(nodes)}
	return fsys
}

// sources are the words for map.
func (s flawed) sources() []string {
	if s.fewer {
		return []string{"g[1-5,7-8]=topo.txt", "g6=fewer.txt", "fabric.txt"}
	}
	return []string{"g[1-8]=topo.txt", "fabric.txt"}
}

// matrix is nvidia-smi topo -m of a node.
func matrix(gpus int) string {
	var names []string
	for i := range gpus {
		names = append(names, fmt.Sprintf("GPU%d", i))
	}
	names = append(names, "NIC0", "NIC1")
	text := "\t" + strings.Join(names, "\t") + "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
	for i, a := range names {
		text += a
		for k := range names {
			word := "NV12"
			switch {
			case i == k:
				word = " X "
			case i < gpus && k < gpus:
			case i >= gpus && k >= gpus:
				word = "SYS"
			case min(i, k)/2 == max(i, k)-gpus:
				word = "PXB"
			default:
				word = "SYS"
			}
			text += "\t" + word
		}
		if i < gpus {
			text += fmt.Sprintf("\t%d-%d\t%d\t\tN/A", i/2*32, i/2*32+31, i/2)
		}
		text += "\n"
	}
	return text + "\nLegend:\n\n  X    = Self\n\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n"
}

// fabric is ibnetdiscover: two leaves of four nodes and a spine.
func (s flawed) fabric() string {
	const leafGUID, spineGUID = "b8cef60300aa000%d", "b8cef60300aa0009"
	text, cas, spine := "#\n# Topology file: generated on Mon Nov 16 09:12:44 2026\n#\n", "", ""
	box := func(guid, name string) string {
		return fmt.Sprintf("\nvendid=0x2c9\ndevid=0xd2f2\nsysimgguid=0x%[1]s\nswitchguid=0x%[1]s(%[1]s)\nSwitch\t40 "+
			"\"S-%[1]s\"\t\t# \"MF0;%[2]s:MQM9700/U1\" enhanced port 0 lid 1 lmc 0\n", guid, name)
	}
	for leaf := range 2 {
		guid, name := fmt.Sprintf(leafGUID, leaf+1), fmt.Sprintf("leaf%d", leaf+1)
		text += box(guid, name)
		for k := range 8 {
			node, nic := leaf*4+k/2+1, k%2
			desc, speed, ca := fmt.Sprintf("g%d mlx5_%d", node, nic), "4xHDR", fmt.Sprintf("b83fd203%04x%04x", node, nic)
			if s.upper && node == 5 {
				desc = strings.ToUpper(desc[:1]) + desc[1:]
			}
			if s.unnamed && node == 4 && nic == 1 {
				desc = "MT4123 ConnectX6   Mellanox Technologies"
			}
			if s.slow && node == 2 && nic == 0 {
				speed = "2xHDR"
			}
			lid := 10 + leaf*8 + k
			text += fmt.Sprintf("[%d]\t\"H-%s\"[1](%s) \t\t# \"%s\" lid %d %s\n", k+1, ca, ca, desc, lid, speed)
			cas += fmt.Sprintf("\nvendid=0x2c9\ndevid=0x101b\nsysimgguid=0x%[1]s\ncaguid=0x%[1]s\nCa\t1 \"H-%[1]s\"\t\t# "+
				"\"%[2]s\"\n[1](%[1]s) \t\"S-%[3]s\"[%[4]d]\t\t# lid %[5]d lmc 0 \"MF0;%[6]s:MQM9700/U1\" lid 1 %[7]s\n", ca, desc,
				guid, k+1, lid, name, speed)
		}
		for u := range 8 {
			text += fmt.Sprintf("[%d]\t\"S-%s\"[%d]\t\t# \"MF0;spine1:MQM9700/U1\" lid 3 4xHDR\n", 20+u, spineGUID, leaf*8+u+1)
			spine += fmt.Sprintf("[%d]\t\"S-%s\"[%d]\t\t# \"MF0;%s:MQM9700/U1\" lid 1 4xHDR\n", leaf*8+u+1, guid, 20+u, name)
		}
	}
	return text + box(spineGUID, "spine1") + spine + cas
}

// flawedSites are all combinations.
func flawedSites() (list []flawed) {
	for i := range 16 {
		list = append(list, flawed{i&1 > 0, i&2 > 0, i&4 > 0, i&8 > 0})
	}
	return list
}

// Whatever map writes reads back as the same cluster.
func TestMapReadsBack(t *testing.T) {
	for _, s := range flawedSites() {
		for _, given := range []Given{{}, {GPU: "a100-80"}, {NIC: "HDR"}, {GPU: "a100-80", NIC: "200Gb/s"}} {
			for _, with := range [][]string{nil, {"nodes.txt"}} {
				name := fmt.Sprintf("%+v %+v %v", s, given, with)
				env := Env{Files: s.files()}
				doc, err := Map{Sources: append(s.sources(), with...), Given: given}.Run(context.Background(), env)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				var b bytes.Buffer
				if err := clusterfile.Write(&b, doc.cluster); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				f, err := clusterfile.Read("t.yaml", &b)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				if diff := cmp.Diff(inOrder(doc.cluster), inOrder(&f.Cluster), cmp.Comparer(sameAsWritten)); diff != "" {
					t.Errorf("%s (-written +read):\n%.2000s", name, diff)
				}
			}
		}
	}
}

// sameAsWritten compares rates to the nine digits that files have.
func sameAsWritten(a, b unit.Rate) bool { return math.Abs(float64(a-b)) <= 1e-8*math.Abs(float64(a)) }

// inOrder is the written form with the types by name: their order says nothing.
func inOrder(c *cluster.Cluster) *cluster.Document {
	d := c.Document()
	slices.SortFunc(d.Types, func(a, b cluster.TypeDoc) int { return strings.Compare(a.Name, b.Name) })
	return d
}

// saved is the site as a file.
func (s flawed) saved(t *testing.T, with ...string) string {
	t.Helper()
	doc, err := Map{Sources: append(s.sources(), with...), Given: Given{GPU: "a100-80"}}.Run(context.Background(),
		Env{Files: s.files()})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := clusterfile.Write(&b, doc.cluster); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A drained node is still one in the file, and a newer list of Slurm's nodes clears it.
func TestDrainedIsWritten(t *testing.T) {
	files := flawed{}.files()
	files["cluster.yaml"] = &fstest.MapFile{Data: []byte(flawed{}.saved(t, "nodes.txt"))}
	files["later.txt"] = &fstest.MapFile{Data: []byte("NodeName=g7 Gres=gpu:a100:4\n   State=IDLE\n")}
	ask := func(sources ...string) (ids string) {
		doc, err := Audit{Sources: sources}.Run(context.Background(), Env{Files: files})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range doc.Audit {
			if f.ID == "node-unavailable" {
				ids += f.Where + ": " + f.Text
			}
		}
		return ids
	}
	if got := ask("cluster.yaml"); !strings.HasPrefix(got,
		"g7: drained in Slurm when its nodes were listed: fan: noisy [root@") {
		t.Errorf("%q", got)
	}
	if got := ask("cluster.yaml", "later.txt"); got != "" {
		t.Errorf("still %q", got)
	}
}

// An adapter without a host's name is no node; names are compared without case; a node that lost a GPU is named.
func TestImperfectNodes(t *testing.T) {
	s := flawed{unnamed: true, slow: true, fewer: true, upper: true}
	files := s.files()
	files["cluster.yaml"] = &fstest.MapFile{Data: []byte(s.saved(t, "nodes.txt"))}
	ctx := context.Background()
	doc, err := Map{Sources: []string{"cluster.yaml"}}.Run(ctx, Env{Files: files})
	if err != nil || doc.Summary.Nodes != 8 {
		t.Fatalf("%+v %v", doc, err)
	}
	text, shared := "", 0
	for i, f := range doc.Audit {
		text += f.Where + " " + f.Text + " " + f.Fix + "\n"
		if f.ID == "nic-shared" && i < 3 {
			shared++
		}
	}
	if !strings.Contains(text, "g4/") || strings.Contains(text, "on no switch") || shared > 0 {
		t.Errorf("audit:\n%s", text)
	}
	var conf bytes.Buffer
	if err := slurm.WriteConf(&conf, doc.cluster); err != nil ||
		!strings.Contains(conf.String(), "SwitchName=leaf1 Nodes=g[1-4]\n") ||
		!strings.Contains(conf.String(), "Nodes=g[5-8]\n") {
		t.Errorf("%v\n%s", err, &conf)
	}
	_, err = Predict{Cluster: "cluster.yaml", Layout: "8x4"}.Run(ctx, Env{Files: files})
	if err == nil || !strings.Contains(err.Error(), "the cluster has 8 nodes with GPUs, 7 of them with as many; fewer "+
		"have g6 (3 GPUs): ask for 7x4") {
		t.Errorf("%v", err)
	}
}

// A node that lost a GPU is no reason to refuse a job that others have room for, and standard input is read as a file
// is.
func TestPlaceImperfect(t *testing.T) {
	s := flawed{fewer: true}
	files := s.files()
	files["cluster.yaml"] = &fstest.MapFile{Data: []byte(s.saved(t))}
	const free = "NODELIST STATE\ng1 idle\ng2 idle\ng3 idle\ng4 idle\ng5 alloc\ng6 idle\n"
	files["sinfo.txt"] = &fstest.MapFile{Data: []byte(free)}
	for _, word := range []string{"sinfo.txt", "-"} {
		for _, q := range []Place{{Nodes: 2}, {Job: Job{Layout: "2x4"}}} {
			q.Cluster, q.Model, q.Free = "cluster.yaml", "llama3-8b", word
			doc, err := q.Run(context.Background(), Env{Files: files, Stdin: strings.NewReader(free)})
			if err != nil {
				t.Errorf("%s: %v", word, err)
				continue
			}
			notes := strings.Join(doc.Notes, "\n")
			if doc.Free != "g[1-4]" || doc.PerNode != 4 || !strings.Contains(notes, "left out g6") {
				t.Errorf("%s: %s, %d, %s", word, doc.Free, doc.PerNode, notes)
			}
		}
	}
}
