package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"busbar.dev/internal/failure"
)

// Folder is where labs keep their files: one folder a lab, by its name.
type Folder string

// The files of a lab. The lock is held by the holder as long as it lives, which is how
// a lab that lives is told from what a dead one left.
const (
	lockFile   = "lock"
	stateFile  = "state.json"
	socketFile = "socket"
	hostsFile  = "hosts"
	logFile    = "log"
)

// Config is how a lab is started.
type Config struct {
	Folder Folder
	Name   string
	Plan   *Plan
	// Program and Args, with its name, are what calls Hold.
	Program string
	Args    []string
	// Rootless asks for a user namespace even where this process has all rights.
	Rootless bool
}

// State is what a lab is, as it lies in its folder.
type State struct {
	Version  int       `json:"version"`
	Name     string    `json:"name"`
	Pid      int       `json:"pid"` // of the holder
	Started  time.Time `json:"started"`
	Rootless bool      `json:"rootless"`
	Plan     *Plan     `json:"plan"`
	// Faults are those of now; they are asked of the holder and not in the file.
	Faults []Fault `json:"faults"`
	// Notes are what the machine could not do.
	Notes []string `json:"notes,omitempty"`
}

// ErrNone is the error of a lab that is not up.
var ErrNone = errors.New("no lab of that name is up")

// RequestError is a request that makes no sense, whatever the machine.
type RequestError struct{ text string }

func (e *RequestError) Error() string { return e.text }

// mark marks what a function returns, unless the request was wrong.
func mark(err *error) { *err = marked(*err) }

// marked marks all other errors: the machine could not do it.
func marked(err error) error {
	var wrong *RequestError
	if errors.As(err, &wrong) {
		return err
	}
	return failure.Cannot(err)
}

// errOther is the error of systems without network namespaces.
var errOther = failure.Cannot(errors.New("a lab needs Linux: network namespaces, bridges and token buckets"))

// DefaultFolder is where this user's labs keep their files.
func DefaultFolder() Folder {
	if d := os.Getenv("BUSBAR_LAB_DIR"); d != "" {
		return Folder(d)
	}
	if os.Geteuid() == 0 {
		return "/run/busbar-lab"
	}
	if d := os.Getenv("XDG_RUNTIME_DIR"); d != "" {
		return Folder(filepath.Join(d, "busbar-lab"))
	}
	return Folder(filepath.Join(os.TempDir(), fmt.Sprintf("busbar-lab-%d", os.Geteuid())))
}

// Path is the folder of a lab, or of one of its files.
func (f Folder) Path(name string, file ...string) string {
	return filepath.Join(append([]string{string(f), name}, file...)...)
}

// checkName says what is wrong with the name of a lab.
func checkName(name string) error {
	if name == "" || len(name) > 32 || clean(name, 64) != name || name[0] == '-' {
		return &RequestError{fmt.Sprintf("lab name %.40q: expected 1 to 32 letters, digits, - and _", name)}
	}
	return nil
}

// Names are the labs that have a folder, up or not.
func (f Folder) Names() ([]string, error) {
	if runtime.GOOS != "linux" {
		return nil, errOther
	}
	list, err := os.ReadDir(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, x := range list {
		if x.IsDir() && checkName(x.Name()) == nil {
			names = append(names, x.Name())
		}
	}
	return names, marked(err)
}

// States are the labs of those names that are up, and the names of those that are dead and left files. The error is of
// others that could not be asked.
func (f Folder) States(names []string) (up []*State, dead []string, failed error) {
	for _, n := range names {
		l, err := f.Open(n)
		switch {
		case errors.Is(err, ErrNone):
			dead = append(dead, n)
		case err != nil:
			failed = errors.Join(failed, err)
		default:
			up = append(up, l.State)
		}
	}
	return up, dead, failed
}

// DownAll ends the labs of those names, as many as can be, and returns which of them were up or had left files.
func (f Folder) DownAll(names []string) (ended []string, failed error) {
	ended = []string{}
	for _, n := range names {
		was, err := f.Down(n)
		failed = errors.Join(failed, err)
		if was {
			ended = append(ended, n)
		}
	}
	return ended, failed
}

// read reads the state of a lab.
func (f Folder) read(name string) (*State, error) {
	b, err := os.ReadFile(f.Path(name, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	var s State
	if err := json.Unmarshal(b, &s); err != nil || s.Plan == nil {
		return nil, fmt.Errorf("%s: not the state of a lab (%v); `busbar lab down` removes it", f.Path(name, stateFile), err)
	}
	return &s, nil
}

// write puts the state in place at once or not at all.
func (f Folder) write(s *State) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	tmp := f.Path(s.Name, stateFile+".new")
	if err := os.WriteFile(tmp, append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, f.Path(s.Name, stateFile))
}
