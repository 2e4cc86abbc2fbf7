package ibnet

import (
	"fmt"
	"strings"
)

// fatTree describes a two-tier fabric, which text writes as ibnetdiscover does.
// The text is synthetic; it imitates infiniband-diags 44 on ibsim 0.10.
type fatTree struct {
	leaves, spines int
	hosts          int // per leaf
	cables         int // from each leaf to each spine
	speed          string
	// slow holds the ports that run otherwise: "leaf2[33]" → "4xEDR". Both ends
	// of the cable follow.
	slow map[string]string
	// pulled holds the ports whose cable is missing.
	pulled map[string]bool
	// manager puts one host named ufm01 on the first spine.
	manager bool
	scanned bool // write the comment that a scan begins with
}

func (t fatTree) guid(kind, i int) string { return fmt.Sprintf("%016x", 0x0002c90300000000+kind<<20+i) }
func (t fatTree) leafGUID(i int) string   { return t.guid(1, i) }
func (t fatTree) spineGUID(i int) string  { return t.guid(2, i) }
func (t fatTree) hostGUID(i int) string   { return t.guid(3, i*16) }

// text writes the whole fabric: leaves, spines, adapters.
func (t fatTree) text() string {
	var b strings.Builder
	if t.scanned {
		b.WriteString("#\n# Topology file: generated on Thu Jan  1 00:00:00 1970\n#\n# Initiated from node " +
			"0002c90300300010 port 0002c90300300011\n")
	}
	up := t.hosts + 1 // first port of a leaf that leads to a spine
	for l := 1; l <= t.leaves; l++ {
		name := fmt.Sprintf("leaf%d", l)
		t.header(&b, "Switch", 64, "S-", t.leafGUID(l), name, fmt.Sprintf(" enhanced port 0 lid %d lmc 0", l))
		for h := 1; h <= t.hosts; h++ {
			x := (l-1)*t.hosts + h
			t.port(&b, name, h, fmt.Sprintf("\"H-%s\"[1](%s) ", t.hostGUID(x), t.portGUID(x)),
				fmt.Sprintf("\"node%04d mlx5_0\" lid %d", x, t.hostLID(x)), name, h)
		}
		for s := 1; s <= t.spines; s++ {
			for c := range t.cables {
				p := up + (s-1)*t.cables + c
				t.port(&b, name, p, fmt.Sprintf("\"S-%s\"[%d]", t.spineGUID(s), (l-1)*t.cables+c+1),
					fmt.Sprintf("\"spine%d\" lid %d", s, t.leaves+s), name, p)
			}
		}
	}
	for s := 1; s <= t.spines; s++ {
		name := fmt.Sprintf("spine%d", s)
		t.header(&b, "Switch", max(64, t.leaves*t.cables+1), "S-", t.spineGUID(s), name,
			fmt.Sprintf(" enhanced port 0 lid %d lmc 0", t.leaves+s))
		for l := 1; l <= t.leaves; l++ {
			for c := range t.cables {
				p := up + (s-1)*t.cables + c
				t.port(&b, name, (l-1)*t.cables+c+1, fmt.Sprintf("\"S-%s\"[%d]", t.leafGUID(l), p),
					fmt.Sprintf("\"leaf%d\" lid %d", l, l), fmt.Sprintf("leaf%d", l), p)
			}
		}
		if t.manager && s == 1 {
			t.port(&b, name, t.leaves*t.cables+1, fmt.Sprintf("\"H-%s\"[1](%s) ", t.hostGUID(0), t.portGUID(0)),
				"\"ufm01 mlx5_0\" lid 9999", "", 0)
		}
	}
	for x := 1; x <= t.leaves*t.hosts; x++ {
		l, h := (x-1)/t.hosts+1, (x-1)%t.hosts+1
		t.adapter(&b, x, fmt.Sprintf("node%04d", x), t.hostLID(x), t.leafGUID(l), fmt.Sprintf("leaf%d", l), l, h)
	}
	if t.manager {
		t.adapter(&b, 0, "ufm01", 9999, t.spineGUID(1), "spine1", t.leaves+1, t.leaves*t.cables+1)
	}
	return b.String()
}

func (t fatTree) hostLID(x int) int     { return t.leaves + t.spines + x }
func (t fatTree) portGUID(x int) string { return t.guid(3, x*16+1) }

func (t fatTree) header(b *strings.Builder, word string, ports int, letter, guid, name, tail string) {
	kind := map[string]string{"Switch": "switch", "Ca": "ca"}[word]
	device := map[string]string{"Switch": "0xd2f0", "Ca": "0x1021"}[word]
	fmt.Fprintf(b, "\nvendid=0x2c9\ndevid=%s\nsysimgguid=0x%s\n%sguid=0x%s", device, guid, kind, guid)
	if word == "Switch" {
		fmt.Fprintf(b, "(%s)", guid)
	}
	fmt.Fprintf(b, "\n%s\t%d \"%s%s\"\t\t# \"%s\"%s\n", word, ports, letter, guid, name, tail)
}

func (t fatTree) adapter(b *strings.Builder, x int, host string, lid int, swGUID, sw string, swLID, swPort int) {
	t.header(b, "Ca", 1, "H-", t.hostGUID(x), host+" mlx5_0", "")
	at := fmt.Sprintf("%s[%d]", sw, swPort)
	if !t.pulled[at] {
		fmt.Fprintf(b, "[1](%s) \t\"S-%s\"[%d]\t\t# lid %d lmc 0 \"%s\" lid %d %s\n",
			t.portGUID(x), swGUID, swPort, lid, sw, swLID, t.speedAt(at))
	}
}

// port writes a switch's port line; the leaf's end of the cable names it in slow
// and pulled.
func (t fatTree) port(b *strings.Builder, name string, num int, far, note, leaf string, leafPort int) {
	at := fmt.Sprintf("%s[%d]", leaf, leafPort)
	if !t.pulled[at] {
		fmt.Fprintf(b, "[%d]\t%s\t\t# %s %s\n", num, far, note, t.speedAt(at))
	}
}

func (t fatTree) speedAt(port string) string {
	if s := t.slow[port]; s != "" {
		return s
	}
	return "4x" + t.speed
}
