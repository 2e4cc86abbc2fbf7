package ncclxml

import (
	"os"
	"strings"
	"testing"

	"busbar.dev/cluster"
)

func TestMatch(t *testing.T) {
	for text, want := range map[string]bool{
		pair: true,
		"log\n0: <system version=\"2\">\n0:   <cpu numaid=\"0\">": true,
		"<graphs version=\"1\">":                                  false,
		"<topology><object type=\"Machine\"/></topology>":         false,
		"<cpu/><system >":                                         false,
		"":                                                        false,
	} {
		if Match([]byte(text)) != want {
			t.Errorf("%.40q: matched %v", text, !want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(pair)
	if data, err := os.ReadFile("testdata/dgx-a100.xml"); err == nil {
		f.Add(string(data))
	}
	f.
		Add(`<system version="2"><cpu numaid="-1"><nic><net name="lo" speed="1"/></nic><pci busid="0:0:0"><gpu gcn="910"><xgmi count="1" target="0:0:0"/></gpu></pci></cpu>`)
	f.Add("<!-- a comment -->" + strings.ReplaceAll(pair, "0000:17", "fffe:01"))
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Read("in", strings.NewReader(text))
		if err != nil {
			return
		}
		for _, nt := range got.Types {
			if err := nt.Check(); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if _, err := Write(&out, nt); err != nil {
				continue
			}
			again, err := Read("written", strings.NewReader(out.String()))
			if err != nil {
				t.Fatalf("%v in\n%s", err, out.String())
			}
			if nt.Trays <= 1 && again.Types[0].Count(cluster.GPU) != nt.Count(cluster.GPU) {
				t.Fatalf("%d GPUs became %d in\n%s", nt.Count(cluster.GPU), again.Types[0].Count(cluster.GPU), out.String())
			}
		}
	})
}
