package device

import (
	"cmp"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"busbar.dev/internal/natural"
)

// ReadAMD reads the state of AMD's GPUs from what the driver amdgpu has in /sys, where busbar-gpu and nvidia-smi say
// nothing: clocks, power, temperature, errors of memory and XGMI, the PCIe link. root is the machine's /.
func ReadAMD(root fs.FS) []State {
	cards, err := fs.Glob(root, "sys/class/drm/card[0-9]*/device")
	if err != nil {
		return nil
	}
	natural.Sort(cards)
	var list []State
	for _, dir := range cards[:min(len(cards), maxGPUs)] {
		c := amdCard{root, dir}
		if strings.Contains(path.Base(path.Dir(dir)), "-") || c.text("vendor") != "0x1002" { // card0-DP-1 is a connector
			continue
		}
		list = append(list, c.state(len(list)))
	}
	return list
}

// amd is the vendor of a State.
const amd = "amd"

// amdCard is the folder of a GPU.
type amdCard struct {
	root fs.FS
	dir  string
}

// text is a file's, empty where it cannot be read: the driver has other files for other GPUs.
func (c amdCard) text(name string) string {
	f, err := c.root.Open(path.Join(c.dir, name))
	if err != nil {
		return ""
	}
	defer f.Close()
	data, _ := io.ReadAll(io.LimitReader(f, 4<<10)) // a driver that refuses leaves nothing
	return strings.TrimSpace(string(data))
}

// number is one of a file, divided.
func (c amdCard) number(name string, by int64) *int64 {
	v, err := strconv.ParseInt(c.text(name), 10, 64)
	if err != nil || v < 0 {
		return nil
	}
	v /= by
	return &v
}

func (c amdCard) state(index int) State {
	s := State{
		Index: index, Vendor: amd, Name: cmp.Or(c.text("product_name"), "AMD GPU "+c.text("device")),
		UUID: c.text("unique_id"), PCI: slotOf(c.text("uevent")),
		Utilization: narrow(c.number("gpu_busy_percent", 1)), Used: c.number("mem_info_vram_used", 1),
		Total:     c.number("mem_info_vram_total", 1),
		PCIeWidth: narrow(c.number("current_link_width", 1)), MaxPCIeWidth: narrow(c.number("max_link_width", 1)),
		Replays: narrow(c.number("pcie_replay_count", 1)),
		PCIeGen: generation(c.text("current_link_speed")), MaxPCIeGen: generation(c.text("max_link_speed")),
	}
	s.SM, s.MaxSM = levels(c.text("pp_dpm_sclk"))
	s.Memory, s.MaxMemory = levels(c.text("pp_dpm_mclk"))
	s.Corrected, s.Uncorrected = c.errors()
	if on := s.Corrected != nil; on {
		s.ECC = &on
	}
	folders, _ := fs.Glob(c.root, path.Join(c.dir, "hwmon/hwmon*")) // a pattern that is right
	for _, f := range folders[:min(len(folders), 1)] {
		m := amdCard{c.root, f}
		for _, name := range []string{"power1_average", "power1_input"} {
			if s.Power == nil {
				s.Power = watts(m.number(name, 1))
			}
		}
		s.PowerLimit, s.DefaultLimit = watts(m.number("power1_cap", 1)), watts(m.number("power1_cap_default", 1))
		for _, t := range []string{"temp2", "temp1"} { // of the junction, where there is one
			if s.Temperature == nil {
				s.Temperature, s.SlowAt = narrow(m.number(t+"_input", 1000)), narrow(m.number(t+"_crit", 1000))
			}
		}
	}
	return s
}

// errors are those that the driver counted in all blocks of the GPU: memory (umc), XGMI, caches. nil where none counts.
func (c amdCard) errors() (corrected, uncorrected *int64) {
	files, _ := fs.Glob(c.root, path.Join(c.dir, "ras/*_err_count"))
	for _, f := range files[:min(len(files), 64)] {
		ue, ce, ok := rasCounts(amdCard{c.root, path.Dir(f)}.text(path.Base(f)))
		if !ok {
			continue
		}
		if corrected == nil {
			corrected, uncorrected = new(int64), new(int64)
		}
		*corrected += ce
		*uncorrected += ue
	}
	return corrected, uncorrected
}

// rasCounts reads "ue: 0" and "ce: 12", a line each.
func rasCounts(text string) (ue, ce int64, ok bool) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 32)
		if err != nil || n < 0 {
			continue
		}
		switch strings.TrimSpace(name) {
		case "ue":
			ue, ok = n, true
		case "ce":
			ce, ok = n, true
		}
	}
	return ue, ce, ok
}

// levels are the clock that is taken now and the highest, in MHz, of lines such as "1: 2100Mhz *".
func levels(text string) (now, highest *int) {
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(line, ":")
		digits, _, found := strings.Cut(strings.ToLower(rest), "mhz")
		mhz, err := strconv.Atoi(strings.TrimSpace(digits))
		if err != nil || !found || mhz < 0 || mhz > 1e6 {
			continue
		}
		if strings.Contains(rest, "*") {
			now = &mhz
		}
		if highest == nil || mhz > *highest {
			highest = &mhz
		}
	}
	return now, highest
}

// generation is that of a PCIe link: 16.0 GT/s is the fourth.
func generation(speed string) *int {
	rate, _, _ := strings.Cut(speed, " ")
	for i, gt := range []string{"2.5", "5.0", "8.0", "16.0", "32.0", "64.0"} {
		if rate == gt {
			return new(i + 1)
		}
	}
	return nil
}

// slotOf is the PCI address in a device's uevent.
func slotOf(text string) string {
	for line := range strings.Lines(text) {
		if at, ok := strings.CutPrefix(line, "PCI_SLOT_NAME="); ok {
			return strings.TrimSpace(at)
		}
	}
	return ""
}

func narrow(v *int64) *int {
	if v == nil || *v > 1e9 {
		return nil
	}
	return new(int(*v))
}

func watts(micro *int64) *float64 {
	if micro == nil || *micro == 0 {
		return nil
	}
	return new(float64(*micro) / 1e6)
}
