package p2pbw

import (
	"fmt"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/pairtable"
)

// quantity is what a matrix holds.
type quantity uint8

const (
	connectivity quantity = iota // 1 where peer access is possible
	bandwidth                    // GB/s
	latency                      // µs
)

// title is what the title of a matrix says.
type title struct {
	what   quantity
	p2p    bool   // P2P=Enabled
	both   bool   // bidirectional: the sum of both directions
	method string // "Writes" or "Reads" where the title says so
}

// parseTitle reads the title of a matrix, as in
// "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)", and returns it without what follows.
func parseTitle(t string) (text string, m title, ok bool) {
	t = strings.TrimSpace(strings.TrimLeft(t, "#"))
	if strings.HasPrefix(t, "P2P Connectivity Matrix") {
		return "P2P Connectivity Matrix", m, true
	}
	rest := t
	if s, ok := strings.CutPrefix(rest, "Unidirectional "); ok {
		rest = s
	} else if s, ok := strings.CutPrefix(rest, "Bidirectional "); ok {
		rest, m.both = s, true
	}
	if s, ok := strings.CutPrefix(rest, "P2P=Enabled "); ok {
		rest, m.p2p = s, true
	} else if s, ok := strings.CutPrefix(rest, "P2P=Disabled "); ok {
		rest = s
	} else {
		return "", m, false
	}
	end := "Matrix (GB/s)"
	if s, ok := strings.CutPrefix(rest, "Bandwidth "); ok {
		rest, m.what = s, bandwidth
	} else if s, ok := strings.CutPrefix(rest, "Latency "); ok {
		rest, m.what, end = s, latency, "Matrix (us)"
	} else {
		return "", m, false
	}
	if s, ok := strings.CutPrefix(rest, "(P2P Writes) "); ok {
		rest, m.method = s, "Writes"
	} else if s, ok := strings.CutPrefix(rest, "(P2P Reads) "); ok {
		rest, m.method = s, "Reads"
	}
	if !strings.HasPrefix(rest, end) {
		return "", m, false
	}
	return t[:len(t)-len(rest)+len(end)], m, true
}

// parseHeader reads `D\D 0 1 2`, or "GPU 0 1 2" and "CPU 0 1 2" in latency tables.
func parseHeader(f []string) (cols []int, by string, ok bool) {
	switch f[0] {
	case `D\D`, `D\\D`:
	case "GPU", "CPU":
		by = f[0]
	default:
		return nil, "", false
	}
	cols, ok = pairtable.Numbers(f[1:])
	return cols, by, ok
}

// parseDevice reads "Device: 0, Tesla V100, pciBusID: 6, pciDeviceID: 0,
// pciDomainID:0", whose numbers are hexadecimal. Early samples end after the
// name or the device number.
func parseDevice(t string) (pairtable.Device, bool) {
	rest, ok := strings.CutPrefix(t, "Device: ")
	if !ok {
		return pairtable.Device{}, false
	}
	num, rest, ok := strings.Cut(rest, ", ")
	index, known := pairtable.Number(strings.TrimSpace(num))
	if !ok || !known {
		return pairtable.Device{}, false
	}
	d := pairtable.Device{Number: index}
	model, ids, ok := strings.Cut(rest, ", pciBusID:")
	d.Model = strings.TrimSpace(model)
	if !ok {
		return d, d.Model != ""
	}
	field := func(key string) string {
		_, v, ok := strings.Cut(ids, key)
		if !ok {
			return "0"
		}
		v, _, _ = strings.Cut(v, ",")
		return strings.TrimSpace(v)
	}
	bus, _, _ := strings.Cut(ids, ",")
	pci, err := cluster.ParsePCI(fmt.Sprintf("%s:%s:%s.0", field("pciDomainID:"), strings.TrimSpace(bus),
		field("pciDeviceID:")))
	if err == nil {
		d.PCI = pci
	}
	return d, true
}

// parseAccess reads "Device=0 CANNOT Access Peer Device=1".
func parseAccess(t string) (access, bool) {
	f := strings.Fields(t)
	if len(f) != 5 || f[2] != "Access" || f[3] != "Peer" || f[1] != "CAN" && f[1] != "CANNOT" {
		return access{}, false
	}
	ids := make([]string, 0, 2)
	for _, s := range []string{f[0], f[4]} {
		id, ok := strings.CutPrefix(s, "Device=")
		if !ok {
			return access{}, false
		}
		ids = append(ids, id)
	}
	n, ok := pairtable.Numbers(ids)
	if !ok {
		return access{}, false
	}
	return access{n[0], n[1], f[1] == "CAN"}, true
}
