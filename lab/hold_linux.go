package lab

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Descriptors that the starter leaves to the holder.
const (
	starterFD  = 3
	lockFD     = 4
	listenerFD = 5
)

// holder is the process that a lab lives in: process 1 of its namespace, so that every
// program of the lab ends with it.
type holder struct {
	dir   string
	plan  *Plan
	fab   *fabric
	nodes []namespaces

	changing sync.Mutex // one fault or healing at a time, each of which has several steps

	mu       sync.Mutex // guards what follows, and starting programs against reaping them
	programs map[int]*program
	faults   map[string]*active
	port     int
	quit     chan struct{}
	once     sync.Once
}

// Hold is the life of a holder: it builds what its starter asks for and serves until
// it is told to end. It returns only when that could not be done.
func Hold() error {
	for fd := starterFD; fd <= listenerFD; fd++ {
		unix.CloseOnExec(fd)
	}
	starter := os.NewFile(starterFD, "starter")
	if starter == nil || os.Getpid() != 1 {
		return errors.New("lab hold is started by lab up, not manually")
	}
	var s setup
	if err := receive(starter, &s); err != nil || s.Plan == nil {
		return fmt.Errorf("no plan from the starter: %v", err)
	}
	h := &holder{
		dir: s.Dir, plan: s.Plan, programs: map[int]*program{}, faults: map[string]*active{}, port: 29500,
		quit: make(chan struct{}),
	}
	h.reap()
	notes, err := h.build()
	if err != nil {
		send(starter, ready{Error: err.Error()})
		return err
	}
	door := os.NewFile(listenerFD, "door")
	l, err := net.FileListener(door)
	if err != nil {
		return err
	}
	door.Close()
	var agreed bool
	if err := send(starter, ready{Notes: notes}); err != nil {
		return err
	}
	if err := receive(starter, &agreed); err != nil {
		return errors.New("the starter has gone")
	}
	ending := make(chan os.Signal, 1)
	signal.Notify(ending, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	go h.serve(l.(*net.UnixListener))
	send(starter, true)
	starter.Close()
	// The kernel ends the programs and removes the cables with this process.
	select {
	case <-h.quit: // who asked for it removes the files when the lock is free
		os.Exit(0)
	case <-ending:
	}
	for _, f := range []string{stateFile, socketFile, hostsFile, logFile, lockFile} {
		os.Remove(filepath.Join(h.dir, f))
	}
	os.Remove(h.dir)
	os.Exit(0)
	return nil
}

// build makes the lab.
func (h *holder) build() ([]string, error) {
	var notes []string
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return nil, fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		notes = append(notes, fmt.Sprintf("/proc of the lab could not be mounted (%v): shared memory inside nodes and "+
			"faults of nodes do not work", err))
	}
	hosts := filepath.Join(h.dir, hostsFile)
	if err := os.WriteFile(hosts, []byte(h.plan.hostsText()), 0o644); err != nil {
		return nil, err
	}
	if err := unix.Mount(hosts, "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
		notes = append(notes, fmt.Sprintf("/etc/hosts could not be replaced (%v): use addresses instead of names", err))
	}
	for i := range h.plan.Nodes {
		n, err := newNamespaces(h.plan.Nodes[i].Name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.plan.Nodes[i].Name, err)
		}
		h.nodes = append(h.nodes, n)
	}
	var err error
	h.fab, err = newFabric(h.plan, h.nodes)
	if err != nil {
		return nil, err
	}
	return append(notes, h.fab.notes...), nil
}
