package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// setup is what the holder is told.
type setup struct {
	Dir  string `json:"dir"`
	Plan *Plan  `json:"plan"`
}

// ready is what the holder answers.
type ready struct {
	Error string   `json:"error,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

// RightsError is the error of a machine that does not let this process make a lab.
type RightsError struct{ err error }

func (e *RightsError) Error() string {
	return fmt.Sprintf("%v; a lab needs either root (CAP_SYS_ADMIN and CAP_NET_ADMIN) or a kernel that lets ordinary "+
		"users make user namespaces (%s)", e.err, userNamespaces())
}

func (e *RightsError) Unwrap() error { return e.err }

// userNamespaces says what stands against user namespaces here.
func userNamespaces() string {
	for _, x := range []struct{ file, bad, text string }{
		{"/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces is 0"},
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone is 0"},
		{
			"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
			"sysctl kernel.apparmor_restrict_unprivileged_userns is 1",
		},
	} {
		if b, err := os.ReadFile(x.file); err == nil && string(bytes.TrimSpace(b)) == x.bad {
			return x.text
		}
	}
	return "no sysctl forbids it here; a container's seccomp filter may"
}

// privileged reports whether this process may make namespaces without a user
// namespace of its own.
func privileged() bool {
	var h unix.CapUserHeader
	var d [2]unix.CapUserData
	h.Version = unix.LINUX_CAPABILITY_VERSION_3
	if unix.Capget(&h, &d[0]) != nil {
		return false
	}
	has := func(c uint) bool { return d[c/32].Effective&(1<<(c%32)) != 0 }
	return has(unix.CAP_SYS_ADMIN) && has(unix.CAP_NET_ADMIN)
}

// maxSocket is what the kernel takes as the path of a socket, less the zero behind it.
const maxSocket = 107

// Start makes a lab and returns when it is up. What dead labs left in the folder is
// removed first. When the context ends before, or this process dies, nothing is left.
func Start(ctx context.Context, cfg Config) (s *State, err error) {
	defer mark(&err)
	if err := checkName(cfg.Name); err != nil {
		return nil, err
	}
	if path := cfg.Folder.Path(cfg.Name, socketFile); len(path) > maxSocket {
		return nil, fmt.Errorf("%s: %d bytes are too long for the name of a socket, at most %d; say where labs keep their "+
			"files with BUSBAR_LAB_DIR", path, len(path), maxSocket)
	}
	if _, err := cfg.Folder.Clean(); err != nil {
		return nil, err
	}
	lock, err := cfg.Folder.lock(cfg.Name)
	if errors.Is(err, errHeld) {
		return nil,
			fmt.Errorf("a lab %q is up; `busbar lab down` ends it, and --name gives another one its own name", cfg.Name)
	}
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	s, err = cfg.startLocked(ctx, lock)
	if err != nil {
		os.RemoveAll(cfg.Folder.Path(cfg.Name))
		return nil, err
	}
	return s, nil
}

func (cfg *Config) startLocked(ctx context.Context, lock *os.File) (*State, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: cfg.Folder.Path(cfg.Name, socketFile), Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	defer l.Close()
	door, err := l.File()
	if err != nil {
		return nil, err
	}
	defer door.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "holder"), os.NewFile(uintptr(pair[1]), "starter")
	defer ours.Close()
	defer theirs.Close()
	log, err := os.OpenFile(cfg.Folder.Path(cfg.Name, logFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	rootless := cfg.Rootless || !privileged()
	proc, err := cfg.holder(rootless, []*os.File{nil, log, log, theirs, lock, door})
	if err != nil {
		if rootless {
			return nil, &RightsError{fmt.Errorf("making namespaces: %w", err)}
		}
		return nil, fmt.Errorf("starting the holder: %w", err)
	}
	theirs.Close()
	s := &State{
		Version: 1, Name: cfg.Name, Pid: proc.Pid, Started: time.Now().UTC().Truncate(time.Second), Rootless: rootless,
		Plan: cfg.Plan, Faults: []Fault{},
	}
	stop := context.AfterFunc(ctx, func() { proc.Kill() })
	err = cfg.handshake(ours, s)
	stop()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		proc.Kill()
		proc.Wait()
		return nil, err
	}
	go proc.Wait() // should it end before this process does
	return s, nil
}

// handshake tells the holder what to build, waits until it has, and writes the state. The
// holder ends by itself until it has heard that the state is written.
func (cfg *Config) handshake(c *os.File, s *State) error {
	if err := send(c, setup{Dir: cfg.Folder.Path(cfg.Name), Plan: cfg.Plan}); err != nil {
		return cfg.died(err)
	}
	var r ready
	if err := receive(c, &r); err != nil {
		return cfg.died(err)
	}
	if r.Error != "" {
		return errors.New(r.Error)
	}
	s.Notes = r.Notes
	if err := cfg.Folder.write(s); err != nil {
		return err
	}
	if err := send(c, true); err != nil {
		return cfg.died(err)
	}
	var done bool
	if err := receive(c, &done); err != nil {
		return cfg.died(err)
	}
	return nil
}

// died is the error of a holder that ended too early, with its last words.
func (cfg *Config) died(err error) error {
	b, _ := os.ReadFile(cfg.Folder.Path(cfg.Name, logFile))
	if b = bytes.TrimSpace(b); len(b) > 0 {
		if len(b) > 2000 {
			b = b[:2000]
		}
		return fmt.Errorf("the lab's holder ended: %s", b)
	}
	return fmt.Errorf("the lab's holder ended: %w", err)
}

// holder starts the process that owns the lab, in namespaces of its own and outside
// the terminal's signals.
func (cfg *Config) holder(rootless bool, files []*os.File) (*os.Process, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	files[0] = null
	return os.StartProcess(cfg.Program, cfg.Args, &os.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: files, Sys: ownNamespaces(rootless),
	})
}

// ownNamespaces is how a process gets namespaces of its own, a session of its own with them.
func ownNamespaces(rootless bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS,
	}
	if rootless {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return attr
}
