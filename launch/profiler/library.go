package profiler

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"busbar.dev/internal/failure"
	"busbar.dev/internal/osdep"
)

// Library is the plugin that was built for this user, or is built now. Every rank loads it: it lies where
// nobody else can put another, and never in a plan's folder, which anybody may have written. cc compiles its source.
func Library(cc func(args ...string) ([]byte, error)) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache, err = osdep.TempFolder()
	}
	sum := sha256.Sum256([]byte(source))
	dir := filepath.Join(cache, "busbar", fmt.Sprintf("profiler-%x", sum[:6]))
	lib := filepath.Join(dir, LibraryName)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = osdep.PrivatePath(dir)
	}
	if err != nil {
		return "", failure.Cannot(fmt.Errorf("--profile: %w (XDG_CACHE_HOME names the folder of built files)", err))
	}
	if info, err := os.Lstat(lib); err == nil && info.Mode().IsRegular() && osdep.PrivatePath(lib) == nil {
		return lib, nil
	}
	// Ranks of a node build side by side: each has a file of its own until it is whole.
	made, err := os.CreateTemp(dir, "made-*.so")
	if err != nil {
		return "", failure.Cannot(err)
	}
	made.Close()
	defer os.Remove(made.Name())
	if out, err := cc("-O2", "-shared", "-fPIC", "-o", made.Name(), "-x", "c", "-"); err != nil {
		return "", failure.Cannot(fmt.Errorf("--profile needs a C compiler (cc) once to build %s: %w: %.400s; build it "+
			"elsewhere (busbar plan --emit writes %s, its first lines say how) and put it into %s", LibraryName, err, out,
			SourceName, dir))
	}
	if err := errors.Join(os.Chmod(made.Name(), 0o755), os.Rename(made.Name(), lib)); err != nil {
		return "", failure.Cannot(err)
	}
	return lib, nil
}
