package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCmd struct {
	common
}

// Help ends with an example, as every command's does.
func (versionCmd) Help() string { return "Example:\n  busbar version --json" }

// Run prints what the build recorded about itself.
func (c versionCmd) Run(e *env) error {
	v := struct {
		Version string `json:"version"`
		Commit  string `json:"commit,omitempty"`
		Go      string `json:"go"`
		System  string `json:"system"`
	}{Version: "devel", Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" && info.Main.Version != "(devel)" {
			v.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
	}
	if c.JSON {
		return json.NewEncoder(e.stdout).Encode(v)
	}
	_, err := fmt.Fprintln(e.stdout, "busbar", v.Version, v.Commit, v.Go, v.System)
	return err
}
