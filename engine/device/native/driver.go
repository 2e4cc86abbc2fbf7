//go:build linux

package native

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"

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
	f      functions
	amd    bool
	device uintptr // as the driver counts them
	ctx    uintptr // CUDA's context, or HIP's number of the device
	stream uintptr
	second uintptr // for what goes the other way
	events [2]uintptr
}

// settings are where libraries are, from the environment.
func setting(name string) string { return os.Getenv("BUSBAR_" + name) }

// openDriver loads NVIDIA's driver, or AMD's where there is none. BUSBAR_GPU_VENDOR says which one alone.
func openDriver() (*driver, error) {
	d := &driver{}
	vendor := setting("GPU_VENDOR")
	var first error
	if vendor != "amd" {
		l, err := load("libcuda.so.1 (the NVIDIA driver)", setting("CUDA"), []string{"libcuda.so.1"},
			[]string{
				"/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
				"/usr/lib/wsl/lib",
			})
		if err == nil {
			if err := l.symbols(&d.f, "cuda"); err != nil {
				return nil, err
			}
			return d, d.must("Init", call(d.f.Init, 0))
		}
		first = err
	}
	if vendor == "nvidia" {
		return nil, first
	}
	l, err := load("libamdhip64.so (AMD's HIP)", setting("HIP"),
		[]string{"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"},
		[]string{"/opt/rocm/lib", "/opt/rocm-*/lib"})
	if err != nil {
		if first != nil {
			a, b := failed(first), failed(err)
			return nil, &device.Failure{
				Library: a.Library, Text: a.Text + "; nor " + b.Library + ": " + b.Text, Tried: append(a.Tried, b.Tried...),
			}
		}
		return nil, err
	}
	d.amd = true
	if err := l.symbols(&d.f, "hip"); err != nil {
		return nil, err
	}
	return d, d.must("Init", call(d.f.Init, 0))
}

// must is the error of a driver's call.
func (d *driver) must(what string, code int) error {
	if code == 0 {
		return nil
	}
	var name, why uintptr
	words := ""
	if call(d.f.ErrorName, uintptr(code), uintptr(unsafe.Pointer(&name))) == 0 {
		words = text(name)
	}
	if call(d.f.ErrorString, uintptr(code), uintptr(unsafe.Pointer(&why))) == 0 {
		words += ": " + text(why)
	}
	if p, ok := address(d.f.Words, uintptr(code)); ok && words == "" {
		words = text(p)
	}
	who := "CUDA driver, "
	if d.amd {
		who = "HIP, "
	}
	return failure(who+what, code, words)
}

func (d *driver) count() (int, error) {
	var n int32
	err := d.must("device count", call(d.f.Count, uintptr(unsafe.Pointer(&n))))
	return int(n), err
}

// take makes a GPU the current one of this thread, with a stream.
func (d *driver) take(index int) error {
	n, err := d.count()
	if err != nil {
		return err
	}
	if index < 0 || index >= n {
		return &device.Failure{Text: fmt.Sprintf("no GPU %d: the driver has %d (CUDA_VISIBLE_DEVICES limits them)", index, n)}
	}
	if d.device, d.ctx, err = d.context(index); err != nil {
		return err
	}
	if err := d.must("set current", call(d.f.Current, d.ctx)); err != nil {
		return err
	}
	const apart = 1 // from the stream that waits for all others
	if err := d.must("stream create", call(d.f.NewStream, uintptr(unsafe.Pointer(&d.stream)), apart)); err != nil {
		return err
	}
	if err := d.must("stream create", call(d.f.NewStream, uintptr(unsafe.Pointer(&d.second)), apart)); err != nil {
		return err
	}
	for i := range d.events {
		if err := d.must("event create", call(d.f.NewEvent, uintptr(unsafe.Pointer(&d.events[i])), 0)); err != nil {
			return err
		}
	}
	return nil
}

