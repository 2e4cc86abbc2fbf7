package device

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Limits on what one output of nvidia-smi may hold.
const (
	maxSMI    = 16 << 20
	maxGPUs   = 1024
	maxFields = 1 << 12 // of a GPU
	maxDepth  = 16
)

// ReadSMI reads the state of GPUs from what nvidia-smi -q -x prints: what NVML says, where busbar-gpu cannot ask it.
// Counters of NVLinks are not in it. What the driver does not tell ("N/A") is unknown.
func ReadSMI(data []byte) ([]State, error) {
	if len(data) > maxSMI {
		return nil, fmt.Errorf("nvidia-smi printed %d bytes; at most %d are read", len(data), maxSMI)
	}
	d := xml.NewDecoder(bytes.NewReader(data))
	d.Strict = false
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	var states []State
	var path []string
	var gpu smiFields
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("what nvidia-smi -q -x printed is no XML: %w", err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if path = append(path, t.Name.Local); len(path) > maxDepth {
				return nil, fmt.Errorf("nvidia-smi -q -x nests more than %d elements", maxDepth)
			}
			if len(path) == 2 && t.Name.Local == "gpu" {
				gpu = smiFields{}
				for _, a := range t.Attr {
					gpu["id"] = a.Value
				}
			}
		case xml.CharData:
			if text := strings.TrimSpace(string(t)); text != "" && gpu != nil && len(path) > 2 && len(gpu) < maxFields {
				gpu[strings.Join(path[2:], "/")] = text[:min(len(text), 256)]
			}
		case xml.EndElement:
			if len(path) == 2 && gpu != nil {
				states = append(states, gpu.state(len(states)))
				if gpu = nil; len(states) > maxGPUs {
					return nil, fmt.Errorf("nvidia-smi -q -x has more than %d GPUs", maxGPUs)
				}
			}
			path = path[:max(len(path)-1, 0)]
		}
	}
	if len(states) == 0 {
		return nil, errors.New("nvidia-smi -q -x names no GPU")
	}
	return states, nil
}

// smiFields are the texts of a GPU by their path below it. Releases of the driver differ in some.
type smiFields map[string]string

// text is the first of some fields that is told.
func (f smiFields) text(names ...string) (string, bool) {
	for _, n := range names {
		if v, ok := f[n]; ok && v != "N/A" && v != "[N/A]" && !strings.HasPrefix(v, "Requested functionality") {
			return v, true
		}
	}
	return "", false
}

