package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"busbar.dev/internal/failure"
	"busbar.dev/internal/osdep"
	"busbar.dev/launch"
	"busbar.dev/launch/profiler"
)

// profile has the program record its operations. A profiler plugin that is set already stays: NCCL loads one.
func (c *execCmd) profile(e *env, b *launch.Binding) error {
	const name = "NCCL_PROFILER_PLUGIN"
	if have, ok := os.LookupEnv(name); ok {
		b.Notes = append(b.Notes,
			fmt.Sprintf("%s=%s is set already; operations are not recorded for busbar jobs", name, have))
		return nil
	}
	lib, err := profilerLibrary(e.ctx)
	if err != nil {
		return err
	}
	b.Env[name] = lib
	if _, ok := os.LookupEnv("BUSBAR_HOST"); !ok {
		b.Env["BUSBAR_HOST"] = b.Host
	}
	return nil
}

// profilerLibrary is the plugin that was built for this user, or is built now. Every rank loads it: it lies where
// nobody else can put another, and never in a plan's folder, which anybody may have written.
func profilerLibrary(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache, err = osdep.TempFolder()
	}
	sum := sha256.Sum256([]byte(profiler.Source()))
	dir := filepath.Join(cache, "busbar", fmt.Sprintf("profiler-%x", sum[:6]))
	lib := filepath.Join(dir, profiler.LibraryName)
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
	cc, err := exec.LookPath("cc")
	if err != nil {
		return "", failure.Cannot(fmt.Errorf("--profile needs a C compiler (cc) once to build %s; build it elsewhere "+
			"(busbar plan --emit writes %s, its first lines say how) and put it into %s",
			profiler.LibraryName, profiler.SourceName, dir))
	}
	// Ranks of a node build side by side: each has a file of its own until it is whole.
	made, err := os.CreateTemp(dir, "made-*.so")
	if err != nil {
		return "", failure.Cannot(err)
	}
	made.Close()
	defer os.Remove(made.Name())
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, cc, "-O2", "-shared", "-fPIC", "-o", made.Name(), "-x", "c", "-")
	cmd.Stdin = strings.NewReader(profiler.Source())
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", failure.Cannot(fmt.Errorf("%s cannot build the profiler plugin: %w: %.400s", cc, err, out))
	}
	if err := errors.Join(os.Chmod(made.Name(), 0o755), os.Rename(made.Name(), lib)); err != nil {
		return "", failure.Cannot(err)
	}
	return lib, nil
}
