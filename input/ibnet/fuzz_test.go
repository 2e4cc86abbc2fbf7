package ibnet

import (
	"runtime"
	"strings"
	"testing"
)

func FuzzReadDiscover(f *testing.F) {
	tiny := fatTree{leaves: 2, spines: 1, hosts: 1, cables: 1, speed: "HDR", scanned: true, manager: true}
	formats["ibnetdiscover"].Fuzz(f, check, tiny.text(),
		"Switch 8 \"s1\"\n[1] \"h1\" w=1\n[1] \"h1\"[1]\nHca 2 \"h1\"\n[1] \"s1\"[1]\n",
		"Ca\t1 \"H-0000000000000001\"\t\t# \"localhost HCA-1\"\nCa\t1 \"H-0000000000000002\"\t\t# \"localhost HCA-1\"\n")
}

func FuzzReadPorts(f *testing.F) {
	formats["ibnetdiscover -p"].Fuzz(f, check,
		"SW     1 37 0x0000000000000001 4x ???                                    'leaf'\nCA    10  1 0x0000000000000010 "+
			"4x HDR - SW     1  1 0x0000000000000001 ( 'n1 mlx5_0' - 'leaf' )\nCA    11  2 0x0000000000000011 4x HDR - SW     "+
			"1  1 0x0000000000000001 ( 'n1 mlx5_0' - 'leaf' )\n")
}

func FuzzReadLinkInfo(f *testing.F) {
	formats["iblinkinfo"].Fuzz(f, check, twoHosts,
		"0x0000000000000011 \"   n1 mlx5_0\"     22    1[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>  "+
			"0x0000000000000001      4    4[  ] \"leaf\" (Could be 12X )\n")
}

func FuzzReadPerf(f *testing.F) {
	formats["perfquery"].Fuzz(f, check, "# Port counters: Lid 3 port 2 (CapMask: 0x1300)\nPortSelect:....2\n"+
		"SymbolErrors:....7\n# Port extended counters: Lid 4 port 255\n")
}

func FuzzReadErrors(f *testing.F) {
	formats["ibqueryerrors"].Fuzz(f, check, "Errors for \"n1 mlx5_0\"\n   GUID 0x11 port 1: [A == 5 (5.0)]\n       Link "+
		"info:     16   1[  ] ==( 1X  53.125 Gbps Active/  LinkUp)==>  0x0002      3    2[  ] \"leaf\" ( )\nErrors for 0x2 "+
		"\"leaf\"\n   GUID 0x2 port ALL: [B == 1]\n   GUID 0x2 port 2: [B == 1]\n## 2 ports checked\n")
}

func TestTooManyNodes(t *testing.T) {
	var b strings.Builder
	for i := range maxNodes + 1 {
		b.WriteString("Ca 1 \"" + itoa(i) + "\"\n")
	}
	if _, err := Discover.Read("x", strings.NewReader(b.String())); err == nil ||
		!strings.HasPrefix(err.Error(), "x:131073: more than 131072 nodes") {
		t.Errorf("%v", err)
	}
}

// What a reader allocates in all is bounded by its input, however hostile.
func TestMemoryIsBounded(t *testing.T) {
	var headers, ports strings.Builder
	ports.WriteString("Switch 8 \"s\"\n")
	for i := range 20000 {
		headers.WriteString("Ca 1 \"" + itoa(i) + "\"\n")
		ports.WriteString("[" + itoa(1+i%1000) + "]\"" + itoa(i/1000) + "\"[" + itoa(1+i%1000) + "]\n")
	}
	for name, c := range map[string]struct {
		text  string
		times uint64
	}{
		"real":           {tenThousand.text(), 23},
		"noise":          {strings.Repeat("x", 10<<20), 2},
		"noise in lines": {strings.Repeat("Switch noise\n[1] more\n", 1<<18), 2},
		// A header of twelve bytes makes a host and an adapter with a name each; the
		// limit on nodes is what bounds these.
		"bare headers": {headers.String(), 280},
		"bare ports":   {ports.String(), 92},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		Discover.Read("x", strings.NewReader(c.text))
		runtime.ReadMemStats(&after)
		got := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: %d bytes allocated for %d, %d times", name, got, len(c.text), got/uint64(len(c.text)))
		if got > c.times*uint64(len(c.text))+1<<20 {
			t.Errorf("%s: %d bytes allocated for %d", name, got, len(c.text))
		}
	}
}
