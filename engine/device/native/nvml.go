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
	SetPower     uintptr `nvml:"?nvmlDeviceSetPowerManagementLimit"`
	LockClocks   uintptr `nvml:"?nvmlDeviceSetGpuLockedClocks"`
	FreeClocks   uintptr `nvml:"?nvmlDeviceResetGpuLockedClocks"`
}

func openNVML() (*nvml, error) {
	l, err := load("libnvidia-ml.so.1 (NVML)", setting("NVML"), []string{"libnvidia-ml.so.1"},
		[]string{
			"/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
			"/usr/lib/wsl/lib",
		})
	if err != nil {
		return nil, err
	}
	n := &nvml{}
	if err := l.symbols(n, "nvml"); err != nil {
		return nil, err
	}
	return n, n.must("nvmlInit", call(n.Init))
}

func (n *nvml) must(what string, code int) error {
	if code == 0 {
		return nil
	}
	words := ""
	if p, ok := address(n.Error, uintptr(code)); ok && code != missing {
		words = text(p)
	}
	return failure(what, code, words)
}

// ask calls a function whose last argument is where its answer goes. Every call names that address itself, so that the
// answer does not move.
func ask[T any](f uintptr, args []uintptr) (T, bool) {
	var v T
	code := missing
	switch len(args) {
	case 1:
		code = call(f, args[0], uintptr(unsafe.Pointer(&v)))
	case 2:
		code = call(f, args[0], args[1], uintptr(unsafe.Pointer(&v)))
	case 3:
		code = call(f, args[0], args[1], args[2], uintptr(unsafe.Pointer(&v)))
	}
	return v, code == 0
}

// number asks for one unsigned number; nil where the driver does not know it.
func number(f uintptr, args ...uintptr) *int {
	v, ok := ask[uint32](f, args)
	if !ok {
		return nil
	}
	return new(int(v))
}

func large(f uintptr, args ...uintptr) *int64 {
	v, ok := ask[uint64](f, args)
	if !ok {
		return nil
	}
	return new(int64(v))
}

func milli(p *int) *float64 {
	if p == nil {
		return nil
	}
	return new(float64(*p) / 1e3)
}

func yes(p *int) *bool {
	if p == nil {
		return nil
	}
	return new(*p != 0)
}

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
func (n *nvml) states() ([]device.State, error) {
	var count uint32
	if err := n.must("nvmlDeviceGetCount", call(n.Count, uintptr(unsafe.Pointer(&count)))); err != nil {
		return nil, err
	}
	var list []device.State
	for i := range count {
		s := device.State{Index: int(i)}
		var h uintptr
		if err := n.must("nvmlDeviceGetHandleByIndex", call(n.ByIndex, uintptr(i), uintptr(unsafe.Pointer(&h)))); err != nil {
			s.Lost = err.Error()
		} else {
			n.fill(&s, h)
		}
		list = append(list, s)
	}
	return list, nil
}

