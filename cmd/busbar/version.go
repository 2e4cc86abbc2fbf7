package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/alecthomas/kong"
)

type versionCmd struct {
	common
}

// Help ends with an example, as every command's does.
func (versionCmd) Help() string { return "Example:\n  busbar version --json" }

// versionFlag is --version, as people type it.
type versionFlag bool

// BeforeReset runs before anything else is looked at.
func (versionFlag) BeforeReset(app *kong.Kong) error {
	e := &env{stdout: app.Stdout}
	err := versionCmd{}.Run(e)
	app.Exit(0)
	return err
}

// buildVersion is the release, or devel.
func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// Run prints what the build recorded about itself.
func (c versionCmd) Run(e *env) error {
	v := struct {
		Version string `json:"version"`
		Commit  string `json:"commit,omitempty"`
		Go      string `json:"go"`
		System  string `json:"system"`
	}{Version: buildVersion(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
	}
	if c.JSON {
		return json.NewEncoder(e.stdout).Encode(v)
	}
	line := "busbar " + v.Version
	if v.Commit != "" {
		line += " (" + v.Commit + ")"
	}
	_, err := fmt.Fprintln(e.stdout, line, v.Go, v.System)
	return err
}
