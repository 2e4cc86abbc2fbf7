package ncclxml

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
)

// intel reports the presets that neither library can drive.
func intel(t *cluster.NodeType) bool {
	return slices.ContainsFunc(t.Devices, func(d cluster.Device) bool { return d.GPU != nil && d.GPU.Vendor == "intel" })
}

// TestPresets writes every machine of the catalogue and reads it back. What
// NCCL reads of it is the same afterwards.
func TestPresets(t *testing.T) {
	for _, p := range hardware.Presets() {
		t.Run(p.Name, func(t *testing.T) {
			nt, err := hardware.Node(p.Name)
			if err != nil {
				t.Fatal(err)
			}
			if nt.Trays > 1 {
				nt = nt.Tray(0)
			}
			var out strings.Builder
			_, err = Write(&out, nt)
			if intel(nt) {
				if err == nil || !strings.Contains(err.Error(), "accelerators are Intel's") {
					t.Error(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := accepted(out.String()); err != nil {
				t.Errorf("%v in\n%s", err, out.String())
			}
			f := read(t, out.String())
			if len(f.Warnings) > 0 {
				t.Error(f.Warnings)
			}
			if nt.Count(cluster.NUMA) > 0 {
				same(t, nt, f.Types[0])
			} else if now := f.Types[0]; now.Count(cluster.GPU) != nt.Count(cluster.GPU) || now.Count(cluster.NUMA) != 1 {
				t.Errorf("a GPU alone became %+v", now.Devices)
			}
			if t.Failed() {
				t.Log(out.String())
			}
		})
	}
}

// same compares what survives writing.
func same(t *testing.T, was, now *cluster.NodeType) {
	a, b := said(was), said(now)
	for _, line := range a {
		if !slices.Contains(b, line) {
			t.Errorf("lost: %s", line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			t.Errorf("new: %s", line)
		}
	}
}

// said lists what a type says that the format can say: no sockets, no host bridges, no models.
func said(nt *cluster.NodeType) []string {
	var out []string
	names := make([]string, len(nt.Devices))
	for i := range nt.Devices {
		names[i] = nt.Devices[i].Name
	}
	// Switches are numbered anew: they are told by what they hold. What hangs on a host bridge hangs on its domain.
	var rename func(d int) string
	rename = func(d int) string {
		switch kind := nt.Devices[d].Kind; kind {
		case cluster.RootComplex:
			return rename(nt.Devices[d].Parent)
		case cluster.PCISwitch:
			var below []string
			for i := range nt.Devices {
				if nt.Devices[i].Parent == d {
					below = append(below, rename(i))
				}
			}
			slices.Sort(below)
			return fmt.Sprintf("%s%v", kind, below)
		}
		return names[d]
	}
	for i := range nt.Devices {
		d := &nt.Devices[i]
		if d.Kind == cluster.RootComplex || d.Kind == cluster.Socket {
			continue
		}
		line := fmt.Sprintf("%s %q ", rename(i), d.Label)
		if !strings.HasPrefix(string(d.PCI), "fffe:") { // made up
			line += string(d.PCI)
		}
		if d.Parent >= 0 && nt.Devices[d.Parent].Kind != cluster.Socket {
			line += " below " + rename(d.Parent)
		}
		if d.GPU != nil {
			line += fmt.Sprintf(" sm %d %s gdr %v", d.GPU.SM, d.GPU.Arch, d.GPU.GDR)
		}
		if d.NIC != nil {
			line += fmt.Sprintf(" gdr %v reduction %v %v", d.NIC.GDR, d.NIC.Reduction, d.NIC.Rate().Value)
			for _, p := range d.NIC.Ports {
				line += fmt.Sprintf(" port %d", p.Num)
			}
		}
		if d.Kind == cluster.NUMA && d.CPU != nil {
			line += fmt.Sprintf(" %s %s %d %d %s", d.CPU.Arch, d.CPU.Vendor, d.CPU.Family, d.CPU.Model, d.CPU.Cores)
		}
		out = append(out, line)
	}
	for _, l := range nt.Links {
		if known := l.Kind != cluster.PCIe || l.Lanes > 0; known && l.Kind != cluster.OnDie {
			ends := []string{rename(l.A), rename(l.B)}
			slices.Sort(ends)
			out = append(out, fmt.Sprintf("%s–%s %s %d %g %v", ends[0], ends[1], l.Kind, l.Lanes, l.GTs, l.OneWay))
		}
	}
	return out
}
