package profile

import (
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// Folder is where the plugin puts rings unless BUSBAR_PROFILE_DIR says otherwise.
const Folder = "/dev/shm"

// maxRings bounds how many rings of a folder are read.
const maxRings = 4096

// Files are the names of the rings of a folder.
func Files(files fs.FS, folder string) ([]string, error) {
	entries, err := fs.ReadDir(files, folder)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, e := range entries {
		if n := e.Name(); e.Type().IsRegular() && strings.HasPrefix(n, "busbar-") && strings.HasSuffix(n, ".ring") &&
			len(list) < maxRings {
			list = append(list, path.Join(folder, n))
		}
	}
	return list, nil
}

// ReadFile reads a ring that its process may be writing.
func ReadFile(files fs.FS, name string) (*Ring, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case len(data) > MaxSize:
		return nil, fmt.Errorf("%s: more than %d MiB; expected a ring of busbar's profiler plugin", name, MaxSize>>20)
	}
	var next [8]byte // operations that the ring has by now
	if again, ok := f.(io.ReaderAt); ok {
		_, _ = again.ReadAt(next[:], nextAt) // of a file that is gone, what was read counts
	}
	return Read(name, data, binary.LittleEndian.Uint64(next[:]))
}
