package hostile

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Sorts are what attacks have in common.
var Sorts = []string{"expander", "bomb", "deep", "wide", "chain", "hostlist", "log", "archive"}

// Sort is that of a document, by its name.
func (d Doc) Sort() string {
	for _, m := range more {
		if m.name == d.Name {
			return m.sort
		}
	}
	for _, s := range []struct{ part, sort string }{
		{"bomb.", "bomb"},
		{"deep.", "deep"},
		{"indented.", "deep"},
		{"wide.", "wide"},
		{"identities.", "wide"},
		{"parallel.", "wide"},
		{"sources.", "wide"},
		{"uplinks.", "wide"},
		{"chain.", "chain"},
		{"hostlists.", "hostlist"},
		{"brackets.", "hostlist"},
		{"topology", "hostlist"},
		{"headings.", "hostlist"},
		{"model.", "hostlist"},
		{"nodes.", "hostlist"},
	} {
		if strings.HasPrefix(d.Name, s.part) {
			return s.sort
		}
	}
	return "expander"
}

// All are the known attacks, logs and archives of logs too, and documents at the bounds of what is taken.
func All() []Doc {
	r := rand.New(rand.NewPCG(3, 4))
	list := Documents()
	for _, m := range more {
		list = append(list, Doc{m.name, m.make(r, 100)})
	}
	return list
}

