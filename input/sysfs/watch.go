package sysfs

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"busbar.dev/input/internal/board"
	"busbar.dev/unit"
)

// PortState is what a port shows to somebody who looks again and again.
type PortState struct {
	Name     string // eth0, or mlx5_0/1
	Hardware bool   // false for bridges, tunnels, veth and the like
	RDMA     bool
	Up       bool
	State    string    // the driver's own word
	Layer    string    // of an RDMA port: InfiniBand or Ethernet
	Physical string    // of an RDMA port: LinkUp, Polling, Disabled and the like
	Rate     unit.Rate // 0 unknown
	Lanes    string    // of an RDMA port: 4X NDR
	// SlotGTs and SlotLanes are those of an RDMA port's slot of PCIe, as trained; 0 unknown.
	SlotGTs   float64
	SlotLanes int
	// Counters stand for something wrong where they rise, as in Read, here with those at zero.
	Counters map[string]uint64
	// Received and Sent are bytes since the driver was loaded.
	Received, Sent uint64
}

// maxPorts bounds how many ports are looked at; nodes of clusters have tens of them, and
// hosts of containers thousands that are no hardware.
const maxPorts = 512

// Ports reads the state of all network interfaces and RDMA ports below /sys/class. Of what is
// no hardware only traffic and state are read.
func Ports(fsys fs.FS) ([]PortState, error) {
	t := &tree{fs: fsys}
	var all []PortState
	nets, err := t.class("net")
	if err != nil {
		return nil, err
	}
	for _, e := range nets {
		if e.Name() != "lo" && e.Name() != "bonding_masters" && len(all) < maxPorts {
			all = append(all, t.netState(e.Name()))
		}
	}
	devices, err := t.class("infiniband")
	if err != nil {
		return nil, err
	}
	for _, d := range devices {
		for _, port := range t.list(path.Join("sys/class/infiniband", d.Name(), "ports")) {
			if len(all) < 2*maxPorts {
				all = append(all, t.rdmaState(d.Name(), port))
			}
		}
	}
	slices.SortFunc(all, func(a, b PortState) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// class lists a folder of devices; none where there is no such folder.
func (t *tree) class(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(t.fs, path.Join("sys/class", name))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return entries, err
}

func (t *tree) netState(name string) PortState {
	dir := path.Join("sys/class/net", name)
	p := PortState{
		Name: name, Hardware: t.isDir(path.Join(dir, "device")), State: t.attr(dir, "operstate"),
		Counters: map[string]uint64{},
	}
	p.Up = p.State == "up" || p.State == "unknown" && t.attr(dir, "carrier") == "1"
	p.Received, _ = t.counter(dir, "statistics/rx_bytes")
	p.Sent, _ = t.counter(dir, "statistics/tx_bytes")
	if !p.Hardware {
		return p
	}
	if mbit, ok := t.counter(dir, "speed"); ok && mbit < 1<<31 { // -1 without a link
		p.Rate = unit.Rate(mbit) * 1e6 / 8
	}
	t.addCounters(p.Counters, path.Join(dir, "statistics"), netCounters)
	t.addCounters(p.Counters, dir, []string{"carrier_changes"})
	return p
}

func (t *tree) rdmaState(device, port string) PortState {
	dir := path.Join("sys/class/infiniband", device, "ports", port)
	p := PortState{Name: device + "/" + port, Hardware: true, RDMA: true, Counters: map[string]uint64{}}
	_, p.State, _ = strings.Cut(t.attr(dir, "state"), ": ") // 4: ACTIVE
	p.Up = p.State == "ACTIVE"
	p.Layer = t.attr(dir, "link_layer")
	_, p.Physical, _ = strings.Cut(t.attr(dir, "phys_state"), ": ") // 5: LinkUp
	rate := t.attr(dir, "rate")                                     // 400 Gb/sec (4X NDR)
	p.Rate, _ = board.PortRate(rate)
	_, lanes, _ := strings.Cut(rate, "(")
	p.Lanes = strings.TrimSuffix(lanes, ")")
	slot := path.Join("sys/class/infiniband", device, "device")
	p.SlotGTs, p.SlotLanes = board.ParseGTs(t.attr(slot, "current_link_speed")),
		board.ParseLanes(t.attr(slot, "current_link_width"))
	t.addCounters(p.Counters, path.Join(dir, "counters"), portCounters)
	t.addCounters(p.Counters, path.Join(dir, "hw_counters"), transportCounters)
	// These two count words of four bytes, as the InfiniBand specification has them.
	received, _ := t.counter(dir, "counters/port_rcv_data")
	sent, _ := t.counter(dir, "counters/port_xmit_data")
	p.Received, p.Sent = 4*received, 4*sent
	return p
}
