package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
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

	tie *os.File // to a holder that ends with this process
}

// ErrNone is the error of a lab that is not up.
var ErrNone = errors.New("no lab of that name is up")

// RequestError is a request that makes no sense, whatever the machine.
type RequestError struct{ text string }

func (e *RequestError) Error() string { return e.text }

// Path is the folder of a lab, or of one of its files.
func (f Folder) Path(name string, file ...string) string {
	return filepath.Join(append([]string{string(f), name}, file...)...)
}

// CheckName says what is wrong with the name of a lab.
func CheckName(name string) error {
	if name == "" || len(name) > 32 || clean(name, 64) != name || name[0] == '-' {
		return &RequestError{fmt.Sprintf("lab name %.40q: expected 1 to 32 letters, digits, - and _", name)}
	}
	return nil
}

// Names are the labs that have a folder, up or not.
func (f Folder) Names() ([]string, error) {
	list, err := os.ReadDir(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, x := range list {
		if x.IsDir() && CheckName(x.Name()) == nil {
			names = append(names, x.Name())
		}
	}
	return names, err
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
