//go:build unix

package osdep

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPrivatePath refuses what another user has put, or could put, in the place of a file: by its owner, its mode, a
// folder on the way, or a link.
func TestPrivatePath(t *testing.T) {
	const other = 4242
	root := os.Geteuid() == 0
	for name, x := range map[string]struct {
		spoil func(top string) error
		root  bool // needs to be
		want  string
	}{
		"own":                {spoil: func(string) error { return nil }},
		"in a folder as tmp": {spoil: func(top string) error { return os.Chmod(top, 0o777|fs.ModeSticky) }},
		"file open": {
			func(top string) error { return os.Chmod(top+"/a/file", 0o620) }, false, "written to by other",
		},
		"folder open": {func(top string) error { return os.Chmod(top+"/a", 0o770) }, false, "written to by other"},
		"way open":    {func(top string) error { return os.Chmod(top, 0o777) }, false, "written to by other"},
		"another's file": {
			func(top string) error { return os.Chown(top+"/a/file", other, -1) }, true, "belongs to user 4242",
		},
		"another's folder": {func(top string) error { return os.Chown(top+"/a", other, -1) }, true, "belongs to user 4242"},
		"another's way":    {func(top string) error { return os.Chown(top, other, -1) }, true, "belongs to user 4242"},
		"own link": {spoil: func(top string) error {
			if err := os.Rename(top+"/a", top+"/b"); err != nil {
				return err
			}
			return os.Symlink("b", top+"/a")
		}},
		"another's link": {func(top string) error {
			if err := os.Rename(top+"/a", top+"/b"); err != nil {
				return err
			}
			if err := os.Symlink("b", top+"/a"); err != nil {
				return err
			}
			return os.Lchown(top+"/a", other, -1)
		}, true, "belongs to user 4242"},
		"link to an open folder": {func(top string) error {
			if err := os.Rename(top+"/a", top+"/b"); err != nil {
				return err
			}
			if err := os.Chmod(top+"/b", 0o777); err != nil {
				return err
			}
			return os.Symlink("b", top+"/a")
		}, false, "written to by other"},
	} {
		if x.root && !root {
			continue
		}
		top := filepath.Join(t.TempDir(), "top")
		if err := os.MkdirAll(top+"/a", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(top+"/a/file", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := x.spoil(top); err != nil {
			t.Fatal(err)
		}
		err := PrivatePath(top + "/a/file")
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%s: %v; want %q", name, err, x.want)
		}
	}
}

// TestMakePrivate makes a folder, and refuses one in which somebody else may have left files.
func TestMakePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := MakePrivate(dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, 4242, -1); err != nil {
			t.Fatal(err)
		}
		if err := Private(dir, 4243); err == nil || !strings.Contains(err.Error(), "belongs to user 4242") {
			t.Errorf("the folder of another user: %v", err)
		}
		if err := MakePrivate(dir); err != nil { // root manages a service's
			t.Error(err)
		}
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := MakePrivate(dir); err == nil || !strings.Contains(err.Error(), "written to by other users") {
		t.Errorf("a folder for everybody: %v", err)
	}
}

// TestTempFolder finds the folder of this user's temporary files made by another.
func TestTempFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir, err := TempFolder()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := TempFolder(); err == nil || !strings.Contains(err.Error(), "written to by other users") {
		t.Errorf("a folder for everybody: %v", err)
	}
}
