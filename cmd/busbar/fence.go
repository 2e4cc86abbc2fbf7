package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"busbar.dev/internal/failure"
	"busbar.dev/web"
)

// fence is around a command that somebody else asks for, through the page: which
// files it may touch. To a command, those outside are not there; what it reads of
// the machine itself (its topology) is not its asker's choice and stays.
type fence struct {
	folders []string
}

// fenced are the commands that can be asked for. They compute, and start nothing
// but the tools that tell of this machine's GPUs.
var fenced = []string{"map", "predict", "step", "envelope", "need", "scale", "plan", "presets", "models", "hardware", "doctor", "doctor explain", "doctor bench", "version"}

// confined is the program as the page asks it.
func confined(ctx context.Context, j web.Job) int {
	return runWithin(ctx, &fence{folders: j.Folders}, j.Stdin, j.Stdout, j.Stderr, j.Args)
}

// allows refuses a command that cannot be asked for.
func (f *fence) allows(command string) error {
	if f == nil || slices.Contains(fenced, command) {
		return nil
	}
	return fmt.Errorf("%s cannot be asked for here; run busbar %s on a machine of yours", command, command)
}

// has reports whether a name is inside.
func (f *fence) has(name string) bool {
	if f == nil {
		return true
	}
	if !filepath.IsAbs(name) || strings.Contains(name, "\x00") {
		return false
	}
	name = filepath.Clean(name)
	return slices.ContainsFunc(f.folders, func(dir string) bool {
		return name == dir || strings.HasPrefix(name, dir+string(filepath.Separator))
	})
}

// keeps refuses to write outside.
func (f *fence) keeps(name string) error {
	if f.has(name) {
		return nil
	}
	return fmt.Errorf("%s: files are not written here; run the command on a machine of yours", name)
}

// mostDevices is how many GPUs or NICs a cluster may have that somebody else asks for.
const mostDevices = 160_000

// stat is what a name stands for. Outside of a fence nothing is there.
func (e *env) stat(name string) (fs.FileInfo, error) {
	if !e.fence.has(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return os.Stat(name)
}

// Open opens what is inside.
func (f *fence) Open(name string) (fs.File, error) {
	if !f.has(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return os.Open(name)
}

// exists reports a file or folder of that name.
func (e *env) exists(path string) bool {
	_, err := e.stat(path)
	return err == nil
}

// wholly runs a command to its end, which may be after that of its context, and
// survives its faults: others are being served.
func (e *env) wholly(command func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(os.Stderr, "busbar: a fault: %v\n%s", p, debug.Stack()) // for who runs the server, not for who asks
			err = failure.Cannot(fmt.Errorf("a fault of busbar, not of the question: %v", p))
		}
	}()
	if err := command(); err != nil || e.ctx.Err() == nil {
		return err
	}
	return context.Cause(e.ctx)
}
