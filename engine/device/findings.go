package device

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/internal/words"
)

// Findings are what is wrong with the GPUs of a host. What is expected is what the GPU itself says it can do, and what
// the other GPUs of the host do; no table of ours.
func Findings(host string, states []State) []finding.Finding {
	var list []finding.Finding
	for _, s := range states {
		j := judge{host: host, state: s}
		j.memory()
		j.clocks()
		j.links(states)
		list = append(list, j.list...)
	}
	return list
}

// maxRetired is how many retired pages NVIDIA's guidance takes for reason to replace a GPU; its list holds 64.
const maxRetired = 60

// judge looks at one GPU.
type judge struct {
	host  string
	state State
	list  []finding.Finding
}

func (j *judge) add(id string, severity finding.Severity, fix, format string, args ...any) {
	where, of := fmt.Sprintf("gpu%d", j.state.Index), ""
	if j.host != "" {
		where, of = j.host+"/"+where, " of "+j.host
	}
	j.list = append(j.list, finding.Finding{
		ID: id, Severity: severity, Confidence: 1, Where: where, Nodes: []string{j.host}, Fix: fix,
		Text: fmt.Sprintf("GPU %d%s ", j.state.Index, of) + fmt.Sprintf(format, args...),
	})
}

// memory looks at what the GPU's memory went through.
func (j *judge) memory() {
	s := j.state
	if s.Lost != "" {
		j.add("gpu-lost", finding.Error, "Reset the GPU or reboot the node; Xid 79 in the kernel's log says that it fell "+
			"off the bus.", "does not answer: %s", s.Lost)
	}
	if s.Uncorrected != nil && *s.Uncorrected > 0 {
		what := words.Plural(int(*s.Uncorrected), "uncorrectable memory error")
		if s.Vendor == amd {
			what = words.Plural(int(*s.Uncorrected), "uncorrectable error") + " (of memory, XGMI or caches)"
		}
		j.add("gpu-ecc", finding.Error, "Drain the node and reset the GPU; replace it where errors return.",
			"had %s since the driver was loaded", what)
	}
	if s.RemapFailed != nil && *s.RemapFailed {
		j.add("gpu-remap-failed", finding.Error, "Replace the GPU.",
			"could not replace a bad row of its memory: no spare rows are left")
	}
	if s.RemapPending != nil && *s.RemapPending {
		j.add("gpu-remap-pending", finding.Warn, "Drain the node and reset the GPU.",
			"replaces a bad row of its memory at its next reset")
	}
	if s.Retired != nil && *s.Retired >= maxRetired {
		j.add("gpu-pages-retired", finding.Error,
			"Drain the node and replace the GPU, where NVIDIA's field diagnostic agrees.",
			"has %d retired pages of memory: %d or more are reason to replace it", *s.Retired, maxRetired)
	}
	if s.RetirePending != nil && *s.RetirePending {
		j.add("gpu-retire-pending", finding.Warn, "Drain the node and reset the GPU, or reboot.",
			"keeps a bad page of its memory in use until its driver is loaded anew")
	}
	if s.ECC != nil && !*s.ECC {
		j.add("gpu-ecc-off", finding.Note, "nvidia-smi -e 1 and a reset turn it on.",
			"does not correct memory errors (ECC is off)")
	}
}

// hardware are reasons for lower clocks that no setting explains.
var hardware = []string{
	"hardware slowdown", "hardware thermal slowdown", "hardware power brake", "software thermal slowdown",
}

// busy is the utilization from which a GPU's clock says something: idle ones lower it.
const busy = 90

