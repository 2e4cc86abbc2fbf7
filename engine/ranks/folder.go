package ranks

import (
	"fmt"
	"os"
	"path/filepath"

	"busbar.dev/internal/osdep"
)

// meetPrefix begins the names of folders in which ranks meet that this program has started.
// Whoever made one holds a lock on it, which goes with the process, however that ends.
const meetPrefix = "busbar-bench-held-"

// meetFolder makes a folder for ranks to meet in, and removes what launchers left that were
// killed. done removes it.
func meetFolder() (dir string, done func(), err error) {
	sweepFolders(os.TempDir())
	for range 100 {
		dir, err := os.MkdirTemp("", meetPrefix)
		if err != nil {
			return "", nil, err
		}
		if f := lockFolder(dir); f != nil {
			return dir, func() {
				os.RemoveAll(dir)
				f.Close()
			}, nil
		}
		// Another run took it for one that was left, in the moment before it was locked.
		os.RemoveAll(dir)
	}
	return "", nil, fmt.Errorf("%s: no folder to meet in could be made", os.TempDir())
}

// lockFolder locks a folder that is still there under its name; nil where it is somebody's.
func lockFolder(dir string) *os.File {
	f, err := os.OpenFile(dir, os.O_RDONLY|osdep.Directory|osdep.NoFollow, 0)
	if err != nil {
		return nil
	}
	held, err := f.Stat()
	if err == nil {
		err = osdep.Lock(f, false)
	}
	if now, gone := os.Lstat(dir); err != nil || gone != nil || !os.SameFile(held, now) {
		f.Close()
		return nil
	}
	return f
}

// sweepFolders removes folders of this user that nobody holds. It is a courtesy: what it cannot
// do it leaves.
func sweepFolders(temp string) {
	list, err := filepath.Glob(filepath.Join(temp, meetPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range list {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() {
			continue
		}
		if uid, ok := osdep.Owner(info); !ok || uid != os.Getuid() {
			continue
		}
		if f := lockFolder(dir); f != nil {
			os.RemoveAll(dir)
			f.Close()
		}
	}
}
