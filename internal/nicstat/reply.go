package nicstat

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// The layout of the kernel's structures: a command and up to two words, then data.
const (
	nameBytes = 32 // ETH_GSTRING_LEN
	statsSet  = 1  // ETH_SS_STATS
	headInfo  = 16 // ethtool_sset_info: command, reserved, mask of sets
	headNames = 12 // ethtool_gstrings: command, set, number
	headStats = 8  // ethtool_stats: command, number
	// mostStats bounds what is asked for: the drivers with the most queues have some ten thousand.
	mostStats = 1 << 16
)

// ErrChanged is of an interface whose number of counters changed while it was asked.
var ErrChanged = errors.New("the number of counters changed while they were read; ask again")

// setSize reads how many counters there are; 0 for a driver that has none.
func setSize(reply []byte) (int, error) {
	if len(reply) < headInfo {
		return 0, fmt.Errorf("the kernel's answer has %d bytes; expected %d or more", len(reply), headInfo)
	}
	if binary.NativeEndian.Uint64(reply[8:])&(1<<statsSet) == 0 {
		return 0, nil
	}
	if len(reply) < headInfo+4 {
		return 0, fmt.Errorf("the kernel's answer has %d bytes; expected %d", len(reply), headInfo+4)
	}
	n := binary.NativeEndian.Uint32(reply[headInfo:])
	if n > mostStats {
		return 0, fmt.Errorf("%d counters; at most %d are read", n, mostStats)
	}
	return int(n), nil
}

// counted checks that an answer is of n counters and whole, and returns its data.
func counted(reply []byte, head, at, n, each int) ([]byte, error) {
	if len(reply) < head {
		return nil, fmt.Errorf("the kernel's answer has %d bytes; expected %d or more", len(reply), head)
	}
	if got := binary.NativeEndian.Uint32(reply[at:]); int64(got) != int64(n) {
		return nil, ErrChanged
	}
	if n < 0 || n > mostStats || len(reply)-head < n*each {
		return nil, fmt.Errorf("the kernel's answer has %d bytes; expected %d for %d counters", len(reply), head+n*each, n)
	}
	return reply[head : head+n*each], nil
}

// pick joins the answers about names and values: those that keep wants, at most so many. Of a name
// that comes twice the first counts.
func pick(names, values []byte, n int, keep func(name string) bool, most int) (map[string]uint64, error) {
	names, err := counted(names, headNames, 8, n, nameBytes)
	if err != nil {
		return nil, err
	}
	if values, err = counted(values, headStats, 4, n, 8); err != nil {
		return nil, err
	}
	out := map[string]uint64{}
	for i := range n {
		name := names[i*nameBytes : (i+1)*nameBytes]
		if end := bytes.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		word := string(bytes.TrimSpace(name)) // some drivers indent
		if word == "" || len(out) >= most || !plain(word) || !keep(word) {
			continue
		}
		if _, twice := out[word]; !twice {
			out[word] = binary.NativeEndian.Uint64(values[i*8:])
		}
	}
	return out, nil
}

// plain tells that a name is of printable ASCII.
func plain(s string) bool {
	return !slices.ContainsFunc([]byte(s), func(c byte) bool { return c < ' ' || c > '~' })
}
