//go:build linux

package native

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"busbar.dev/engine/device"
)

// functions of the CUDA driver, and those of HIP that take the same arguments.
type functions struct {
	Init        uintptr `cuda:"cuInit" hip:"hipInit"`
	Version     uintptr `cuda:"cuDriverGetVersion" hip:"hipDriverGetVersion"`
	Count       uintptr `cuda:"cuDeviceGetCount" hip:"hipGetDeviceCount"`
	Get         uintptr `cuda:"cuDeviceGet" hip:"hipDeviceGet"`
	Name        uintptr `cuda:"cuDeviceGetName" hip:"hipDeviceGetName"`
	PCI         uintptr `cuda:"cuDeviceGetPCIBusId" hip:"hipDeviceGetPCIBusId"`
	UUID        uintptr `cuda:"?cuDeviceGetUuid" hip:"?hipDeviceGetUuid"`
	Total       uintptr `cuda:"cuDeviceTotalMem_v2" hip:"hipDeviceTotalMem"`
	Retain      uintptr `cuda:"cuDevicePrimaryCtxRetain" hip:"?"`
	Current     uintptr `cuda:"cuCtxSetCurrent" hip:"hipSetDevice"`
	Free        uintptr `cuda:"cuMemGetInfo_v2" hip:"hipMemGetInfo"`
	Malloc      uintptr `cuda:"cuMemAlloc_v2" hip:"hipMalloc"`
	Release     uintptr `cuda:"cuMemFree_v2" hip:"hipFree"`
	HostAlloc   uintptr `cuda:"cuMemHostAlloc" hip:"hipHostMalloc"`
	HostFree    uintptr `cuda:"cuMemFreeHost" hip:"hipHostFree"`
	FromGPU     uintptr `cuda:"cuMemcpyDtoH_v2" hip:"hipMemcpyDtoH"`
	ToGPULater  uintptr `cuda:"cuMemcpyHtoDAsync_v2" hip:"hipMemcpyHtoDAsync"`
	FromLater   uintptr `cuda:"cuMemcpyDtoHAsync_v2" hip:"hipMemcpyDtoHAsync"`
	Within      uintptr `cuda:"cuMemcpyDtoDAsync_v2" hip:"hipMemcpyDtoDAsync"`
	Peer        uintptr `cuda:"cuMemcpyPeerAsync" hip:"hipMemcpyPeerAsync"`
	CanPeer     uintptr `cuda:"cuDeviceCanAccessPeer" hip:"hipDeviceCanAccessPeer"`
	EnablePeer  uintptr `cuda:"cuCtxEnablePeerAccess" hip:"hipDeviceEnablePeerAccess"`
	Set8        uintptr `cuda:"cuMemsetD8Async" hip:"hipMemsetD8Async"`
	Set32       uintptr `cuda:"cuMemsetD32Async" hip:"hipMemsetD32Async"`
	NewStream   uintptr `cuda:"cuStreamCreate" hip:"hipStreamCreateWithFlags"`
	Sync        uintptr `cuda:"cuStreamSynchronize" hip:"hipStreamSynchronize"`
	Query       uintptr `cuda:"cuStreamQuery" hip:"hipStreamQuery"`
	NewEvent    uintptr `cuda:"cuEventCreate" hip:"hipEventCreateWithFlags"`
	Record      uintptr `cuda:"cuEventRecord" hip:"hipEventRecord"`
	Elapsed     uintptr `cuda:"cuEventElapsedTime" hip:"hipEventElapsedTime"`
	ErrorName   uintptr `cuda:"cuGetErrorName" hip:"?hipDrvGetErrorName"`
	ErrorString uintptr `cuda:"cuGetErrorString" hip:"?hipDrvGetErrorString"`
	Words       uintptr `cuda:"?" hip:"?hipGetErrorString"` // returned, not written
}

// driver is the vendor's driver, and the GPU that was taken.
type driver struct {
	*library
	f      functions
	amd    bool
	device uintptr // as the driver counts them
	ctx    uintptr // CUDA's context, or HIP's number of the device
	stream uintptr
	second uintptr // for what goes the other way
	events [2]uintptr
}

// setting is where a library is, from the environment.
func setting(name string) string { return os.Getenv("BUSBAR_" + name) }

// driverFolders are where NVIDIA's driver has its libraries.
var driverFolders = []string{
	"/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib/wsl/lib",
}

// rocmFolders are where AMD's libraries are.
var rocmFolders = []string{"/opt/rocm/lib", "/opt/rocm-*/lib"}