var more = []struct {
	name, sort string
	make       func(r *rand.Rand, n int) []byte
}{
	{"mesh.json", "chain", func(r *rand.Rand, n int) []byte { return network(r, n, true) }},
	{"line.json", "chain", func(r *rand.Rand, n int) []byte { return network(r, n, false) }},
	{"star.json", "expander", func(_ *rand.Rand, n int) []byte {
		b := bytes.NewBufferString(netType + `"network":{"switches":[{"name":"s"}],"links":[`)
		for range max(n/6, 1) {
			b.WriteString(`{"a":{"switch":"s"},"b":{"hosts":"a[0-18999]"}},`)
		}
		b.WriteString(`{"a":{"switch":"s"},"b":{"hosts":"a0"}}]}}`)
		return b.Bytes()
	}},
	{"scatter.json", "hostlist", func(_ *rand.Rand, n int) []byte {
		b := bytes.NewBufferString(`{"version":1,"types":[{"name":"t"},{"name":"u"}],"nodes":[`)
		for i := range 100 * n {
			fmt.Fprintf(b, `{"hosts":"%s%dy%d","type":"%c"},`, strings.Repeat("x", 200), i, i*7%1000, "tu"[i%2])
		}
		b.WriteString(`{"hosts":"z","type":"t"}]}`)
		return b.Bytes()
	}},
	{"numa.json", "wide", func(_ *rand.Rand, n int) []byte {
		return devices(n, `{"kind":"numa","name":"n%d"}`, `{"kind":"gpu","name":"g%[1]d","parent":"n%[1]d"}`)
	}},
	{"ports.json", "wide", func(_ *rand.Rand, n int) []byte {
		b := bytes.NewBufferString(`{"version":1,"nodes":[{"hosts":"a[1-20000]","type":"t"}],"types":[{"name":"t","devices":[{"kind":"nic","name":"n0","nic":{"ports":[{"num":1}`)
		for i := range 1500 * n {
			fmt.Fprintf(b, `,{"num":%d}`, i)
		}
		b.WriteString(`]}}]}]}`)
		return b.Bytes()
	}},
	{"pairs.json", "wide", func(_ *rand.Rand, n int) []byte {
		b := bytes.NewBufferString(`{"version":1,"nodes":[{"hosts":"a[1-600]","type":"t"}],"types":[{"name":"t","devices":[{"kind":"gpu","name":"g0"},{"kind":"gpu","name":"g1"}],"pairs":[`)
		for i := range 1000 * n {
			fmt.Fprintf(b, `{"from":"g%d","to":"g%d","rate_GBps":1},`, i%2, (i+1)%2)
		}
		b.WriteString(`{"from":"g0","to":"g1","rate_GBps":1}]}]}`)
		return b.Bytes()
	}},
	{"warnings.json", "wide", func(_ *rand.Rand, n int) []byte {
		return append(repeat(1500*n, `{"version":1,"nodes":[{"hosts":"a"}],"types":[],"warnings":[`, `{"source":"s","text":"t%d"},`), `{"source":"s","text":"t"}]}`...)
	}},
	{"endless.log", "log", func(_ *rand.Rand, n int) []byte { return bytes.Repeat([]byte("NCCL WARN x "), 10_000*n) }},
	{"warn.log", "log", func(_ *rand.Rand, n int) []byte {
		return repeat(500*n, "", "h%[1]d:%[1]d:%[1]d [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.%[1]d<1> with "+
			"status=12\n")
	}},
	{"init.log", "log", func(_ *rand.Rand, n int) []byte {
		return repeat(200*n, "", "h%[1]d:1:1 [0] NCCL INFO comm 0x1 rank %[1]d nranks 2000000000 cudaDev 0 nvmlDev 0 busId "+
			"1000 commId 0x%[1]x - Init START\n")
	}},
	{"tasks.log", "log", func(_ *rand.Rand, n int) []byte {
		return repeat(100*n, "", "srun: error: h%d: tasks 0-65000: Killed\n")
	}},
	{"traces.log", "log", func(_ *rand.Rand, n int) []byte {
		return repeat(200*n, "", "[rank%[1]d]: Traceback (most recent call last):\n[rank%[1]d]:   File \"/x/y%[1]d.py\", "+
			"line 1, in f\n[rank%[1]d]: torch.distributed.DistStoreError: 1/900000000000 clients joined\n")
	}},
	{"escape.log", "log", func(_ *rand.Rand, n int) []byte {
		return repeat(50*n, "", "\x1b]0;%d\a\x1b[2J\u202e\u009b31m NCCL WARN Call to connect returned Connection refused\n")
	}},
	{"ras.json", "log", func(_ *rand.Rand, n int) []byte {
		return append(repeat(300*n, `{"nccl_version":"2.28.9","communicators_count":1,"communicators":[`, `{"hash":"0x%d","size":1000000,"ranks":[{}]},`), `{"size":1000000000000,"ranks":[{}]}]}`...)
	}},
	{"recorder.json", "log", func(_ *rand.Rand, n int) []byte {
		return []byte(`{"version":"2.10","pg_config":{},"entries":[` + strings.Repeat("{},", 3000*n) + `{}]}`)
	}},
	{"recorder.pickle", "log", shared},
	{"nested.zip", "archive", func(_ *rand.Rand, n int) []byte {
		data := bytes.Repeat([]byte("NCCL WARN x\n"), 3000*n)
		for i := range 6 {
			data = zipOf(fmt.Sprintf("%d.zip", i), data, 4)
		}
		return data
	}},
	{"nested.gz", "archive", func(_ *rand.Rand, n int) []byte {
		data := bytes.Repeat([]byte("NCCL WARN x\n"), 30_000*n)
		for range 6 {
			data = packed(data)
		}
		return data
	}},
	{"zeros.bz2", "bomb", func(_ *rand.Rand, n int) []byte { // 45 MB each; at 100 500 bytes become 450 MB
		one, _ := hex.DecodeString("425a6839314159265359c901b6c80158ab4020c00010000008200030cc0529a65248526c5492149e2ee48a" +
			"70a12192036d90")
		return bytes.Repeat(one, max(n/10, 1))
	}},
	{"text.gz", "bomb", func(_ *rand.Rand, n int) []byte { // at 100 3 MB become 600 MB
		return bytes.Repeat(packed(bytes.Repeat([]byte("NCCL WARN x\n"), 1<<19)), n)
	}},
	{"zeros.gz.gz", "bomb", func(_ *rand.Rand, n int) []byte { // at 100 200 kB become 10 GB
		return packed(bytes.Repeat(packed(make([]byte, 1<<20)), 100*n))
	}},
	{"members.tar.gz", "bomb", func(_ *rand.Rand, n int) []byte { // at 100 a million
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for i := range 1000 {
			_ = w.WriteHeader(&tar.Header{Name: fmt.Sprintf("h/sys/rank%d.log", i), Mode: 0o444, Typeflag: tar.TypeReg})
		}
		_ = w.Flush() // the end comes after the last
		return bytes.Repeat(packed(b.Bytes()), 10*n)
	}},
	{"lying.zip", "bomb", func(_ *rand.Rand, n int) []byte { // says that it is short, or that it is very long
		var b, text bytes.Buffer
		z, _ := flate.NewWriter(&text, flate.BestSpeed)
		_, _ = z.Write(make([]byte, 16<<20))
		_ = z.Close()
		w := zip.NewWriter(&b)
		for i := range n {
			f, _ := w.CreateRaw(&zip.FileHeader{
				Name: fmt.Sprintf("rank%d.log", i), Method: zip.Deflate, CompressedSize64: uint64(text.Len()),
				UncompressedSize64: []uint64{1, 1 << 40}[i%2],
			})
			_, _ = f.Write(text.Bytes())
		}
		_ = w.Close()
		return b.Bytes()
	}},
	{"names.zip", "bomb", func(_ *rand.Rand, n int) []byte {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for i := range 1000 * n {
			_, _ = w.CreateRaw(&zip.FileHeader{Name: fmt.Sprint(i)})
		}
		_ = w.Close()
		return b.Bytes()
	}},
	{"many.tar", "archive", func(_ *rand.Rand, n int) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for i := range 50 * n {
			name := []string{"../../../../etc/cron.d/x%d", "/home/user/.ssh/x%d", "rank%d.log", "a\x1b[31m%d.log"}[i%4]
			_ = w.WriteHeader(&tar.Header{Name: fmt.Sprintf(name, i), Mode: 0o777, Size: 12, Typeflag: tar.TypeReg})
			_, _ = w.Write([]byte("NCCL WARN x\n"))
			_ = w.WriteHeader(&tar.Header{Name: fmt.Sprint("l", i), Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink})
		}
		_ = w.Close()
		return packed(b.Bytes())
	}},
}

