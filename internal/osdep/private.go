package osdep

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// MakePrivate makes a folder for this user alone where there is none, and holds it to Private. Root may use folders of
// others, as it does within containers and to manage a service.
func MakePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	user := os.Geteuid()
	if user == 0 {
		user = anyUser
	}
	return Private(dir, user)
}

const anyUser = -1

// Private refuses a file or folder that others than a user and root own or may write to: they could have left there
// what this process takes for its own. Of a link, what it leads to counts as well.
func Private(path string, user int) error {
	for _, look := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} {
		info, err := look(path)
		if err != nil {
			return err
		}
		owner, known := Owner(info)
		switch {
		case known && user != anyUser && owner != user && owner != 0:
			return foreign(path, owner, user)
		case othersWrite(info):
			return writable(path, info)
		}
	}
	return nil
}

// PrivatePath is Private for this user of a file or folder that is executed, loaded or trusted as long as it is used:
// nobody else may put another in its place either, so that every folder on the way to it counts. In a folder such as
// /tmp everybody may write, and replace only what is his own.
func PrivatePath(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	for _, p := range []string{path, real} { // links on the way can be replaced like files
		if _, _, err := privateWay(p, true); err != nil {
			return err
		}
	}
	return nil
}

// TempFolder is a folder for temporary files of this user that all its processes know and nobody else can write to.
func TempFolder() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("busbar-%d", os.Geteuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return dir, PrivatePath(dir)
}

// privateWay checks the folders on the way to a path, and the path itself, which is the last. It returns the owner of
// the topmost folder, and whether everybody may write to the path.
func privateWay(path string, last bool) (top int, shared bool, err error) {
	above := filepath.Dir(path)
	if above != path {
		if top, shared, err = privateWay(above, false); err != nil {
			return top, false, err
		}
	}
	info, err := os.Lstat(path)
	if err != nil {
		return top, false, err
	}
	owner, known := Owner(info)
	if above == path {
		top = owner
	}
	user := os.Geteuid()
	// In a user namespace root is nobody, and so are all others: only what root alone can have made is taken for root's.
	if known && owner != user && owner != 0 && (owner != top || shared || last) {
		return top, false, foreign(path, owner, user)
	}
	shared = othersWrite(info)
	if shared && (last || info.Mode()&fs.ModeSticky == 0) {
		return top, false, writable(path, info)
	}
	return top, shared, nil
}

func othersWrite(info fs.FileInfo) bool {
	return info.Mode()&fs.ModeSymlink == 0 && Others(info)&0o022 != 0
}

func foreign(path string, owner, user int) error {
	return fmt.Errorf("%s belongs to user %d, and this is user %d; remove it, or give another folder", path, owner, user)
}

func writable(path string, info fs.FileInfo) error {
	return fmt.Errorf("%s can be written to by other users (%v); chmod go-w it, or give another folder", path,
		info.Mode().Perm())
}