// openDriver loads NVIDIA's driver, or AMD's where there is none. BUSBAR_GPU_VENDOR says which one alone.
func openDriver() *driver {
	vendor := setting("GPU_VENDOR")
	var first error
	if vendor != "amd" {
		l, err := load("libcuda.so.1 (the NVIDIA driver)", setting("CUDA"), []string{"libcuda.so.1"}, driverFolders)
		if err == nil {
			return newDriver(l, "cuda", "CUDA driver, ")
		}
		first = err
	}
	if vendor == "nvidia" {
		panic(failed(first))
	}
	l, err := load("libamdhip64.so (AMD's HIP)", setting("HIP"),
		[]string{"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}, rocmFolders)
	if err != nil && first != nil {
		a, b := failed(first), failed(err)
		err = &device.Failure{
			Library: a.Library, Text: a.Text + "; nor " + b.Library + ": " + b.Text, Tried: append(a.Tried, b.Tried...),
		}
	}
	check(err)
	return newDriver(l, "hip", "HIP, ")
}

// newDriver begins with a driver whose functions stand under a tag.
func newDriver(l *library, tag, name string) *driver {
	d := &driver{library: l, amd: tag == "hip"}
	l.name, l.words = name, d.errorText
	check(l.symbols(&d.f, tag))
	d.do("Init", d.f.Init, 0)
	return d
}

// errorText is what the driver says of a code.
func (d *driver) errorText(code int) string {
	var name, why uintptr
	words := ""
	if pass(d.f.ErrorName, code, &name) == 0 {
		words = text(name)
	}
	if pass(d.f.ErrorString, code, &why) == 0 {
		words += ": " + text(why)
	}
	if words == "" {
		words = returned(d.f.Words, uintptr(code))
	}
	return words
}

func (d *driver) count() int {
	var n int32
	d.do("device count", d.f.Count, &n)
	return int(n)
}

// take makes a GPU the current one of this thread, with a stream.
func (d *driver) take(index int) {
	if n := d.count(); index < 0 || index >= n {
		refuse("no GPU %d: the driver has %d (CUDA_VISIBLE_DEVICES limits them)", index, n)
	}
	d.device, d.ctx = d.context(index)
	d.do("set current", d.f.Current, d.ctx)
	const apart = 1 // from the stream that waits for all others
	d.do("stream create", d.f.NewStream, &d.stream, apart)
	d.do("stream create", d.f.NewStream, &d.second, apart)
	for i := range d.events {
		d.do("event create", d.f.NewEvent, &d.events[i], 0)
	}
}

// context is the driver's handle of a GPU, and what makes it the current one.
func (d *driver) context(index int) (dev, ctx uintptr) {
	var number int32
	d.do("device get", d.f.Get, &number, index)
	if d.amd {
		return uintptr(number), uintptr(number)
	}
	d.do("context (is the GPU in exclusive mode and taken, or its memory full?)", d.f.Retain, &ctx, number)
	return uintptr(number), ctx
}

// describe is what the driver says of the GPU that was taken.
func (d *driver) describe() *device.Device {
	x := &device.Device{Vendor: "nvidia"}
	if d.amd {
		x.Vendor = "amd"
	}
	var name, pci [256]byte
	if pass(d.f.Name, &name, len(name), d.device) == 0 {
		x.Name = chars(name[:])
	}
	if pass(d.f.PCI, &pci, len(pci), d.device) == 0 {
		x.PCI = strings.ToLower(chars(pci[:]))
	}
	var id [16]byte
	if pass(d.f.UUID, &id, d.device) == 0 {
		x.UUID = fmt.Sprintf("GPU-%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	}
	pass(d.f.Free, &x.Free, &x.Memory)
	var version int32
	if pass(d.f.Version, &version) == 0 {
		x.Driver = fmt.Sprintf("%d.%d", version/1000, version%1000/10)
	}
	return x
}

// buffer is memory of the GPU.
type buffer struct {
	at   uintptr
	size int64
}

// malloc makes a buffer. It is where it was asked for before the request can end, so that it can be freed.
func (d *driver) malloc(b *buffer, size int64) {
	d.do(fmt.Sprintf("allocation of %d bytes", size), d.f.Malloc, &b.at, max(size, 1))
	b.size = size
}

func (d *driver) free(b *buffer) {
	if b.at != 0 {
		call(d.f.Release, b.at)
	}
	*b = buffer{}
}

// grow makes a buffer at least so large.
func (d *driver) grow(b *buffer, size int64) {
	if b.at == 0 || b.size < size {
		d.free(b)
		d.malloc(b, size)
	}
}

func (d *driver) sync() { d.do("stream synchronize", d.f.Sync, d.stream) }

// elapsed is what the stream did between its two events, in µs.
func (d *driver) elapsed() float64 {
	var ms float32
	if pass(d.f.Elapsed, &ms, d.events[0], d.events[1]) != 0 {
		return 0
	}
	return float64(ms) * 1e3
}

func (d *driver) mark(i int) { call(d.f.Record, d.events[i], d.stream) }

// repeat fills memory of the GPU with a tile, over and over.
func (d *driver) repeat(at uintptr, size int64, tile []byte) {
	first := min(size, int64(len(tile)))
	if first == 0 {
		return
	}
	// In the stream: a copy outside of it may return before the GPU has the data, and what follows would repeat what was
	// there.
	d.do("copy to the GPU", d.f.ToGPULater, at, &tile[0], first, d.stream)
	for done := first; done < size; {
		n := min(done, size-done)
		d.do("copy within the GPU", d.f.Within, at+uintptr(done), at, n, d.stream)
		done += n
	}
	d.sync()
	runtime.KeepAlive(tile)
}

// fetch copies from the GPU.
func (d *driver) fetch(to []byte, at uintptr) {
	d.do("copy from the GPU", d.f.FromGPU, &to[0], at, len(to))
}