func (n *nvml) fill(s *device.State, h uintptr) {
	buf := make([]byte, 128)
	if call(n.Name, h, uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf))) == 0 {
		s.Name = chars(buf)
	}
	clear(buf)
	if call(n.UUID, h, uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf))) == 0 {
		s.UUID = chars(buf)
	}
	clear(buf)
	if call(n.PCI, h, uintptr(unsafe.Pointer(&buf[0]))) == 0 {
		s.PCI = strings.ToLower(chars(buf[36:68])) // nvmlPciInfo_t.busId
	}
	s.SM, s.MaxSM = number(n.Clock, h, 1), number(n.MaxClock, h, 1)
	s.Memory, s.MaxMemory = number(n.Clock, h, 2), number(n.MaxClock, h, 2)
	if bits := large(n.Reasons, h); bits != nil {
		s.Throttle = reasons(*bits)
	}
	s.Power, s.PowerLimit, s.DefaultLimit = milli(number(n.Power, h)), milli(number(n.PowerLimit, h)),
		milli(number(n.DefaultLimit, h))
	s.Temperature, s.SlowAt = number(n.Temperature, h, 0), number(n.Threshold, h, 1)
	var now, next uint32
	if call(n.ECC, h, uintptr(unsafe.Pointer(&now)), uintptr(unsafe.Pointer(&next))) == 0 {
		s.ECC = new(now != 0)
	}
	s.Corrected, s.Uncorrected = large(n.Errors, h, 0, 0), large(n.Errors, h, 1, 0)
	var fixed, broken, pending, failedRows uint32
	if call(n.Remapped, h, uintptr(unsafe.Pointer(&fixed)), uintptr(unsafe.Pointer(&broken)),
		uintptr(unsafe.Pointer(&pending)), uintptr(unsafe.Pointer(&failedRows))) == 0 {
		s.Remapped, s.RemapPending, s.RemapFailed = new(int(fixed+broken)), new(pending != 0), new(failedRows != 0)
	}
	s.PCIeGen, s.MaxPCIeGen, s.PCIeWidth, s.MaxPCIeWidth = number(n.Gen, h), number(n.MaxGen, h), number(n.Width, h),
		number(n.MaxWidth, h)
	s.Replays, s.Persistent, s.Fabric = number(n.Replays, h), yes(number(n.Persistence, h)), n.fabric(h)
	n.links(s, h)
	var use [2]uint32
	if call(n.Utilization, h, uintptr(unsafe.Pointer(&use[0]))) == 0 {
		s.Utilization = new(int(use[0]))
	}
	var memory [3]uint64 // total, free, used
	if call(n.Memory, h, uintptr(unsafe.Pointer(&memory[0]))) == 0 {
		s.Total, s.Used = new(int64(memory[0])), new(int64(memory[2]))
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
	switch call(n.Processes, h, uintptr(unsafe.Pointer(&processes)), uintptr(unsafe.Pointer(&list[0]))) {
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
	if call(n.Fabric, h, uintptr(unsafe.Pointer(&info))) != 0 || int(info.state) > 3 {
		return ""
	}
	if info.state == 3 && info.status != 0 {
		return fmt.Sprintf("completed: failed with %d", info.status)
	}
	return []string{"not supported", "not started", "in progress", "completed"}[info.state]
}

// limit sets clocks and power, or gives them back to the driver, and says what could not be done.
func (n *nvml) limit(pci string, q device.Request) error {
	name := append([]byte(pci), 0)
	var h uintptr
	if err := n.must("nvmlDeviceGetHandleByPciBusId",
		call(n.ByPCI, uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&h)))); err != nil {
		return err
	}
	if q.Reset {
		if err := n.must("nvmlDeviceResetGpuLockedClocks", call(n.FreeClocks, h)); err != nil {
			return err
		}
		if p := number(n.DefaultLimit, h); p != nil {
			return n.must("nvmlDeviceSetPowerManagementLimit", call(n.SetPower, h, uintptr(*p)))
		}
		return nil
	}
	if q.MHz > 0 {
		if err := n.must("nvmlDeviceSetGpuLockedClocks", call(n.LockClocks, h, uintptr(q.MHz), uintptr(q.MHz))); err != nil {
			return err
		}
	}
	if q.Watts > 0 {
		return n.must("nvmlDeviceSetPowerManagementLimit", call(n.SetPower, h, uintptr(q.Watts)*1000))
	}
	return nil
}

// watch samples clocks and power until the function that it returns is called. It does nothing where NVML is missing.
func (w *Worker) watch() func(*device.Result) {
	if w.nvml == nil {
		w.nvml, _ = openNVML()
	}
	if w.nvml == nil || w.pci == "" {
		return func(*device.Result) {}
	}
	n, name := w.nvml, append([]byte(w.pci), 0)
	var h uintptr
	if call(n.ByPCI, uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&h))) != 0 {
		return func(*device.Result) {}
	}
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
