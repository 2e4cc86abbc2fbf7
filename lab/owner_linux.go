package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// own refuses a folder, or a lab's folder in it, that another user owns or can write to: who does would answer for the
// lab's holder, and get the environment of programs that are started in it. A folder that is not there is nobody's.
func (f Folder) own(name ...string) error {
	paths := []string{string(f)}
	for _, n := range name {
		paths = append(paths, f.Path(n))
	}
	for _, p := range paths {
		for _, look := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} { // a link, and where it leads
			st, err := look(p)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := owned(p, st); err != nil {
				return err
			}
		}
	}
	return nil
}

func owned(path string, st fs.FileInfo) error {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if int(sys.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, and this is user %d: a lab is not kept in, or looked for in, a folder of "+
			"another; remove it, or set BUSBAR_LAB_DIR", path, sys.Uid, os.Geteuid())
	}
	if st.IsDir() && st.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s can be written to by other users (mode %v): a lab is not kept in such a folder; chmod go-w "+
			"it, or set BUSBAR_LAB_DIR", path, st.Mode().Perm())
	}
	return nil
}
