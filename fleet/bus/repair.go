package bus

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// probeSize is what must fit on the disk before a store that could not write is tried again.
const probeSize = 1 << 20

// repair looks whether the store still writes. A stream whose disk was full takes nothing more until its server is
// started anew, even when there is room again: so it is, at the same address. Nothing that was acknowledged is touched
// by that, and who is connected comes again by itself.
func (s *Server) repair() {
	why := s.storeError()
	if why == "" {
		return
	}
	if !s.reported {
		s.reported = true
		s.log("cannot write: %s. Nothing is stored until it can, and agents keep their events; free disk space, or check "+
			"why it cannot be written to", why)
	}
	if CheckRoom(s.cfg.Dir) != nil {
		return
	}
	old := s.running()
	if at := old.Addr(); at != nil {
		s.cfg.Listen = at.String()
	}
	old.Shutdown()
	old.WaitForShutdown()
	if err := s.launch(); err != nil {
		s.log("could not be opened again: %v", err)
		return
	}
	if s.storeError() == "" {
		s.reported = false
		s.log("writes again")
	}
}

func (s *Server) log(format string, v ...any) {
	if s.cfg.OnLog != nil {
		s.cfg.OnLog(fmt.Sprintf("the store in %s "+format, append([]any{s.cfg.Dir}, v...)...))
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
