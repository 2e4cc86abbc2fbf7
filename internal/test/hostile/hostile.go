// Package hostile makes documents that are meant to hurt who reads them: short texts that stand for very much, deep and
// wide ones, and bombs of compression. Tests and the attack of make attack use it; nothing else does.
package hostile

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Doc is a document and what is wrong with it.
type Doc struct {
	Name string
	Data []byte
}

// Documents are the known attacks, each of a kind.
func Documents() []Doc {
	r := rand.New(rand.NewPCG(1, 2))
	list := make([]Doc, len(kinds))
	for i, k := range kinds {
		list[i] = Doc{k.name, k.make(r, 100)}
	}
	return list
}

// Random is one attack of a random kind and size.
func Random(r *rand.Rand) Doc {
	n := r.IntN(len(kinds) + len(more))
	if n >= len(kinds) {
		return Doc{more[n-len(kinds)].name, more[n-len(kinds)].make(r, 1+r.IntN(200))}
	}
	return Doc{kinds[n].name, kinds[n].make(r, 1+r.IntN(200))}
}

// Map is a node's map that stands for n times a million hosts, as its own credentials can send it.
func Map(n int) []byte { return listed(nil, n) }

var kinds = []struct {
	name string
	make func(r *rand.Rand, n int) []byte
}{
	{"hostlists.json", listed},
	{"links.json", linked},
	{"counts.yaml", counted},
	{"hostlists.yaml", func(r *rand.Rand, n int) []byte {
		return repeat(n, "nodes:\n", "- {hosts: 'h%d-[0-9999]n[0-99]', type: dgx-h100}\n")
	}},
	{"brackets.yaml", func(*rand.Rand, int) []byte {
		return []byte("nodes:\n- {hosts: 'a" + strings.Repeat("[0-9]", 40) + "', type: dgx-h100}\n")
	}},
	{"types.yaml", typed},
	{"presets.yaml", func(r *rand.Rand, n int) []byte {
		return append(repeat(100*n, "types:\n", "  t%d: {preset: gb200-nvl72}\n"),
			repeat(100*n, "nodes:\n", "- {hosts: h%[1]d, type: t%[1]d}\n")...)
	}},
	{"switches.yaml", func(r *rand.Rand, n int) []byte {
		return append([]byte("nodes:\n- {count: 1000000, type: dgx-h100}\nnetwork: {speed: 400Gb/s, nodes_per_leaf: 1, "+
			"rails: 8, oversubscription: 1}\n"), repeat(n, "", "# %d\n")...)
	}},
	{"topology.conf", func(r *rand.Rand, n int) []byte {
		return repeat(n, "", "SwitchName=s%d Nodes=a[0-999999]\n")
	}},
	{"topology-switches.conf", func(r *rand.Rand, n int) []byte {
		return repeat(n, "", "SwitchName=s%[1]d Switches=t%[1]d-[0-99999]\n")
	}},
	{"topology.yaml", func(r *rand.Rand, n int) []byte {
		return repeat(n, "- topology: t\n  tree:\n    switches:\n", "    - switch: s%[1]d\n      nodes: a[0-999999]\n")
	}},
	{"nodes.conf", func(r *rand.Rand, n int) []byte {
		return repeat(n, "", "NodeName=n%d-[0-999999] Gres=gpu:h100:256 Sockets=2\n")
	}},
	{"gres.conf", func(r *rand.Rand, n int) []byte {
		return repeat(n, "", "NodeName=n%[1]d Gres=gpu:m%[1]d:2000000000 Sockets=2000000000\n")
	}},
	{"model.yaml", func(r *rand.Rand, n int) []byte {
		return repeat(n, "switches:\n", "  s%d:\n    nodes: [\"a[0-999999]\"]\nblocks:\n")
	}},
	{"headings.txt", func(r *rand.Rand, n int) []byte {
		return repeat(30*n, "", "----------------\na[0-999999]\n----------------\nGPU 0: NVIDIA H100 80GB HBM3 (UUID: "+
			"GPU-%08d-0000-0000-0000-000000000000)\n")
	}},
	{"chain.json", chained},
	{"identities.json", identified},
	{"parallel.json", parallel},
	{"uplinks.json", uplinks},
	{"sources.json", func(r *rand.Rand, n int) []byte {
		return append(repeat(2000*n, `{"version":1,"nodes":[{"hosts":"a"}],"types":[],"sources":[`, `"s%d",`), `"z"]}`...)
	}},
	{"deep.json", func(r *rand.Rand, n int) []byte {
		return []byte(`{"version":1,"nodes":[],"hosts":` + strings.Repeat(`[`, 1000*n) + strings.Repeat(`]`, 1000*n) + `}`)
	}},
	{"deep.yaml", func(r *rand.Rand, n int) []byte {
		return []byte("nodes: [{hosts: " + strings.Repeat("[", 1000*n) + strings.Repeat("]", 1000*n) + "}]\n")
	}},
	{"indented.yaml", func(r *rand.Rand, n int) []byte {
		var b strings.Builder
		b.WriteString("nodes:\n")
		for i := range min(20*n, 2000) {
			fmt.Fprintf(&b, "%s- hosts:\n", strings.Repeat(" ", i))
		}
		return []byte(b.String())
	}},
	{"wide.json", wide},
	{"wide.yaml", func(r *rand.Rand, n int) []byte { return repeat(1000*n, "nodes: []\ntypes:\n", "  k%d: {}\n") }},
	{"deep.xml", func(r *rand.Rand, n int) []byte {
		return []byte(`<system version="1">` +
			strings.Repeat(`<cpu numaid="0"><pci busid="0000:00:00.0" class="0x060400">`, 500*n))
	}},
	{"wide.xml", func(r *rand.Rand, n int) []byte {
		return append([]byte(`<system version="1"><cpu numaid="0">`),
			repeat(300*n, "", `<pci busid="0000:%02x:00.0" class="0x030200" link_width="16"><gpu dev="0" sm="90" rank="0" gdr="1"/></pci>`)...)
	}},
	{"bomb.gz", func(r *rand.Rand, n int) []byte {
		return packed(bytes.Repeat([]byte("NodeName=a[0-9] Gres=gpu:8\n"), 40_000*n))
	}},
	{"bomb.tar.gz", tarred},
	{"bomb.zip", zipped},
	{"config.json", func(r *rand.Rand, n int) []byte {
		return []byte(`{"model_type":"llama","hidden_size":8192,"num_hidden_layers":2000000000,"num_attention_heads":64,"num_key_value_heads":8,"intermediate_size":28672,"vocab_size":2000000000}`)
	}},
	{"noise", func(r *rand.Rand, n int) []byte {
		b := make([]byte, 100*n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}},
}

// repeat writes a line n times with its number.
func repeat(n int, head, line string) []byte {
	var b bytes.Buffer
	b.WriteString(head)
	for i := range n {
		if strings.Contains(line, "%") {
			fmt.Fprintf(&b, line, i)
		} else {
			b.WriteString(line)
		}
	}
	return b.Bytes()
}

const oneType = `{"version":1,"types":[{"name":"t","devices":[{"kind":"gpu","name":"gpu0"}]}],"nodes":[`

func listed(_ *rand.Rand, n int) []byte {
	var b bytes.Buffer
	b.WriteString(oneType)
	for i := range n {
		fmt.Fprintf(&b, `{"hosts":"a%d-[0-999999]","type":"t"},`, i)
	}
	b.WriteString(`{"hosts":"z","type":"t"}]}`)
	return b.Bytes()
}

func linked(_ *rand.Rand, n int) []byte {
	var b bytes.Buffer
	b.WriteString(oneType + `{"hosts":"a-[0-999]","type":"t"}],"network":{"switches":[{"name":"s","tier":"leaf"}],"links":[`)
	for range 100 * n {
		b.WriteString(`{"a":{"switch":"s"},"b":{"hosts":"a-[0-999],a-[0-999],a-[0-999]"}},`)
	}
	b.WriteString(`{"a":{"switch":"s"},"b":{"hosts":"a-0"}}]}}`)
	return b.Bytes()
}

func counted(_ *rand.Rand, n int) []byte {
	return repeat(n, "nodes:\n", "- {count: 1000000, type: dgx-h100} # %d\n")
}

func typed(_ *rand.Rand, n int) []byte {
	return append(repeat(n, "types:\n", "  t%d: {gpus: 512 x H100, nics: 512 x 400Gb/s}\n"),
		repeat(n, "nodes:\n", "- {hosts: h%[1]d, type: t%[1]d}\n")...)
}

func wide(_ *rand.Rand, n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"version":1,"hosts":1,"nodes":[],"types":[{"name":"t","devices":[`)
	for i := range 200 * n {
		fmt.Fprintf(&b, `{"kind":"gpu","name":"g%d"},`, i)
	}
	b.WriteString(`{"kind":"gpu","name":"z"}]}]}`)
	return b.Bytes()
}

func packed(data []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	_, _ = z.Write(data)
	_ = z.Close()
	return b.Bytes()
}

// tarred has many large files of zeros in a machine's folders.
func tarred(_ *rand.Rand, n int) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	zeros := make([]byte, 1<<20)
	for i := range n {
		_ = w.WriteHeader(&tar.Header{
			Name: fmt.Sprintf("h/sys/f%d", i), Mode: 0o444, Size: int64(len(zeros)), Typeflag: tar.TypeReg,
		})
		_, _ = w.Write(zeros)
	}
	_ = w.Close()
	return packed(b.Bytes())
}

func zipped(_ *rand.Rand, n int) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	zeros := make([]byte, 1<<20)
	for i := range n {
		f, _ := w.Create(fmt.Sprintf("rank%d.log", i))
		_, _ = f.Write(zeros)
	}
	_ = w.Close()
	return b.Bytes()
}

// chained is a machine whose devices hang on each other in one chain, with GPUs at its end.
func chained(_ *rand.Rand, n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"version":1,"nodes":[{"hosts":"a","type":"t"}],"types":[{"name":"t","devices":[{"kind":"numa","name":"d0"}`)
	for i := range 1000 * n {
		fmt.Fprintf(&b, `,{"kind":"pci","name":"d%d","parent":"d%d"}`, i+1, i)
	}
	for i := range 64 {
		fmt.Fprintf(&b, `,{"kind":"gpu","name":"g%d","parent":"d%d"}`, i, 1000*n)
	}
	b.WriteString(`]}]}`)
	return b.Bytes()
}

