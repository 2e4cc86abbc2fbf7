package input

import (
	"fmt"
	"strings"
	"testing"
)

// A few bytes of text must not cost gigabytes: what is larger than any machine or
// cluster is refused, with its size and the bound.
func TestReadRefusesWhatIsTooLarge(t *testing.T) {
	var xml strings.Builder
	xml.WriteString(`<system version="1"><cpu numaid="0" affinity="f" arch="x86_64">`)
	for i := range 1100 {
		fmt.Fprintf(&xml, `<pci busid="%04x:%02x:00.0" class="0x030200"><gpu dev="%d" sm="80"/></pci>`, i>>8, i&255, i)
	}
	xml.WriteString(`</cpu></system>`)
	for _, tc := range []struct{ text, want string }{
		{xml.String(), "a node with 1100 GPUs and 0 NICs; at most 1024"},
		{"SwitchName=top Switches=leaf[0-999999]\n", "x:1: 1000001 switches so far; at most 131072"},
		{
			"- topology: t\n  tree:\n    switches:\n      - switch: top\n        children: leaf[0-999999]\n",
			"switches so far; at most 131072",
		},
	} {
		_, err := Read("x", strings.NewReader(tc.text))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.40q: error %v, want one with %q", tc.text, err, tc.want)
		}
	}
}