// context is the driver's handle of a GPU, and what makes it the current one.
func (d *driver) context(index int) (dev, ctx uintptr, err error) {
	var number int32
	if err := d.must("device get", call(d.f.Get, uintptr(unsafe.Pointer(&number)), uintptr(index))); err != nil {
		return 0, 0, err
	}
	if d.amd {
		return uintptr(number), uintptr(number), nil
	}
	if err := d.must("context", call(d.f.Retain, uintptr(unsafe.Pointer(&ctx)), uintptr(number))); err != nil {
		f := failed(err)
		f.Text += " (is the GPU in exclusive mode and taken, or its memory full?)"
		return 0, 0, f
	}
	return uintptr(number), ctx, nil
}

// describe is what the driver says of the GPU that was taken.
func (d *driver) describe() *device.Device {
	x := &device.Device{Vendor: "nvidia"}
	if d.amd {
		x.Vendor = "amd"
	}
	buf := make([]byte, 256)
	if call(d.f.Name, uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), d.device) == 0 {
		x.Name = chars(buf)
	}
	clear(buf)
	if call(d.f.PCI, uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), d.device) == 0 {
		x.PCI = strings.ToLower(chars(buf))
	}
	var id [16]byte
	if call(d.f.UUID, uintptr(unsafe.Pointer(&id[0])), d.device) == 0 {
		x.UUID = fmt.Sprintf("GPU-%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	}
	var free, total uint64
	if call(d.f.Free, uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total))) == 0 {
		x.Free, x.Memory = int64(free), int64(total)
	}
	var version int32
	if call(d.f.Version, uintptr(unsafe.Pointer(&version))) == 0 {
		x.Driver = fmt.Sprintf("%d.%d", version/1000, version%1000/10)
	}
	return x
}

// buffer is memory of the GPU.
type buffer struct {
	at   uintptr
	size int64
}

func (d *driver) malloc(size int64) (buffer, error) {
	b := buffer{size: size}
	err := d.must(fmt.Sprintf("allocation of %d bytes", size),
		call(d.f.Malloc, uintptr(unsafe.Pointer(&b.at)), uintptr(max(size, 1))))
	return b, err
}

func (d *driver) free(b *buffer) {
	if b.at != 0 {
		call(d.f.Release, b.at)
	}
	*b = buffer{}
}

// grow makes a buffer at least so large.
func (d *driver) grow(b *buffer, size int64) error {
	if b.at != 0 && b.size >= size {
		return nil
	}
	d.free(b)
	var err error
	*b, err = d.malloc(size)
	return err
}

func (d *driver) sync() error { return d.must("stream synchronize", call(d.f.Sync, d.stream)) }

// elapsed is what the stream did between its two events, in µs.
func (d *driver) elapsed() float64 {
	var ms float32
	if call(d.f.Elapsed, uintptr(unsafe.Pointer(&ms)), d.events[0], d.events[1]) != 0 {
		return 0
	}
	return float64(ms) * 1e3
}

func (d *driver) mark(i int) { call(d.f.Record, d.events[i], d.stream) }

// repeat fills a buffer with a tile, over and over.
func (d *driver) repeat(b buffer, offset, size int64, tile []byte) error {
	first := min(size, int64(len(tile)))
	if first == 0 {
		return nil
	}
	// In the stream: a copy outside of it may return before the GPU has the data, and what follows would repeat what was
	// there.
	if err := d.must("copy to the GPU", call(d.f.ToGPULater, b.at+uintptr(offset), uintptr(unsafe.Pointer(&tile[0])),
		uintptr(first), d.stream)); err != nil {
		return err
	}
	for done := first; done < size; {
		n := min(done, size-done)
		if err := d.must("copy within the GPU",
			call(d.f.Within, b.at+uintptr(offset+done), b.at+uintptr(offset), uintptr(n), d.stream)); err != nil {
			return err
		}
		done += n
	}
	err := d.sync()
	runtime.KeepAlive(tile)
	return err
}