// identified gives one host very many identities.
func identified(_ *rand.Rand, n int) []byte {
	b := bytes.NewBufferString(oneType + `{"hosts":"a","type":"t"}],"identities":[`)
	for i := range 1000 * n {
		fmt.Fprintf(b, `{"host":"a","device":"gpu0","port":%d,"uuid":"u"},`, i+1)
	}
	b.WriteString(`{"host":"a","device":"gpu0"}]}`)
	return b.Bytes()
}

// parallel has very many links between the same few devices.
func parallel(_ *rand.Rand, n int) []byte {
	b := bytes.NewBufferString(`{"version":1,"nodes":[{"hosts":"a","type":"t"}],"types":[{"name":"t","devices":[{"kind":"gpu","name":"g"},{"kind":"gpu","name":"h"},{"kind":"nvswitch","name":"s"}],"links":[`)
	for range 500 * n {
		b.WriteString(`{"a":"g","b":"s","kind":"nvlink"},{"a":"s","b":"h","kind":"nvlink"},`)
	}
	b.WriteString(`{"a":"g","b":"s","kind":"nvlink"}]}]}`)
	return b.Bytes()
}

// uplinks has very many links of which nothing is known.
func uplinks(_ *rand.Rand, n int) []byte {
	b := bytes.NewBufferString(`{"version":1,"nodes":[{"hosts":"a","type":"t"}],"types":[{"name":"t","devices":[{"kind":"numa","name":"d"}`)
	for i := range 1000 * n {
		fmt.Fprintf(b, `,{"kind":"pci","name":"d%d","parent":"d"}`, i)
	}
	b.WriteString(`],"links":[{"a":"d","b":"d0","kind":"pcie"}`)
	for i := range 1000*n - 1 {
		fmt.Fprintf(b, `,{"a":"d","b":"d%d","kind":"pcie"}`, i+1)
	}
	b.WriteString(`]}]}`)
	return b.Bytes()
}