const netType = `{"version":1,"types":[{"name":"t","devices":[{"kind":"gpu","name":"gpu0"},{"kind":"nic","name":"n0"}]}],"nodes":[{"hosts":"a[0-18999]","type":"t"}],`

// network is very many switches in one line, or with links anywhere.
func network(r *rand.Rand, n int, mesh bool) []byte {
	b := bytes.NewBufferString(netType + `"network":{"switches":[{"name":"s0"}`)
	count := 150 * n
	for i := range count {
		fmt.Fprintf(b, `,{"name":"s%d"}`, i+1)
	}
	b.WriteString(`],"links":[{"a":{"switch":"s0"},"b":{"hosts":"a0","nic":0}}`)
	for i := range count {
		to := i + 1
		if mesh {
			to = r.IntN(count)
		}
		fmt.Fprintf(b, `,{"a":{"switch":"s%d"},"b":{"switch":"s%d"}}`, i, to)
		if i < 19000 {
			fmt.Fprintf(b, `,{"a":{"switch":"s%d"},"b":{"hosts":"a%d","nic":0}}`, i, i)
		}
	}
	b.WriteString(`]}}`)
	return b.Bytes()
}

// devices is a machine of very many devices of one kind and some of another.
func devices(n int, many, few string) []byte {
	b := bytes.NewBufferString(`{"version":1,"nodes":[{"hosts":"a[1-600]","type":"t"}],"types":[{"name":"t","devices":[{"kind":"numa","name":"z"}`)
	for i := range 900 * n {
		fmt.Fprintf(b, ","+many, i)
	}
	for i := range 128 {
		fmt.Fprintf(b, ","+few, i)
	}
	b.WriteString(`]}]}`)
	return b.Bytes()
}

// shared is a dump of the flight recorder whose entries are all the same large dictionary.
func shared(_ *rand.Rand, n int) []byte {
	b := bytes.NewBufferString("\x80\x02}X")
	_ = binary.Write(b, binary.LittleEndian, uint32(7))
	b.WriteString("entries](}(" + strings.Repeat("K\x00K\x00", 2000*n) + "uq\x00" + strings.Repeat("h\x00", 2000) + "es.")
	return b.Bytes()
}

// zipOf has a file several times.
func zipOf(name string, data []byte, times int) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := range times {
		f, _ := w.Create(fmt.Sprint(i, name))
		_, _ = f.Write(data)
	}
	_ = w.Close()
	return b.Bytes()
}
