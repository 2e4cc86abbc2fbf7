//go:build linux

package native

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"busbar.dev/engine/device"
)

// nvml is the driver's management library.
type nvml struct {
	*library
	Init         uintptr `nvml:"nvmlInit_v2"`
	Error        uintptr `nvml:"nvmlErrorString"`
	Count        uintptr `nvml:"nvmlDeviceGetCount_v2"`
	ByIndex      uintptr `nvml:"nvmlDeviceGetHandleByIndex_v2"`
	ByPCI        uintptr `nvml:"nvmlDeviceGetHandleByPciBusId_v2"`
	Name         uintptr `nvml:"nvmlDeviceGetName"`
	UUID         uintptr `nvml:"nvmlDeviceGetUUID"`
	PCI          uintptr `nvml:"nvmlDeviceGetPciInfo_v3"`
	Clock        uintptr `nvml:"nvmlDeviceGetClockInfo"`
	MaxClock     uintptr `nvml:"nvmlDeviceGetMaxClockInfo"`
	Reasons      uintptr `nvml:"nvmlDeviceGetCurrentClocksThrottleReasons"`
	Power        uintptr `nvml:"nvmlDeviceGetPowerUsage"`
	PowerLimit   uintptr `nvml:"?nvmlDeviceGetEnforcedPowerLimit"`
	DefaultLimit uintptr `nvml:"?nvmlDeviceGetPowerManagementDefaultLimit"`
	Temperature  uintptr `nvml:"nvmlDeviceGetTemperature"`
	Threshold    uintptr `nvml:"?nvmlDeviceGetTemperatureThreshold"`
	ECC          uintptr `nvml:"?nvmlDeviceGetEccMode"`
	Errors       uintptr `nvml:"?nvmlDeviceGetTotalEccErrors"`
	Remapped     uintptr `nvml:"?nvmlDeviceGetRemappedRows"`
	Gen          uintptr `nvml:"?nvmlDeviceGetCurrPcieLinkGeneration"`
	MaxGen       uintptr `nvml:"?nvmlDeviceGetMaxPcieLinkGeneration"`
	Width        uintptr `nvml:"?nvmlDeviceGetCurrPcieLinkWidth"`
	MaxWidth     uintptr `nvml:"?nvmlDeviceGetMaxPcieLinkWidth"`
	Replays      uintptr `nvml:"?nvmlDeviceGetPcieReplayCounter"`
	Link         uintptr `nvml:"?nvmlDeviceGetNvLinkState"`
	LinkErrors   uintptr `nvml:"?nvmlDeviceGetNvLinkErrorCounter"`
	Fabric       uintptr `nvml:"?nvmlDeviceGetGpuFabricInfoV"`
	Persistence  uintptr `nvml:"?nvmlDeviceGetPersistenceMode"`
	Utilization  uintptr `nvml:"?nvmlDeviceGetUtilizationRates"`
	Processes    uintptr `nvml:"?nvmlDeviceGetComputeRunningProcesses_v3"`
	Memory       uintptr `nvml:"?nvmlDeviceGetMemoryInfo"`
}

func openNVML() (*nvml, error) {
	l, err := load("libnvidia-ml.so.1 (NVML)", setting("NVML"), []string{"libnvidia-ml.so.1"}, driverFolders)
	if err != nil {
		return nil, err
	}
	n := &nvml{library: l}
	if err := l.symbols(n, "nvml"); err != nil {
		return nil, err
	}
	l.words = func(code int) string { return returned(n.Error, uintptr(code)) }
	n.do("nvmlInit", n.Init)
	return n, nil
}

// ask calls a function whose last argument is where its answer goes; nil where the driver does not know it.
func ask[T any](f uintptr, args []any) *T {
	v := new(T)
	if pass(f, append(args, v)...) != 0 {
		return nil
	}
	return v
}

// number asks for one unsigned number.
func number(f uintptr, args ...any) *int {
	return as(ask[uint32](f, args), func(v uint32) int { return int(v) })
}

func large(f uintptr, args ...any) *int64 { return ask[int64](f, args) }

// as is what a value that is known means.
func as[T, U any](p *T, of func(T) U) *U {
	if p == nil {
		return nil
	}
	return new(of(*p))
}

func milli(p *int) *float64 { return as(p, func(v int) float64 { return float64(v) / 1e3 }) }

// reasons are NVML's bits for lower clocks, in nvidia-smi's words. An idle GPU's is none.
func reasons(bits int64) []string {
	names := []string{
		"", "applications clocks setting", "software power cap", "hardware slowdown", "sync boost",
		"software thermal slowdown", "hardware thermal slowdown", "hardware power brake", "display clock setting",
	}
	var list []string
	for i, name := range names {
		if bits>>i&1 == 1 && name != "" {
			list = append(list, name)
		}
	}
	return list
}

// states asks for all GPUs.
func (n *nvml) states() []device.State {
	var count uint32
	n.do("nvmlDeviceGetCount", n.Count, &count)
	list := make([]device.State, count)
	for i := range list {
		var h uintptr
		list[i].Index = i
		if code := pass(n.ByIndex, i, &h); code != 0 {
			list[i].Lost = n.failure("nvmlDeviceGetHandleByIndex", code).Error()
			continue
		}
		n.fill(&list[i], h)
	}
	return list
}

