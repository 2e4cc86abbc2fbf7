package main

import (
	"os"
	"testing"

	"busbar.dev/hardware"
	"busbar.dev/lab"
)

// quiet reports that nothing else runs on this machine, so that what a test measures may be judged: make test-quiet
// says so. Elsewhere a test asks only that something was measured, and verdicts are those on recorded measurements.
func quiet() bool { return os.Getenv("BUSBAR_QUIET") != "" }

// labAllowed reports whether this machine lets the tests make a lab: it makes one.
func labAllowed(t *testing.T) bool {
	err := makeLab(t)
	if err != nil {
		t.Logf("no lab here: %v", err)
	}
	return err == nil
}

func makeLab(t *testing.T) error {
	c, err := hardware.Preset("baskerville", 1)
	if err != nil {
		return err
	}
	p, err := lab.New(c, lab.Options{})
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	folder := lab.Folder(t.TempDir())
	if _, err := lab.Start(t.Context(), lab.Config{
		Folder: folder, Name: "probe", Plan: p, Program: self, Args: []string{"busbar", "lab", "hold"},
	}); err != nil {
		return err
	}
	_, err = folder.Down("probe")
	return err
}

// endLabs ends what labs there are in a folder.
func endLabs(dir string) {
	names, _ := lab.Folder(dir).Names() // no folder, no labs
	_, _ = lab.Folder(dir).DownAll(names)
}
