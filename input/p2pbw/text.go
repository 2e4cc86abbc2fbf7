package p2pbw

import (
	"fmt"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/pairtable"
)

// parseTitle reads the title of a matrix, as in
// "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)".
func parseTitle(t string, line int) (Matrix, bool) {
	t = strings.TrimSpace(strings.TrimLeft(t, "#"))
	m := Matrix{Line: line}
	if strings.HasPrefix(t, "P2P Connectivity Matrix") {
		m.Title, m.What = "P2P Connectivity Matrix", Connectivity
		return m, true
	}
	rest := t
	if s, ok := strings.CutPrefix(rest, "Unidirectional "); ok {
		rest = s
	} else if s, ok := strings.CutPrefix(rest, "Bidirectional "); ok {
		rest, m.Both = s, true
	}
	if s, ok := strings.CutPrefix(rest, "P2P=Enabled "); ok {
		rest, m.P2P = s, true
	} else if s, ok := strings.CutPrefix(rest, "P2P=Disabled "); ok {
		rest = s
	} else {
		return m, false
	}
	end := "Matrix (GB/s)"
	if s, ok := strings.CutPrefix(rest, "Bandwidth "); ok {
		rest, m.What = s, Bandwidth
	} else if s, ok := strings.CutPrefix(rest, "Latency "); ok {
		rest, m.What, end = s, Latency, "Matrix (us)"
	} else {
		return m, false
	}
	if s, ok := strings.CutPrefix(rest, "(P2P Writes) "); ok {
		rest, m.Method = s, "Writes"
	} else if s, ok := strings.CutPrefix(rest, "(P2P Reads) "); ok {
		rest, m.Method = s, "Reads"
	}
	if !strings.HasPrefix(rest, end) {
		return m, false
	}
	m.Title = t[:len(t)-len(rest)+len(end)]
	return m, true
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
func parseDevice(t string, line int) (Device, bool) {
	rest, ok := strings.CutPrefix(t, "Device: ")
	if !ok {
		return Device{}, false
	}
	num, rest, ok := strings.Cut(rest, ", ")
	index, known := pairtable.Number(strings.TrimSpace(num))
	if !ok || !known {
		return Device{}, false
	}
	d := Device{Index: index, Line: line}
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
	pci, err := cluster.ParsePCI(fmt.Sprintf("%s:%s:%s.0", field("pciDomainID:"), strings.TrimSpace(bus), field("pciDeviceID:")))
	if err == nil {
		d.PCI = pci
	}
	return d, true
}

// parseAccess reads "Device=0 CANNOT Access Peer Device=1".
func parseAccess(t string) (Access, bool) {
	f := strings.Fields(t)
	if len(f) != 5 || f[2] != "Access" || f[3] != "Peer" || f[1] != "CAN" && f[1] != "CANNOT" {
		return Access{}, false
	}
	ids := make([]string, 0, 2)
	for _, s := range []string{f[0], f[4]} {
		id, ok := strings.CutPrefix(s, "Device=")
		if !ok {
			return Access{}, false
		}
		ids = append(ids, id)
	}
	n, ok := pairtable.Numbers(ids)
	if !ok {
		return Access{}, false
	}
	return Access{From: n[0], To: n[1], Can: f[1] == "CAN"}, true
}
