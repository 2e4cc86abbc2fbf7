//go:build unix

package outfile

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"busbar.dev/internal/osdep"
)

// TestPrivateOwner has root make and replace files in the folder of a service: they are the service's, unless they were
// somebody else's.
func TestPrivateOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("being another user needs root")
	}
	for _, x := range []struct{ folder, file, want int }{{4242, 4242, 4242}, {0, 4242, 0}, {4242, -1, 4242}} {
		dir := t.TempDir()
		file := filepath.Join(dir, "tokens.json")
		if x.file >= 0 {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(file, x.file, -1); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chown(dir, x.folder, -1); err != nil {
			t.Fatal(err)
		}
		if err := Private(file, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if owner, _ := osdep.Owner(info); owner != x.want || info.Mode().Perm() != 0o600 {
			t.Errorf("folder of %d, file of %d: it belongs to %d with %v; want %d", x.folder, x.file, owner, info.Mode(), x.want)
		}
		if err := new(Writer).Write(file, func(io.Writer) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if info, err = os.Stat(file); err != nil {
			t.Fatal(err)
		}
		if owner, _ := osdep.Owner(info); owner != x.want {
			t.Errorf("written over, a file of %d belongs to %d", x.want, owner)
		}
	}
}
