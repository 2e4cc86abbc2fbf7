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

func TestCPUList(t *testing.T) {
	for mask, want := range map[string]string{
		"ffff": "0-15", "00000001,80000001": "0,31-32", "c0c0": "6-7,14-15", "55": "0,2,4,6", "00000000": "",
		"00000000,00000000,ffff0000,00000000,00000000,00000000,ffff0000,00000000": "48-63,176-191",
	} {
		got, err := cpuList(mask)
		if err != nil || got != want {
			t.Errorf("%s: %q %v, want %q", mask, got, err, want)
		}
		if want == "" {
			continue
		}
		back, err := cpuMask(got)
		if err != nil {
			t.Errorf("%s: %v", got, err)
		}
		if again, _ := cpuList(back); again != want {
			t.Errorf("%s: mask %s is %s", got, back, again)
		}
	}
	for _, bad := range []string{"", "x", "1ffffffff", strings.Repeat("0,", 600) + "0"} {
		if got, err := cpuList(bad); err == nil {
			t.Errorf("%.20q: %q", bad, got)
		}
	}
	for _, bad := range []string{"", "5-1", "a", "1-99999999", "-1"} {
		if got, err := cpuMask(bad); err == nil {
			t.Errorf("%q: %q", bad, got)
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
	f.Add("<!-- " + noteHead + "\nmade-up addresses: domain fffe\nsocket a: 0\nroot b: fffe:01:00.0\n-->" +
		strings.ReplaceAll(pair, "0000:17", "fffe:01"))
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
			if err := (Form{Tray: 1}).Write(&out, nt); err != nil {
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
