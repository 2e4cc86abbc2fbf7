package snapshot

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/sysfs"
)

// Limits of an archive.
const (
	maxEntries = 1_000_000
	maxFile    = 1 << 20 // kept of one file; cpuinfo of a large machine is the longest
	maxKept    = 256 << 20
	maxName    = 4096 // bytes of a path, as in Linux
	maxDepth   = 128  // folders in a path; /sys has about thirty
	entrySize  = 512  // bytes that an entry takes beside what is in it
)

// ReadWithin reads the machine in a tar archive that may cost so much.
func ReadWithin(b *cluster.Budget, name string, r io.Reader) (f *cluster.Fragment, err error) {
	tree, err := readTree(b, r)
	if err == nil {
		f, err = sysfs.Read("", tree.machine())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f.Source = name
	return f, nil
}

// readTree reads an archive into a tree.
func readTree(b *cluster.Budget, in io.Reader) (*tree, error) {
	t := &tree{entries: map[string]*entry{".": newEntry(".", tar.TypeDir)}}
	kept, most := int64(0), b.BytesLeft(maxKept)
	archive := tar.NewReader(in)
	for n := 0; ; n++ {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			if len(t.entries) > 1 && errors.Is(err, io.ErrUnexpectedEOF) {
				return nil, fmt.Errorf("the archive is cut short after %d entries; copy it again", n)
			}
			return nil, fmt.Errorf("entry %d: %w; expected a tar archive of /sys and /proc", n+1, err)
		}
		if d := strings.Count(h.Name, "/"); len(h.Name) > maxName || len(h.Linkname) > maxName || d > maxDepth {
			return nil, fmt.Errorf("entry %d: a name of %d bytes in %d folders; no machine has such in /sys or /proc", n+1,
				max(len(h.Name), len(h.Linkname)), d)
		}
		if len(t.entries) > maxEntries {
			return nil, fmt.Errorf("more than %d files and folders; pack only /sys and /proc", maxEntries)
		}
		var data []byte
		if h.Typeflag == tar.TypeReg {
			if data, err = io.ReadAll(io.LimitReader(archive, maxFile)); err != nil {
				return nil, fmt.Errorf("%s: %w", h.Name, err)
			}
		}
		if kept += int64(len(data)+len(h.Name)+len(h.Linkname)) + entrySize; kept > most {
			return nil, fmt.Errorf("more than %d MiB of files; pack only /sys and /proc", most>>20)
		}
		t.addEntry(h, data)
	}
	if len(t.entries) == 1 {
		return nil, errors.New("an empty archive; expected /sys and /proc of a machine")
	}
	return t, b.TakeBytes(kept)
}

// machine finds the folder that holds sys and proc; without one it is the archive itself, which may hold RDMA devices.
func (t *tree) machine() fs.FS {
	best := ""
	for name, e := range t.entries {
		dir, last := path.Split(name)
		if last != "sys" || !e.IsDir() {
			continue
		}
		if dir = path.Clean(dir); best == "" || len(dir) < len(best) || len(dir) == len(best) && dir < best {
			best = dir
		}
	}
	root, _ := fs.Sub(t, cmp.Or(best, ".")) // a name of the tree is a valid path
	return root
}
