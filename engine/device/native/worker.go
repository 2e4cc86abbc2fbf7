//go:build linux

package native

import (
	"bufio"
	"encoding/json"
	"errors"
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

// Answer does what a request asks for.
func (w *Worker) Answer(q device.Request) (a device.Answer) {
	defer func() { // a worker that is asked for something absurd answers the next one still
		if r := recover(); r != nil {
			a = device.Answer{Failure: &device.Failure{Text: fmt.Sprint("busbar-gpu: ", r)}}
		}
	}()
	if err := w.do(q, &a); err != nil {
		a.Failure = failed(err)
	}
	return a
}

func (w *Worker) do(q device.Request, a *device.Answer) (err error) {
	const most = 1 << 40
	if q.Bytes < 0 || q.Bytes > most || q.Room < 0 || q.Room > most || q.Iters < 0 || q.Iters > 1e6 || q.Warm < 0 ||
		q.Warm > 1e6 {
		return fmt.Errorf("%d bytes, %d iterations after %d: out of bounds", q.Bytes, q.Iters, q.Warm)
	}
	switch q.Do {
	case device.Open:
		a.Device, err = w.open(q.GPU)
		return err
	case device.GPUs:
		if err = w.loadDriver(); err == nil {
			a.Count, err = w.driver.count()
		}
		return err
	case device.Health:
		if w.nvml == nil {
			if w.nvml, err = openNVML(); err != nil {
				return err
			}
		}
		a.Health, err = w.nvml.states()
		return err
	}
	if w.pci == "" {
		return fmt.Errorf("%s: no GPU is open", q.Do)
	}
	switch q.Do {
	case device.Key:
		if err = w.loadNCCL(); err == nil {
			a.Key, err = w.nccl.key()
		}
	case device.Join:
		if err = w.loadNCCL(); err == nil {
			err = w.nccl.join(q.Key, q.Rank, q.Ranks)
		}
	case device.Leave:
		if w.nccl != nil {
			err = w.nccl.leave()
		}
	case device.Collective:
		a.Timing, err = w.collective(q)
	case device.Pair:
		a.Timing, err = w.pair(q)
	case device.Memory:
		a.Rates, err = w.memory(q)
	case device.Copies:
		a.Rates, err = w.copies(q)
	case device.Peer:
		a.Rates, a.Notes, err = w.peer(q)
	case device.Product:
		a.Product, err = w.product(q)
	case device.Limit:
		if w.nvml == nil {
			if w.nvml, err = openNVML(); err != nil {
				return err
			}
		}
		err = w.nvml.limit(w.pci, q)
	default:
		err = fmt.Errorf("a request to do %q, which is unknown to this release", q.Do)
	}
	return err
}

func (w *Worker) loadDriver() (err error) {
	if w.driver == nil {
		w.driver, err = openDriver()
	}
	return err
}

func (w *Worker) loadNCCL() (err error) {
	if w.nccl == nil {
		w.nccl, err = openNCCL(w.driver.amd)
	}
	return err
}

// open takes a GPU. NCCL is told of where it is found, and refused where it is needed.
func (w *Worker) open(index int) (*device.Device, error) {
	if w.pci != "" {
		return nil, errors.New("a GPU is open already")
	}
	if err := w.loadDriver(); err != nil {
		w.driver = nil
		return nil, err
	}
	if err := w.driver.take(index); err != nil {
		return nil, err
	}
	x := w.driver.describe()
	w.pci = x.PCI
	if w.loadNCCL() == nil {
		x.NCCL, x.Library = w.nccl.release, w.nccl.path
	}
	return x, nil
}

// joined reports that no communicator was joined.
func (w *Worker) joined() error {
	if w.nccl == nil || w.nccl.comm == 0 {
		return errors.New("no communicator was joined")
	}
	return nil
}
