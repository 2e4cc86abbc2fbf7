package ethtool

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lines"
)

// Match reports whether a block of ethtool's is somewhere in the text.
func Match(data []byte) bool {
	return lines.Find(data, "Settings for ", func(line string) bool { return settingsFor(line) != "" }) ||
		lines.Find(data, "NIC statistics:", func(line string) bool { return strings.TrimSpace(line) == "NIC statistics:" }) ||
		lines.Find(data, " for ", func(line string) bool { b, _ := heading(strings.TrimSpace(line)); return b != outside }) ||
		matchInfo(data)
}

// matchInfo looks for the driver information, whose lines are common words each
// and telling together.
func matchInfo(data []byte) bool {
	has := func(key string) bool {
		return lines.Find(data, key, func(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), key) })
	}
	return has("driver:") && has("bus-info:") && has("firmware-version:")
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
			"of ethtool IF, or of its -i, -k, -g or -S", name)
	}
	return d.fragment(), nil
}

// maxNICs bounds the interfaces of one text.
const maxNICs = 4096

// block is the kind of lines that the reader is in.
type block uint8

const (
	outside block = iota
	settings
	info
	features
	rings
	statistics
)

// reader reads line by line.
type reader struct {
	source string
	nics   []*nic
	byName map[string]*nic
	cur    *nic
	in     block
	key    string // of the settings line that the next may continue
	asked  string // interface named by the last prompt
	blocks int
	// count is how many blocks of a kind there were; it tells whether blocks come
	// in turns.
	count [statistics + 1]int
}

func (d *reader) line(line string, num int) {
	text := strings.TrimSpace(line)
	if b, name := heading(text); b != outside {
		d.enter(b, name, num)
		return
	}
	switch name := settingsFor(text); {
	case name != "":
		d.enter(settings, name, num)
		return
	case text == "NIC statistics:":
		d.enter(statistics, d.asked, num)
		return
	case strings.HasPrefix(text, "driver:"):
		d.enter(info, d.asked, num)
	default:
		if name, ok := prompt(text); ok {
			d.in, d.cur, d.asked = outside, nil, name
			return
		}
	}
	if d.cur == nil {
		return
	}
	switch d.in {
	case settings:
		d.setting(text)
	case info:
		d.cur.info(text)
	case features:
		d.cur.feature(text)
	case rings:
		d.ring(text)
	case statistics:
		if !d.cur.statistic(text) {
			d.in = outside
		}
	}
}

// enter begins a block. name is "" when nothing says whose it is.
func (d *reader) enter(b block, name string, num int) {
	before := d.cur
	if name == "" && before != nil && !before.has[b] && d.count[b] == d.count[settings]-1 && before.has[settings] {
		// The blocks of each interface stand together: so many names, so many
		// blocks of this kind, in turns.
		name = before.name
	}
	if name == "" && before != nil && before.name == "" && !before.has[b] && b == statistics {
		d.cur = before // -S behind an -i that is nameless too
	} else if d.cur = d.byName[name]; name == "" || d.cur == nil {
		d.cur = &nic{name: name, line: num}
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

// settingsFor reads "Settings for eth0:".
func settingsFor(line string) string {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "Settings for ")
	name, colon := strings.CutSuffix(rest, ":")
	if !ok || !colon || !interfaceName(name) {
		return ""
	}
	return strings.Clone(name)
}

// interfaceName reports a name that the kernel allows: up to 15 bytes, no blank
// and no slash. The alternative names of newer kernels are longer.
func interfaceName(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || s[i] == '/' {
			return false
		}
	}
	return true
}

// prompt reads a typed command, "$ ethtool -S eth0" or "root@n1:~# ethtool eth0",
// and returns the interface.
func prompt(line string) (string, bool) {
	before, args, ok := strings.Cut(line, "ethtool ")
	before = strings.TrimSuffix(strings.TrimSpace(before), "/usr/sbin/")
	before = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(before), "sudo"))
	if !ok || len(line) > 512 || before == "" || strings.IndexByte("$#%>+", before[len(before)-1]) < 0 {
		return "", false
	}
	for _, word := range strings.Fields(args) {
		if word[0] != '-' {
			if !interfaceName(word) {
				return "", true
			}
			return strings.Clone(word), true
		}
	}
	return "", true
}
