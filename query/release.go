package query

import (
	"cmp"
	"context"
	"runtime"
	"runtime/debug"
)

// Release asks which program answers.
type Release struct{}

// ReleaseDoc is the answer to Release: what the build recorded about itself.
type ReleaseDoc struct {
	Version   string `json:"version"`          // of the release, or devel
	Commit    string `json:"commit,omitempty"` // that it was built from
	Go        string `json:"go"`
	System    string `json:"system"`    // operating system and processor
	Documents int    `json:"documents"` // the version of the documents' shapes
}

// version is that of a release, which make dist sets; others have what Go records.
var version string

// Run reads what the build recorded.
func (Release) Run(context.Context, Env) (*ReleaseDoc, error) {
	d := &ReleaseDoc{
		Version: "devel", Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Documents: Version,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return d, nil
	}
	if v := cmp.Or(version, info.Main.Version); v != "" && v != "(devel)" {
		d.Version = v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			d.Commit = s.Value
		}
	}
	return d, nil
}
