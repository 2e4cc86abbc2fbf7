package query

import (
	"fmt"
	"io"
	"net"
	"time"
)

// PortsAlone keeps the RDMA ports of a host for one measurement: two at once would each see a part of the rate. Names are abstract addresses of Linux,
// which end with their process, however it ends. The ranks of one job share ports.
type PortsAlone struct {
	Prefix string // of the names
}

// aloneTime is how long who holds a port has to say for which job.
const aloneTime = time.Second

// Take takes a port for a job until it is closed.
func (a *PortsAlone) Take(port, job string) (io.Closer, error) {
	name := "@" + a.Prefix + port
	l, err := net.Listen("unix", name)
	if err != nil {
		if job != "" && holder(name) == job {
			return nil, nil
		}
		return nil, fmt.Errorf("%s is being measured by another busbar on this host, and two at once would measure each other; wait for its end", port)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(aloneTime))
			_, _ = io.WriteString(c, job) // who does not read is told that the port is taken
			_ = c.Close()
		}
	}()
	return l, nil
}

// holder is the job for which a port is held, empty where nobody says.
func holder(name string) string {
	c, err := net.DialTimeout("unix", name, aloneTime)
	if err != nil {
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(aloneTime))
	job, _ := io.ReadAll(io.LimitReader(c, 256))
	return string(job)
}

// take takes this host's ports for a job, all or none.
func (w *rdmaWorker) take(job string) error {
	w.free()
	if w.with.Alone == nil {
		return nil
	}
	for _, p := range w.known {
		c, err := w.with.Alone.Take(fmt.Sprintf("%s/%d", p.Device, p.Port), job)
		if err != nil {
			w.free()
			return err
		}
		if c != nil {
			w.taken = append(w.taken, c)
		}
	}
	return nil
}

// free lets others measure.
func (w *rdmaWorker) free() {
	for _, c := range w.taken {
		_ = c.Close()
	}
	w.taken = nil
}