func (n *nvml) fill(s *device.State, h uintptr) {
	var name, uuid, pci [128]byte
	pass(n.Name, h, &name, len(name))
	pass(n.UUID, h, &uuid, len(uuid))
	pass(n.PCI, h, &pci)
	s.Name, s.UUID, s.PCI = chars(name[:]), chars(uuid[:]), strings.ToLower(chars(pci[36:68])) // nvmlPciInfo_t.busId
	s.SM, s.MaxSM = number(n.Clock, h, 1), number(n.MaxClock, h, 1)
	s.Memory, s.MaxMemory = number(n.Clock, h, 2), number(n.MaxClock, h, 2)
	if bits := large(n.Reasons, h); bits != nil {
		s.Throttle = reasons(*bits)
	}
	s.Power, s.PowerLimit, s.DefaultLimit = milli(number(n.Power, h)), milli(number(n.PowerLimit, h)),
		milli(number(n.DefaultLimit, h))
	s.Temperature, s.SlowAt = number(n.Temperature, h, 0), number(n.Threshold, h, 1)
	var now, next uint32
	if pass(n.ECC, h, &now, &next) == 0 {
		s.ECC = new(now != 0)
	}
	s.Corrected, s.Uncorrected = large(n.Errors, h, 0, 0), large(n.Errors, h, 1, 0)
	var fixed, broken, pending, failedRows uint32
	if pass(n.Remapped, h, &fixed, &broken, &pending, &failedRows) == 0 {
		s.Remapped, s.RemapPending, s.RemapFailed = new(int(fixed+broken)), new(pending != 0), new(failedRows != 0)
	}
	s.PCIeGen, s.MaxPCIeGen, s.PCIeWidth, s.MaxPCIeWidth = number(n.Gen, h), number(n.MaxGen, h), number(n.Width, h),
		number(n.MaxWidth, h)
	s.Replays, s.Fabric = number(n.Replays, h), n.fabric(h)
	s.Persistent = as(number(n.Persistence, h), func(v int) bool { return v != 0 })
	n.links(s, h)
	if use := ask[[2]uint32](n.Utilization, []any{h}); use != nil {
		s.Utilization = new(int(use[0]))
	}
	if memory := ask[[3]int64](n.Memory, []any{h}); memory != nil { // total, free, used
		s.Total, s.Used = &memory[0], &memory[2]
	}
	n.users(s, h)
}

// users are the processes that compute on a GPU.
func (n *nvml) users(s *device.State, h uintptr) {
	const tooSmall, most = 7, 256 // for their list: they are only counted then
	// nvmlProcessInfo_t: a process, its memory, and the instances of a divided GPU.
	var list [most]struct {
		pid, _              uint32
		memory              uint64
		instance, computing uint32
	}
	processes := uint32(most)
	switch pass(n.Processes, h, &processes, &list) {
	case 0:
		for _, p := range list[:min(processes, most)] {
			if int(p.pid) == os.Getpid() {
				continue
			}
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.pid))
			s.Users = append(s.Users, device.User{PID: int(p.pid), Name: strings.TrimSpace(string(name))})
		}
	case tooSmall:
	default:
		return
	}
	s.Processes = new(int(processes))
}

func (n *nvml) links(s *device.State, h uintptr) {
	const most = 36
	for l := range uintptr(most) {
		active := number(n.Link, h, l)
		if active == nil {
			return
		}
		x := device.NVLink{Link: int(l), Active: *active != 0}
		for counter := range uintptr(4) {
			if v := large(n.LinkErrors, h, l, counter); v != nil && x.Active {
				if x.Errors == nil {
					x.Errors = new(int64)
				}
				*x.Errors += *v
			}
		}
		s.NVLinks = append(s.NVLinks, x)
	}
}

// fabric is how far the GPU has come with registering at the NVLink fabric.
func (n *nvml) fabric(h uintptr) string {
	var info struct {
		version uint32
		cluster [16]byte
		status  int32
		clique  uint32
		state   uint8
		health  uint32
	}
	info.version = uint32(unsafe.Sizeof(info)) | 2<<24
	if pass(n.Fabric, h, &info) != 0 || info.state > 3 {
		return ""
	}
	if info.state == 3 && info.status != 0 {
		return fmt.Sprintf("completed: failed with %d", info.status)
	}
	return []string{"not supported", "not started", "in progress", "completed"}[info.state]
}

// watch samples clocks and power until the function that it returns is called. It does nothing where NVML is missing.
func (w *Worker) watch() func(*device.Result) {
	var h uintptr
	name := append([]byte(w.pci), 0)
	if w.loadNVML() != nil || pass(w.nvml.ByPCI, &name[0], &h) != 0 {
		return func(*device.Result) {}
	}
	n := w.nvml
	var clocks []int
	var watts []float64
	var bits int64
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for {
			if c := number(n.Clock, h, 1); c != nil {
				clocks = append(clocks, *c)
			}
			if p := milli(number(n.Power, h)); p != nil {
				watts = append(watts, *p)
			}
			if b := large(n.Reasons, h); b != nil {
				bits |= *b
			}
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	return func(r *device.Result) {
		close(stop)
		done.Wait()
		slices.Sort(clocks)
		slices.Sort(watts)
		if len(clocks) > 0 {
			r.MHz = clocks[len(clocks)/2]
		}
		if len(watts) > 0 { // the driver averages over what came before, so the last is the truest
			r.Watts = watts[len(watts)-1]
		}
		r.Why = reasons(bits)
	}
}
