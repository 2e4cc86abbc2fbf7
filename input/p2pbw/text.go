package p2pbw

import (
	"cmp"
	"fmt"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/pairtable"
	"busbar.dev/internal/lazyre"
)

// title is what the title of a matrix says.
type title struct {
	latency bool   // µs, else GB/s
	p2p     bool   // P2P=Enabled
	both    bool   // bidirectional: the sum of both directions
	method  string // "Writes" or "Reads" where the title says so
}

var titleLine = lazyre.New(`^#*\s*((?:Uni|(Bi))?(?:directional )?P2P=(?:(En)|Dis)abled ` +
	`(?:Bandwidth|(Latency)) (?:\(P2P (Writes|Reads)\) )?Matrix \((?:GB/s|us)\))`)

// parseTitle reads the title of a matrix, as in
// "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)", and returns it without what follows.
func parseTitle(t string) (text string, m title, ok bool) {
	f := titleLine.FindStringSubmatch(t)
	if f == nil {
		return "", m, false
	}
	return f[1], title{both: f[2] != "", p2p: f[3] != "", latency: f[4] != "", method: f[5]}, true
}

var (
	deviceLine = lazyre.New(`^Device: +(\d+), (.*?)(?:, pciBusID: *([[:xdigit:]]+)(?:, pciDeviceID: *([[:xdigit:]]+))?` +
		`(?:, pciDomainID: *([[:xdigit:]]+))?.*)?$`)
	accessLine = lazyre.New(`^Device=(\d+) +(CAN|CANNOT) +Access +Peer +Device=(\d+)$`)
)

// parseDevice reads "Device: 0, Tesla V100, pciBusID: 6, pciDeviceID: 0,
// pciDomainID:0", whose numbers are hexadecimal. Early samples end after the
// name or the device number.
func parseDevice(t string) (d cluster.Device, ok bool) {
	f := deviceLine.FindStringSubmatch(t)
	if f == nil {
		return d, false
	}
	number, ok := pairtable.Number(f[1])
	d = board.GPU("nvidia", number)
	d.Model = board.Fact(strings.TrimSpace(f[2]), format)
	if f[3] != "" {
		d.PCI, _ = cluster.ParsePCI(fmt.Sprintf("%s:%s:%s.0", cmp.Or(f[5], "0"), f[3], cmp.Or(f[4], "0")))
	}
	return d, ok
}

// access is a line "Device=0 CAN Access Peer Device=1".
type access struct {
	from, to int
	can      bool
}

func parseAccess(t string) (a access, ok bool) {
	f := accessLine.FindStringSubmatch(t)
	if f == nil {
		return a, false
	}
	from, ok1 := pairtable.Number(f[1])
	to, ok2 := pairtable.Number(f[3])
	return access{from, to, f[2] == "CAN"}, ok1 && ok2
}
