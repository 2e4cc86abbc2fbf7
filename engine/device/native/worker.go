//go:build linux

package native

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"busbar.dev/engine/device"
)

// Worker answers requests about one GPU.
type Worker struct {
	driver *driver
	nccl   *nccl
	nvml   *nvml
	blas   *blas
	cublas *cublas
	pci    string // of the GPU that was taken

	send, recv, flag buffer
	host             []byte
}

// maxLine is the longest request that is read.
const maxLine = 1 << 20

// grace is what a request may still take when no others can follow: whoever asked is gone, or has closed its end.
const grace = 2 * time.Second

// Serve answers requests until they end. Ended is called where one is not done soon after that: the caller ends the
// process then, and with it all that the driver holds for it.
func Serve(r io.Reader, w io.Writer, program string, ended func()) error {
	runtime.LockOSThread() // the driver's context belongs to a thread
	defer runtime.UnlockOSThread()
	host, _ := os.Hostname()
	if _, err := w.Write(device.Line(device.Answer{Hello: &device.Hello{
		Program: program, Host: host, PID: os.Getpid(),
	}})); err != nil {
		return err
	}
	lines := make(chan []byte)
	var bad error
	go func() {
		scan := bufio.NewScanner(r)
		scan.Buffer(make([]byte, 64<<10), maxLine)
		for scan.Scan() {
			lines <- append([]byte{}, scan.Bytes()...)
		}
		bad = scan.Err()
		close(lines)
		time.AfterFunc(grace, ended)
	}()
	worker := &Worker{}
	for line := range lines {
		var q device.Request
		a := device.Answer{}
		if err := json.Unmarshal(line, &q); err != nil {
			a.Failure = &device.Failure{Text: "a request that is no JSON object: " + err.Error()}
		} else {
			a = worker.Answer(q)
		}
		a.ID = q.ID
		if _, err := w.Write(device.Line(a)); err != nil {
			return err
		}
	}
	return bad
}

// Answer does what a request asks for. What fails in it panics: the worker answers the next one still, whatever was
// absurd in this one.
func (w *Worker) Answer(q device.Request) (a device.Answer) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *device.Failure:
			a = device.Answer{Failure: r}
		default:
			a = device.Answer{Failure: &device.Failure{Text: fmt.Sprint("busbar-gpu: ", r)}}
		}
	}()
	const most = 1 << 40
	if q.Bytes < 0 || q.Bytes > most || q.Room < 0 || q.Room > most || q.Iters < 0 || q.Iters > 1e6 || q.Warm < 0 ||
		q.Warm > 1e6 {
		refuse("%d bytes, %d iterations after %d: out of bounds", q.Bytes, q.Iters, q.Warm)
	}
	switch q.Do {
	case device.Open:
		a.Device = w.open(q.GPU)
	case device.GPUs:
		w.loadDriver()
		a.Count = w.driver.count()
	case device.Health:
		check(w.loadNVML())
		a.Health = w.nvml.states()
	default:
		if w.pci == "" {
			refuse("%s: no GPU is open", q.Do)
		}
		w.work(q, &a)
	}
	return a
}

// work does what needs the GPU that was taken.
func (w *Worker) work(q device.Request, a *device.Answer) {
	switch q.Do {
	case device.Key:
		check(w.loadNCCL())
		a.Key = w.nccl.key()
	case device.Join:
		check(w.loadNCCL())
		w.nccl.join(q.Key, q.Rank, q.Ranks)
	case device.Leave:
		if w.nccl != nil {
			w.nccl.leave()
		}
	case device.Collective:
		a.Timing = w.collective(q)
	case device.Pair:
		a.Timing = w.pair(q)
	case device.Memory:
		a.Rates = w.memory(q)
	case device.Copies:
		a.Rates = w.copies(q)
	case device.Peer:
		a.Rates, a.Notes = w.peer(q)
	case device.Product:
		a.Product = w.product(q)
	default:
		refuse("a request to do %q, which is unknown to this release", q.Do)
	}
}

func (w *Worker) loadDriver() {
	if w.driver == nil {
		w.driver = openDriver()
	}
}

func (w *Worker) loadNCCL() (err error) {
	if w.nccl == nil {
		w.nccl, err = openNCCL(w.driver.amd)
	}
	return err
}

func (w *Worker) loadNVML() (err error) {
	if w.nvml == nil {
		w.nvml, err = openNVML()
	}
	return err
}

// open takes a GPU. NCCL is told of where it is found, and refused where it is needed.
func (w *Worker) open(index int) *device.Device {
	if w.pci != "" {
		refuse("a GPU is open already")
	}
	w.loadDriver()
	w.driver.take(index)
	x := w.driver.describe()
	w.pci = x.PCI
	if w.loadNCCL() == nil {
		x.NCCL, x.Library = w.nccl.release, w.nccl.path
	}
	return x
}

// mustBeJoined ends a request that needs a communicator where none was joined.
func (w *Worker) mustBeJoined() {
	if w.nccl == nil || w.nccl.comm == 0 {
		refuse("no communicator was joined")
	}
}