// number is the number that a field begins with: "35 C", "16x", "1980 MHz".
func (f smiFields) number(names ...string) *float64 {
	v, ok := f.text(names...)
	if !ok {
		return nil
	}
	end := strings.IndexFunc(v, func(c rune) bool { return (c < '0' || c > '9') && c != '.' })
	if end >= 0 {
		v = v[:end]
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || n > 1<<40 {
		return nil
	}
	return &n
}

func (f smiFields) whole(names ...string) *int {
	if n := f.number(names...); n != nil {
		return new(int(*n))
	}
	return nil
}

// count adds fields up; nil where none is told.
func (f smiFields) count(names ...string) *int64 {
	var sum *int64
	for _, name := range names {
		if n := f.number(name); n != nil {
			if sum == nil {
				sum = new(int64)
			}
			*sum += int64(*n)
		}
	}
	return sum
}

// is tells a field that has one of two values.
func (f smiFields) is(yes string, names ...string) *bool {
	v, ok := f.text(names...)
	if !ok {
		return nil
	}
	return new(strings.EqualFold(v, yes))
}

// smiReasons are the reasons for lower clocks, by nvidia-smi's names.
var smiReasons = []struct{ name, text string }{
	{"sw_power_cap", "software power cap"},
	{"hw_slowdown", "hardware slowdown"},
	{"hw_thermal_slowdown", "hardware thermal slowdown"},
	{"hw_power_brake_slowdown", "hardware power brake"},
	{"sw_thermal_slowdown", "software thermal slowdown"},
}

func (f smiFields) state(index int) State {
	s := State{Index: index}
	s.Name, _ = f.text("product_name")
	s.UUID, _ = f.text("uuid")
	s.PCI, _ = f.text("pci/pci_bus_id", "id")
	for _, word := range []string{"GPU is lost", "GPU requires reset", "Unknown Error"} {
		for _, v := range []string{f["product_name"], f["uuid"], f["temperature/gpu_temp"]} {
			if strings.Contains(v, word) {
				s.Lost = word
			}
		}
	}
	s.SM, s.MaxSM = f.whole("clocks/sm_clock"), f.whole("max_clocks/sm_clock")
	s.Memory, s.MaxMemory = f.whole("clocks/mem_clock"), f.whole("max_clocks/mem_clock")
	for _, r := range smiReasons {
		for _, form := range []string{
			"clocks_event_reasons/clocks_event_reason_", "clocks_throttle_reasons/clocks_throttle_reason_",
		} {
			if f[form+r.name] == "Active" {
				s.Throttle = append(s.Throttle, r.text)
			}
		}
	}
	s.Power = f.number("gpu_power_readings/instant_power_draw", "gpu_power_readings/power_draw",
		"power_readings/power_draw")
	s.PowerLimit = f.number("gpu_power_readings/current_power_limit", "gpu_power_readings/power_limit",
		"power_readings/power_limit")
	s.DefaultLimit = f.number("gpu_power_readings/default_power_limit", "power_readings/default_power_limit")
	s.Temperature, s.SlowAt = f.whole("temperature/gpu_temp"), f.whole("temperature/gpu_temp_slow_threshold")
	s.ECC = f.is("Enabled", "ecc_mode/current_ecc")
	s.Uncorrected = f.count("ecc_errors/volatile/dram_uncorrectable", "ecc_errors/volatile/sram_uncorrectable",
		"ecc_errors/volatile/sram_uncorrectable_parity", "ecc_errors/volatile/sram_uncorrectable_secded")
	s.Corrected = f.count("ecc_errors/volatile/dram_correctable", "ecc_errors/volatile/sram_correctable")
	s.Remapped = narrow(f.count("remapped_rows/remapped_row_corr", "remapped_rows/remapped_row_unc"))
	s.RemapPending, s.RemapFailed = f.is("Yes", "remapped_rows/remapped_row_pending"),
		f.is("Yes", "remapped_rows/remapped_row_failure")
	s.Retired = narrow(f.count("retired_pages/multiple_single_bit_retirement/retired_count",
		"retired_pages/double_bit_retirement/retired_count"))
	s.RetirePending = f.is("Yes", "retired_pages/pending_blacklist", "retired_pages/pending_retirement")
	s.PCIeGen, s.MaxPCIeGen = f.whole("pci/pci_gpu_link_info/pcie_gen/current_link_gen"),
		f.whole("pci/pci_gpu_link_info/pcie_gen/max_link_gen")
	s.PCIeWidth, s.MaxPCIeWidth = f.whole("pci/pci_gpu_link_info/link_widths/current_link_width"),
		f.whole("pci/pci_gpu_link_info/link_widths/max_link_width")
	s.Replays = f.whole("pci/replay_counter")
	if v, ok := f.text("fabric/state"); ok {
		s.Fabric = strings.ToLower(v)
		if status, ok := f.text("fabric/status"); ok && s.Fabric == "completed" && !strings.EqualFold(status, "Success") {
			s.Fabric += ": " + status
		}
	}
	s.Persistent = f.is("Enabled", "persistence_mode")
	s.Utilization = f.whole("utilization/gpu_util")
	const mib = 1 << 20
	for _, x := range []struct {
		to   **int64
		from string
	}{{&s.Used, "fb_memory_usage/used"}, {&s.Total, "fb_memory_usage/total"}} {
		if n := f.number(x.from); n != nil {
			*x.to = new(int64(*n * mib))
		}
	}
	return s
}
