package sysfs

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/natural"
)

// maxAttr is how much of one file is read. Attributes hold a line; only
// /proc/cpuinfo is longer, and its first processor is enough.
const maxAttr = 64 << 10

// maxEntries is how many entries of one folder are looked at.
const maxEntries = 1 << 14

// tree is a machine's /sys and /proc within a file system.
type tree struct {
	fs        fs.FS
	sys, proc string
	rdma      string          // folder of the RDMA devices
	pipes     map[string]bool // of paths, whether they wait
}

// errNothing says what a folder should look like.
var errNothing = errors.New("no /sys in it; expected a folder that holds sys (and proc) of a Linux machine, /sys " +
	"itself, or a copy of /sys/class/infiniband")

// open finds /sys and /proc: at the root as on a machine, one folder down as in
// an unpacked snapshot, or the root being /sys; or only the RDMA devices, at the
// root or one folder down.
func open(fsys fs.FS) (*tree, error) {
	t := &tree{fs: fsys}
	names := t.list(".")
	for _, dir := range append([]string{"."}, names[:min(len(names), 64)]...) {
		if t.at(dir) {
			return t, nil
		}
	}
	return nil, errNothing
}

// Match reports whether a folder itself is /sys, holds it, or holds RDMA devices: whether it is one machine's.
func Match(fsys fs.FS) bool { return (&tree{fs: fsys}).at(".") }

// at places a tree in a folder that has one, and reports whether it has.
func (t *tree) at(dir string) bool {
	names := t.list(dir)
	has := func(name string) bool { return slices.Contains(names, name) }
	t.sys, t.proc = path.Join(dir, "sys"), path.Join(dir, "proc")
	switch {
	case has("sys"):
	case has("class") || has("bus") && has("devices"):
		t.sys = dir
	default:
		t.rdma = dir // that of RDMA devices, which have ports
		return slices.ContainsFunc(names, func(n string) bool { return t.isDir(path.Join(dir, n, "ports")) })
	}
	t.rdma = path.Join(t.sys, "class/infiniband")
	return true
}

// list names what is in a folder, in the order of bytes; nothing when it cannot
// be read.
func (t *tree) list(dir string) []string {
	if t.waits(dir) {
		return nil
	}
	entries, _ := fs.ReadDir(t.fs, dir)
	names := make([]string, 0, min(len(entries), maxEntries))
	for _, e := range entries[:min(len(entries), maxEntries)] {
		names = append(names, e.Name())
	}
	return names
}

// natural is list with eth2 before eth10.
func (t *tree) natural(dir string) []string {
	names := t.list(dir)
	slices.SortFunc(names, natural.Compare)
	return names
}

func (t *tree) isDir(name string) bool {
	if t.waits(path.Dir(name)) {
		return false
	}
	info, err := fs.Stat(t.fs, name)
	return err == nil && info.IsDir()
}

// waits reports a path that is a pipe or a device, or leads through one: in a forged snapshot one may stand in the
// place of a folder, and opening it would wait for ever.
func (t *tree) waits(name string) bool {
	if name == "." || name == "/" {
		return false
	}
	is, known := t.pipes[name]
	if known {
		return is
	}
	if is = t.waits(path.Dir(name)); !is {
		info, err := fs.Stat(t.fs, name)
		is = err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeDevice|fs.ModeSocket) != 0
	}
	if t.pipes == nil {
		t.pipes = map[string]bool{}
	}
	t.pipes[name] = is
	return is
}

// attr reads one attribute without the white space around it. It is empty when
// the file is absent, may not be read, or the kernel refuses (the speed of an
// interface that is down). Anything but a plain file is passed over: opening a
// pipe in a forged snapshot would wait for ever.
func (t *tree) attr(parts ...string) string {
	name := path.Join(parts...)
	if t.waits(path.Dir(name)) {
		return ""
	}
	info, err := fs.Stat(t.fs, name)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f, err := t.fs.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxAttr))
	if err != nil {
		return ""
	}
	// Tools that copy /sys fill files up with zero bytes.
	return strings.TrimSpace(strings.Trim(strings.ToValidUTF8(string(data), "?"), "\x00"))
}

// word reads an attribute that is one short line of print.
func (t *tree) word(parts ...string) string {
	s, _, _ := strings.Cut(t.attr(parts...), "\n")
	if len(s) > 256 || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }) {
		return ""
	}
	return s
}

// number reads a whole number; false when there is none.
func (t *tree) number(parts ...string) (int, bool) {
	v, err := strconv.ParseInt(t.attr(parts...), 0, 64)
	if err != nil || v > 1<<53 || v < -1<<53 {
		return 0, false
	}
	return int(v), true
}

// upTo reads a number from 1 to most; 0 for any other.
func (t *tree) upTo(most int, parts ...string) int {
	if v, ok := t.number(parts...); ok && v <= most {
		return max(v, 0)
	}
	return 0
}

// target is where a symbolic link points; false when it is none or the file
// system does not tell.
func (t *tree) target(parts ...string) (string, bool) {
	s, err := fs.ReadLink(t.fs, path.Join(parts...))
	return s, err == nil && len(s) < 4096
}

// driver is the name of the driver that a device folder's link names.
func (t *tree) driver(dir string) string {
	s, ok := t.target(dir, "driver")
	if !ok {
		return ""
	}
	return path.Base(s)
}

var (
	addressName = lazyre.New(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
	bridgeName  = lazyre.New(`^pci[0-9a-f]{4,8}:[0-9a-f]{2}$`)
	usbName     = lazyre.New(`^usb[0-9]+$`)
)

// place is what the path of a device in /sys/devices tells.
type place struct {
	root    string   // pci0000:40, of the innermost host bridge
	pci     []string // addresses below it, outermost first
	virtual bool     // no hardware
	usb     bool
}

// placeOf takes the path of a device apart.
func placeOf(target string) place {
	var p place
	for name := range strings.SplitSeq(target, "/") {
		switch {
		case bridgeName.MatchString(name):
			p.root, p.pci = name, nil
		case addressName.MatchString(name):
			p.pci = append(p.pci, name)
		case name == "virtual":
			p.virtual = true
		case usbName.MatchString(name):
			p.usb = true
		}
	}
	return p
}
