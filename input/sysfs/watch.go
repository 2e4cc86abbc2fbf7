package sysfs

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
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
	w := watched{fsys}
	var all []PortState
	nets, err := fs.ReadDir(fsys, "sys/class/net")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range nets {
		if e.Name() == "lo" || e.Name() == "bonding_masters" || len(all) == maxPorts {
			continue
		}
		all = append(all, w.net(e.Name()))
	}
	devices, err := fs.ReadDir(fsys, "sys/class/infiniband")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, d := range devices {
		ports, _ := fs.ReadDir(fsys, path.Join("sys/class/infiniband", d.Name(), "ports"))
		for _, p := range ports {
			if len(all) < 2*maxPorts {
				all = append(all, w.rdma(d.Name(), p.Name()))
			}
		}
	}
	slices.SortFunc(all, func(a, b PortState) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// watched reads attributes, each a short file of which nothing is said when it cannot be read.
type watched struct{ fsys fs.FS }

func (w watched) text(name string) string {
	data, err := fs.ReadFile(w.fsys, name)
	if err != nil || len(data) > 4096 {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func (w watched) number(name string) (uint64, bool) {
	v, err := strconv.ParseUint(w.text(name), 10, 64)
	return v, err == nil
}

func (w watched) count(into map[string]uint64, dir string, names []string) {
	for _, n := range names {
		if v, ok := w.number(path.Join(dir, n)); ok {
			into[n] = v
		}
	}
}

func (w watched) net(name string) PortState {
	dir := path.Join("sys/class/net", name)
	p := PortState{Name: name, State: w.text(path.Join(dir, "operstate")), Counters: map[string]uint64{}}
	_, err := fs.Stat(w.fsys, path.Join(dir, "device"))
	p.Hardware = err == nil
	carrier, _ := w.number(path.Join(dir, "carrier"))
	p.Up = p.State == "up" || p.State == "unknown" && carrier == 1
	p.Received, _ = w.number(path.Join(dir, "statistics/rx_bytes"))
	p.Sent, _ = w.number(path.Join(dir, "statistics/tx_bytes"))
	if !p.Hardware {
		return p
	}
	if mbit, ok := w.number(path.Join(dir, "speed")); ok && mbit < 1<<31 { // -1 without a link
		p.Rate = unit.Rate(mbit) * 1e6 / 8
	}
	w.count(p.Counters, path.Join(dir, "statistics"), netCounters)
	w.count(p.Counters, dir, []string{"carrier_changes"})
	return p
}

func (w watched) rdma(device, port string) PortState {
	dir := path.Join("sys/class/infiniband", device, "ports", port)
	p := PortState{Name: device + "/" + port, Hardware: true, RDMA: true, Counters: map[string]uint64{}}
	_, state, _ := strings.Cut(w.text(path.Join(dir, "state")), ": ") // 4: ACTIVE
	p.State, p.Up = state, state == "ACTIVE"
	p.Layer = w.text(path.Join(dir, "link_layer"))
	_, p.Physical, _ = strings.Cut(w.text(path.Join(dir, "phys_state")), ": ") // 5: LinkUp
	word, rest, _ := strings.Cut(w.text(path.Join(dir, "rate")), " ")          // 400 Gb/sec (4X NDR)
	_, rest, _ = strings.Cut(rest, "(")
	p.Lanes = strings.TrimSuffix(rest, ")")
	if gbit, err := strconv.ParseFloat(word, 64); err == nil && gbit > 0 && gbit < 1e6 {
		p.Rate = unit.Rate(gbit * 1e9 / 8)
	}
	slot := path.Join("sys/class/infiniband", device, "device")
	p.SlotGTs, p.SlotLanes = board.ParseGTs(w.text(path.Join(slot, "current_link_speed"))),
		board.ParseLanes(w.text(path.Join(slot, "current_link_width")))
	w.count(p.Counters, path.Join(dir, "counters"), portCounters)
	w.count(p.Counters, path.Join(dir, "hw_counters"), transportCounters)
	// These two count words of four bytes, as the InfiniBand specification has them.
	received, _ := w.number(path.Join(dir, "counters/port_rcv_data"))
	sent, _ := w.number(path.Join(dir, "counters/port_xmit_data"))
	p.Received, p.Sent = 4*received, 4*sent
	return p
}