// clocks looks at clocks, power and temperature.
func (j *judge) clocks() {
	s := j.state
	named := false
	for _, why := range s.Throttle {
		if slices.Contains(hardware, why) {
			named = true
			j.add("gpu-throttled", finding.Error, "Look at cooling and power of the node.", "runs slower than asked for: %s%s",
				why, j.celsius())
		}
	}
	if s.PowerLimit != nil && s.DefaultLimit != nil && *s.PowerLimit < *s.DefaultLimit {
		named = true
		fix := fmt.Sprintf("nvidia-smi -i %d -pl %.0f restores it.", s.Index, *s.DefaultLimit)
		if s.Vendor == amd {
			fix = fmt.Sprintf("rocm-smi -d %d --resetpoweroverdrive restores it.", s.Index)
		}
		j.add("gpu-power-limit", finding.Warn, fix, "may take %.0f W only; %.0f W is its default%s", *s.PowerLimit,
			*s.DefaultLimit, j.slowed())
	}
	// AMD's clocks follow the power that is left, and the driver names no reasons.
	if s.Vendor != amd && s.Utilization != nil && *s.Utilization >= busy && s.SM != nil && s.MaxSM != nil &&
		len(s.Throttle) == 0 && 10**s.SM < 9**s.MaxSM && !named {
		j.add("gpu-clock-low", finding.Warn, fmt.Sprintf("nvidia-smi -i %d -rgc frees locked clocks.", s.Index),
			"runs at %d of %d MHz under load, and the driver names no reason: its clocks are locked", *s.SM, *s.MaxSM)
	}
	if s.Temperature != nil && s.SlowAt != nil && *s.Temperature >= *s.SlowAt-3 && !named {
		j.add("gpu-hot", finding.Warn, "Look at the node's cooling.", "is at %d °C; it slows down at %d °C", *s.Temperature,
			*s.SlowAt)
	}
	if s.Persistent != nil && !*s.Persistent {
		j.add("gpu-persistence", finding.Note, "nvidia-smi -pm 1, or nvidia-persistenced, keeps the driver loaded.",
			"is set up anew by every job (persistence mode is off)")
	}
}

func (j *judge) celsius() string {
	if j.state.Temperature == nil {
		return ""
	}
	return fmt.Sprintf(" (%d °C)", *j.state.Temperature)
}

func (j *judge) slowed() string {
	s := j.state
	if slices.Contains(s.Throttle, "software power cap") && s.SM != nil && s.MaxSM != nil {
		return fmt.Sprintf(", and it runs at %d of %d MHz for it", *s.SM, *s.MaxSM)
	}
	return ""
}

// links looks at PCIe, NVLink and the fabric.
func (j *judge) links(all []State) {
	s := j.state
	if s.PCIeWidth != nil && s.MaxPCIeWidth != nil && *s.PCIeWidth < *s.MaxPCIeWidth {
		j.add("gpu-pcie-width", finding.Error, "Reseat the GPU or its riser; look at the slot.", "has %d PCIe lanes of %d",
			*s.PCIeWidth, *s.MaxPCIeWidth)
	}
	// idle GPUs lower it
	if s.PCIeGen != nil && s.MaxPCIeGen != nil && *s.PCIeGen < *s.MaxPCIeGen && s.Utilization != nil &&
		*s.Utilization >= busy {
		j.add("gpu-pcie-generation", finding.Warn, "Look at the slot's setting in the firmware.",
			"runs PCIe generation %d under load; it can do %d", *s.PCIeGen, *s.MaxPCIeGen)
	}
	var down []string
	up, errors := 0, int64(0)
	for _, l := range s.NVLinks {
		if l.Active {
			up++
		} else {
			down = append(down, fmt.Sprint(l.Link))
		}
		if l.Errors != nil {
			errors += *l.Errors
		}
	}
	most := 0
	for _, o := range all {
		n := 0
		for _, l := range o.NVLinks {
			if l.Active {
				n++
			}
		}
		most = max(most, n)
	}
	// A GPU without any may have none wired; one with fewer than its peers has lost some.
	if len(down) > 0 && (up > 0 || most > 0) {
		j.add("gpu-nvlink-down", finding.Error, "Reset the GPU and the NVSwitches; reseat or replace what stays down.",
			"has %s down: %s", words.Plural(len(down), "NVLink"), strings.Join(down, ", "))
	}
	if errors > 0 {
		j.add("gpu-nvlink-errors", finding.Note, "Compare the counters again after a job: only those that grow matter.",
			"counted %s on its NVLinks", words.Plural(int(errors), "error"))
	}
	if s.Fabric == "not started" || s.Fabric == "in progress" || strings.HasPrefix(s.Fabric, "completed: ") {
		j.add("gpu-fabric", finding.Error, "Look at nvidia-fabricmanager's log.", "is not part of the NVLink fabric: %s",
			s.Fabric)
	}
}
