package health

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"busbar.dev/engine/device"
	"busbar.dev/finding"
	"busbar.dev/internal/words"
)

// onBus are NVIDIA's GPUs that the PCI bus shows.
type onBus struct {
	ours   []string // addresses of those that the driver has, or should have
	hidden int      // that a container or the job's limits keep from this process
}

// readBus finds them. GPUs that another driver has are a guest's, or a display's.
func (s *Sources) readBus() (b onBus) {
	if s.Root == nil {
		return b
	}
	const dir = "sys/bus/pci/devices"
	entries, _ := fs.ReadDir(s.Root, dir)
	for _, e := range entries[:min(len(entries), 1<<14)] {
		at := path.Join(dir, e.Name())
		class := s.word(at, "class")
		compute := strings.HasPrefix(class, "0x0302") // 3D controller
		if s.word(at, "vendor") != "0x10de" || !compute && !strings.HasPrefix(class, "0x0300") {
			continue
		}
		if _, err := fs.ReadLink(s.Root, path.Join(at, "physfn")); err == nil {
			continue // a virtual function
		}
		driver, err := fs.ReadLink(s.Root, path.Join(at, "driver"))
		switch {
		case err != nil && compute, path.Base(driver) == "nvidia" && !s.kept(e.Name()):
			b.ours = append(b.ours, e.Name())
		case path.Base(driver) == "nvidia":
			b.hidden++
		}
	}
	return b
}

func (s *Sources) word(parts ...string) string {
	data, err := fs.ReadFile(s.Root, path.Join(parts...))
	if err != nil || len(data) > 4096 {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// kept reports a GPU that is not for this process: containers do not show it in /proc, and the limits of a job refuse
// its device file.
func (s *Sources) kept(addr string) bool {
	about := s.word("proc/driver/nvidia/gpus", addr, "information")
	if about == "" {
		return true
	}
	_, minor, ok := strings.Cut(about, "Device Minor:")
	fields := strings.Fields(minor)
	return ok && len(fields) > 0 && s.May != nil && s.May("/dev/nvidia"+fields[0]) != nil
}

// missing are GPUs on the bus that the driver does not list.
func (b onBus) missing(host string, r *Report) []finding.Finding {
	var lost []string
	for _, addr := range b.ours {
		if !slices.ContainsFunc(r.GPUs, func(g device.State) bool { return samePCI(g.PCI, addr) }) {
			lost = append(lost, addr)
		}
	}
	if len(lost) == 0 || len(r.GPUs) >= len(b.ours) { // of those without an address nobody knows which they are
		return nil
	}
	return []finding.Finding{{
		ID: GPUMissing, Severity: finding.Error, Confidence: 1, Where: host + "/" + lost[0], Nodes: []string{host},
		Text: fmt.Sprintf("%d of %s of %s: the driver does not list %s, which is on the PCI bus", len(r.GPUs),
			words.Plural(len(b.ours), "GPU"), host, strings.Join(lost, ", ")),
		Fix: fixLost,
	}}
}

// GPUMissing is a GPU that should be there.
const GPUMissing = "gpu-missing"

const fixLost = "Drain the node; dmesg has Xid 79 where a GPU fell off the bus. Reset it or reboot, reseat or " +
	"replace it where it stays away."

// silent is a driver that does not answer, or fails, where there are GPUs.
func (b onBus) silent(s *Sources, asked, hung bool, err error) []finding.Finding {
	there := len(b.ours) > 0
	if s.Root != nil && b.hidden == 0 && !there {
		_, no := fs.Stat(s.Root, "dev/nvidia0")
		there = no == nil && (s.May == nil || s.May("/dev/nvidia0") == nil)
	}
	f := finding.Finding{
		Severity: finding.Error, Confidence: 1, Where: s.Host, Nodes: []string{s.Host},
		Fix: "Drain the node; look at dmesg for NVRM and Xid, then reload the driver or reboot.",
	}
	switch {
	case hung && (asked || there):
		f.ID, f.Text = "gpu-driver-hangs", fmt.Sprintf("the GPU driver of %s gives no answer within %v", s.Host, s.limit())
	case asked && there:
		f.ID, f.Text = "gpu-driver-fails", fmt.Sprintf("the GPU driver of %s fails: %v", s.Host, err)
		if n := len(b.ours); n > 0 {
			f.Text = fmt.Sprintf("the GPU driver of %s fails, with %s on the PCI bus: %v", s.Host, words.Plural(n, "GPU"), err)
		}
	default:
		return nil
	}
	return []finding.Finding{f}
}
