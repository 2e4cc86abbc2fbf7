package outfile

import (
	"errors"
	"os"
	"path/filepath"

	"busbar.dev/internal/osdep"
)

// Private writes a file that only its owner may read, whole or not at all. One that root replaces stays its owner's
// where the folder is his too: the service that it belongs to reads it.
func Private(file string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	old, err1 := os.Lstat(file)
	dir, err2 := os.Stat(filepath.Dir(file))
	if err == nil && err1 == nil && err2 == nil && os.Geteuid() == 0 {
		owner, _ := osdep.Owner(old)
		if its, _ := osdep.Owner(dir); owner == its {
			err = tmp.Chown(owner, -1)
		}
	}
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}
