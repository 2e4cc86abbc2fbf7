package main

import (
	"context"
	"encoding/json"

	"github.com/alecthomas/kong"

	"busbar.dev/query"
	"busbar.dev/report"
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
	e := &env{stdout: &stdoutStream{w: app.Stdout}}
	err := versionCmd{}.Run(e)
	app.Exit(0)
	return err
}

// buildVersion is the release, or devel.
func buildVersion() string {
	d, _ := query.Release{}.Run(context.Background(), query.Env{}) // it cannot fail
	return d.Version
}

// Run prints what the build recorded about itself.
func (c versionCmd) Run(e *env) error {
	d, err := query.Release{}.Run(e.ctx, query.Env{})
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(e.stdout).Encode(d)
	}
	return report.Print(e.stdout, report.TextOptions{}, report.Release, d)
}
