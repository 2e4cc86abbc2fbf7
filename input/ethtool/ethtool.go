package ethtool

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
)

// Match reports whether a block of ethtool's is somewhere in the text.
func Match(data []byte) bool {
	isHead := func(line string) bool { return head.MatchString(strings.TrimSpace(line)) }
	isLink := func(line string) bool { return ipLink.MatchString(strings.TrimSpace(line)) }
	// The lines of the driver information are common words each and telling together.
	has := func(key string) bool {
		return lines.Find(data, key, func(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), key) })
	}
	return lines.Find(data, " mtu ", isLink) || lines.Find(data, " for ", isHead) ||
		lines.Find(data, "NIC statistics:", isHead) || has("driver:") && has("bus-info:") && has("firmware-version:")
}

// Read reads ethtool's output.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	d := reader{source: name, byName: map[string]*nic{}}
	err := lines.Each(name, r, func(num int, text string) error {
		if d.line(text, num); len(d.nics) > maxNICs {
			return fmt.Errorf("%s:%d: more than %d interfaces; expected ethtool's output of one host; split the file", name, num,
				maxNICs)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if d.blocks == 0 {
		return nil, fmt.Errorf("%s: no interfaces; expected ethtool's output, such as Settings for eth0:; give the output "+
			"of ethtool IF, or of its -i, -k, -g or -S, or of ip -s link", name)
	}
	return d.fragment(), nil
}

// maxNICs bounds the interfaces of one text.
const maxNICs = 4096

// block is the kind of lines that the reader is in.
type block uint8

const (
	settings block = iota
	info
	features
	rings
	statistics
	link    // of ip link
	outside // of any
)

// reader reads line by line.
type reader struct {
	source string
	nics   []*nic
	byName map[string]*nic
	cur    *nic
	in     block
	key    string // of the line that the next may continue
	asked  string // interface named by the last prompt
	blocks int
	// count is how many blocks of a kind there were; it tells whether blocks come
	// in turns.
	count [outside]int
}

func (d *reader) line(line string, num int) {
	text := strings.TrimSpace(line)
	if m := ipLink.FindStringSubmatch(text); m != nil {
		d.enter(link, m[1], num)
		d.cur.setLink(m)
		return
	}
	if m := head.FindStringSubmatch(text); m != nil {
		d.enter(heads[m[1]], cmp.Or(m[2], d.asked), num)
		return
	}
	if strings.HasPrefix(text, "driver:") {
		d.enter(info, d.asked, num)
	} else if m := prompt.FindStringSubmatch(text); m != nil {
		d.cur, d.asked = nil, m[1]
		return
	}
	switch {
	case d.cur == nil || d.in == outside:
	case d.in == link:
		d.key = d.cur.sums(d.key, text)
	case d.in == statistics:
		if !d.cur.statistic(text) {
			d.in = outside
		}
	default:
		key, value, ok := strings.Cut(text, ":")
		if !ok { // lists of modes go on over several lines that have no key
			key, value = cmp.Or(d.key, text), text
		}
		d.key = key
		d.cur.set(key, strings.TrimSpace(value))
	}
}

// enter begins a block. name is "" when nothing says whose it is.
func (d *reader) enter(b block, name string, num int) {
	before := d.cur
	if name == "" && before != nil && !before.has[b] && d.count[b] == d.count[settings]-1 && before.has[settings] {
		// The blocks of each interface stand together: so many names, so many
		// blocks of this kind, in turns.
		name = before.Device.Label
	}
	if name == "" && before != nil && before.Device.Label == "" && !before.has[b] && b == statistics {
		d.cur = before // -S behind an -i that is nameless too
	} else if d.cur = d.byName[name]; name == "" || d.cur == nil {
		d.cur = &nic{Device: board.NIC(name), line: num}
		d.nics = append(d.nics, d.cur)
		if name != "" {
			d.byName[name] = d.cur
		}
	}
	d.cur.has[b] = true
	d.in, d.key, d.asked = b, "", ""
	d.count[b]++
	d.blocks++
}

// name is one that the kernel allows: up to 15 bytes, no blank and no slash. The alternative names of newer kernels are
// longer.
const name = `([!-.0-~]{1,128})`

var (
	// head begins a block: -k said "Offload parameters" before 3.0, -g says "Ring parameters", -S names no interface.
	head  = lazyre.New(`^(?:(Settings|Features|Offload parameters|Ring parameters) for ` + name + `|NIC statistics):$`)
	heads = map[string]block{
		"Settings": settings, "Features": features, "Offload parameters": features, "Ring parameters": rings, "": statistics,
	}
	// ipLink begins what ip link and ip addr say of an interface: "3: ens1f0np0@if2: <…> mtu 9000 qdisc mq state UP".
	ipLink = lazyre.New(`^(?:\d+: )?([!-.0-~]{1,128}?)(?:@\S+)?: <([A-Z0-9_,-]*)> mtu (\d{2,6}) (?:.*\bstate (\w+))?`)
	// prompt is a typed command, "$ ethtool -S eth0" or "root@n1:~# ethtool eth0".
	prompt = lazyre.New(`^.{0,400}[$#%>+]\s*(?:sudo\s*)?(?:/usr/sbin/)?ethtool (?:\s*-\S+)*\s*` + name + `?`)
)
