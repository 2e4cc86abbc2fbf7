package sysfs

import (
	"fmt"
	"io/fs"
	"path"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
)

// Format names what this package reads.
const Format = "/sys and /proc"

// source stands beside every fact.
const source = "sysfs"

// Read reads the machine whose /sys and /proc are in fsys. host names it; when
// empty, the machine's own name is looked for.
func Read(host string, fsys fs.FS) (*cluster.Fragment, error) {
	t, err := open(fsys)
	if err != nil {
		return nil, err
	}
	if host == "" {
		host = t.hostName()
	}
	m := &machine{
		tree: t, host: host, t: &cluster.NodeType{Tree: cluster.Read},
		f: &cluster.Fragment{Format: Format, Source: host},
	}
	m.layout()
	if len(m.t.Devices) == 0 {
		return nil, fmt.Errorf("%s: neither CPUs nor PCI devices nor NICs could be read; check that /sys is mounted and "+
			"readable", Format)
	}
	m.f.AddNode(host, m.t)
	return m.f, m.f.CheckSize()
}

func (t *tree) hostName() string {
	if s := t.word(t.proc, "sys/kernel/hostname"); s != "" {
		return s
	}
	return t.word(path.Join(t.proc, "../etc/hostname"))
}

// machine turns a tree into a node type.
type machine struct {
	*tree
	f     *cluster.Fragment
	t     *cluster.NodeType
	host  string
	board *board.Host
}

func (m *machine) layout() {
	cpus := m.cpus()
	m.board = board.NewHost(m.t, source, m.sockets(cpus), m.domains(cpus))
	bus := m.bus()
	nics := m.nics(bus)
	gpus := m.gpus(bus)
	m.direct(nics, gpus)
	m.board.Grow(bus.roots(m.board))
	m.kfd()
	for _, nic := range nics.loose {
		m.board.AddNIC(*nic)
	}
	m.board.Warn(m.f, m.host)
	// Nothing of this depends on whether there are GPUs or InfiniBand at all.
	if bus.mute > 0 {
		m.f.Warnf(0, m.host, "%d PCI functions do not tell what they are; GPUs and NICs may be missing (is /sys readable?)",
			bus.mute)
	}
	if slices.ContainsFunc(bus.order, func(fn *function) bool { return fn.Device != nil && fn.root == "" }) {
		m.f.Warnf(0, m.host, "/sys/bus/pci/devices shows no links, so the PCIe tree is unknown; copy it with its symbolic "+
			"links (tar, not cp -L)")
	}
}
