package outfile

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"busbar.dev/internal/osdep"
)

// Private writes a file that only its owner may read, whole or not at all. One that root makes or replaces in another's
// folder is his, unless it was somebody else's: the service that it belongs to reads it.
func Private(file string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if dir, err1 := os.Stat(filepath.Dir(file)); err == nil && err1 == nil && os.Geteuid() == 0 {
		its, _ := osdep.Owner(dir)
		old, err1 := os.Lstat(file)
		if err1 != nil {
			old = dir
		}
		if owner, _ := osdep.Owner(old); owner == its {
			err = tmp.Chown(its, -1)
		}
	}
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), file); err != nil {
		return err
	}
	if folder, err := os.Open(filepath.Dir(file)); err == nil { // not on Windows
		defer folder.Close()
		_ = folder.Sync() // else a power cut may leave the old one
	}
	return nil
}

// PrivateJSON writes a value as such a file.
func PrivateJSON(file string, v any) error {
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return Private(file, append(data, '\n'))
}
