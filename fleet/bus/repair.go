package bus

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// probeSize is what must fit on the disk before a store that could not write is tried again.
const probeSize = 1 << 20

// repair looks whether the store still writes. A stream whose disk was full takes nothing more until its server is
// started anew, even when there is room again: so it is. Nothing that was acknowledged is touched by
// that, and who is connected comes again by itself.
func (s *Server) repair() {
	why := s.storeError()
	if why == "" {
		return
	}
	if !s.reported {
		s.reported = true
		s.log("error", fmt.Sprintf("the store in %s cannot write: %s. Nothing is stored until it can, and agents keep "+
			"their events; free disk space, or check why it cannot be written to", s.cfg.Dir, why))
	}
	if CheckRoom(s.cfg.Dir) != nil {
		return
	}
	if err := s.restart(); err != nil {
		s.log("error", fmt.Sprintf("the store in %s could not be opened again: %v", s.cfg.Dir, err))
		return
	}
	if s.storeError() == "" {
		s.reported = false
		s.log("warn", fmt.Sprintf("the store in %s writes again", s.cfg.Dir))
	}
}

// storeError is why the store takes nothing, empty where it does.
func (s *Server) storeError() string {
	ns := s.running()
	if !ns.Running() {
		return "it is closed"
	}
	return storeFault(ns.Healthz(&server.HealthzOptions{}).Error)
}

// storeFault is what a word about the server's health says about the store. Whether it is ready for connections is
// looked at for a millisecond, in which a busy machine may not get to it: that is no reason to open the store again.
func storeFault(health string) string {
	if strings.Contains(health, "ready for connections") {
		return ""
	}
	if _, why, found := strings.Cut(health, "write error: "); found {
		return why // without names that say nothing to people
	}
	return health
}

func (s *Server) log(level, text string) {
	if s.cfg.OnLog != nil {
		s.cfg.OnLog(level, text)
	}
}

// running is the server as it is now.
func (s *Server) running() *server.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ns
}

// InProcessConn is a connection from this process to the server as it is now.
func (s *Server) InProcessConn() (net.Conn, error) { return s.running().InProcessConn() }

// restart opens the store again, at the same address.
func (s *Server) restart() error {
	old := s.running()
	c := s.cfg
	if at, ok := old.Addr().(*net.TCPAddr); ok && c.Listen != "-" {
		c.Listen = at.String()
	}
	s.cfg.Listen = c.Listen
	old.Shutdown()
	old.WaitForShutdown()
	ns, text, err := launch(&c, s.keys)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ns, s.signed = ns, text
	return nil
}

// CheckRoom tells whether a folder is there and something can be written to it.
func CheckRoom(dir string) error {
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(make([]byte, probeSize))
	return errors.Join(err, f.Sync(), f.Close())
}
