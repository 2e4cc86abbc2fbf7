package p2pbw

import (
	"cmp"
	"fmt"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/pairtable"
	"busbar.dev/internal/lazyre"
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

var titleLine = lazyre.New(`^(P2P Connectivity Matrix)|^((?:Uni|(Bi))?(?:directional )?P2P=(?:(En)|Dis)abled ` +
	`(?:Bandwidth (?:\(P2P (Writes|Reads)\) )?Matrix \(GB/s\)|(Latency) (?:\(P2P (Writes|Reads)\) )?Matrix \(us\)))`)

// parseTitle reads the title of a matrix, as in
// "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)", and returns it without what follows.
func parseTitle(t string) (text string, m title, ok bool) {
	f := titleLine.FindStringSubmatch(strings.TrimSpace(strings.TrimLeft(t, "#")))
	switch {
	case f == nil:
		return "", m, false
	case f[1] != "":
		return f[1], m, true
	}
	m = title{what: bandwidth, both: f[3] != "", p2p: f[4] != "", method: f[5] + f[7]}
	if f[6] != "" {
		m.what = latency
	}
	return f[2], m, true
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

var (
	deviceLine = lazyre.New(`^Device: +(\d+), (.*?)(?:, pciBusID: *([[:xdigit:]]+)(?:, pciDeviceID: *([[:xdigit:]]+))?` +
		`(?:, pciDomainID: *([[:xdigit:]]+))?.*)?$`)
	accessLine = lazyre.New(`^Device=(\d+) +(CAN|CANNOT) +Access +Peer +Device=(\d+)$`)
)

// parseDevice reads "Device: 0, Tesla V100, pciBusID: 6, pciDeviceID: 0,
// pciDomainID:0", whose numbers are hexadecimal. Early samples end after the
// name or the device number.
func parseDevice(t string) (pairtable.Device, bool) {
	f := deviceLine.FindStringSubmatch(t)
	if f == nil {
		return pairtable.Device{}, false
	}
	index, ok := pairtable.Number(f[1])
	d := pairtable.Device{Number: index, Model: strings.TrimSpace(f[2])}
	if f[3] != "" {
		d.PCI, _ = cluster.ParsePCI(fmt.Sprintf("%s:%s:%s.0", cmp.Or(f[5], "0"), f[3], cmp.Or(f[4], "0")))
	}
	return d, ok && (d.Model != "" || f[3] != "")
}

// parseAccess reads "Device=0 CANNOT Access Peer Device=1".
func parseAccess(t string) (access, bool) {
	f := accessLine.FindStringSubmatch(t)
	if f == nil {
		return access{}, false
	}
	n, ok := pairtable.Numbers([]string{f[1], f[3]})
	if !ok {
		return access{}, false
	}
	return access{n[0], n[1], f[2] == "CAN"}, true
}
