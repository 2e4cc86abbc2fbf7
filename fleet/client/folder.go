package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"busbar.dev/internal/failure"
	"busbar.dev/internal/osdep"
	"busbar.dev/internal/outfile"
)

// Folder is where a server keeps what it knows, and where commands of its user find how to reach it.
type Folder struct {
	Data string `placeholder:"DIR" help:"Folder of the server's data (default: busbar in $XDG_STATE_HOME, or in ~/.local/state)."`
}

// Path is the folder's absolute path.
func (f Folder) Path() (string, error) {
	dir := f.Data
	if dir == "" {
		state := os.Getenv("XDG_STATE_HOME")
		if !filepath.IsAbs(state) {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", failure.Cannot(fmt.Errorf("%w; give a folder with --data", err))
			}
			state = filepath.Join(home, ".local", "state")
		}
		dir = filepath.Join(state, "busbar")
	}
	return filepath.Abs(dir)
}

// Make makes the folder, for its owner alone.
func (f Folder) Make() (string, error) {
	dir, err := f.Path()
	if err != nil {
		return "", err
	}
	if err := osdep.MakePrivate(dir); err != nil {
		return "", failure.Cannot(fmt.Errorf("--data: %w", err))
	}
	return dir, nil
}

// localFile is a Local, in the folder.
const localFile = "local.json"

// Local is how programs of a server's machine reach it. It stays when the server ends: the next one is most likely the
// same.
type Local struct {
	Page     string `json:"page"`                // the address of its page
	Socket   bool   `json:"socket,omitempty"`    // it also listens at a socket in its folder
	Agents   string `json:"agents"`              // what agents join
	AgentsCA string `json:"agents_ca,omitempty"` // the certificate that they have to be given for it, a file

	dir string // where it lies
}

// Write leaves it in a server's folder.
func (l Local) Write(dir string) error {
	return failure.Cannot(outfile.PrivateJSON(filepath.Join(dir, localFile), l))
}

// Local reads what a server left in the folder; without one it is empty.
func (f Folder) Local() (l Local, err error) {
	if l.dir, err = f.Path(); err != nil {
		return l, err
	}
	file := filepath.Join(l.dir, localFile)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return l, nil // another user's server: nothing is known of it
	}
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err != nil {
		return l, failure.Cannot(fmt.Errorf("%s: %w; busbar serve writes it anew when it starts", file, err))
	}
	return l, nil
}
