package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"busbar.dev/internal/failure"
	"busbar.dev/query"
	"busbar.dev/report"
)

type planCmd struct {
	common
	query.Plan
	Force bool `help:"With --emit: overwrite an earlier plan in the folder and remove what it wrote and nobody changed."`
}

// Run plans, writes the files and prints the plans. A search that was interrupted prints what it has.
func (c *planCmd) Run(e *env) error {
	if err := c.checkFolder(); err != nil {
		return err
	}
	c.Made = query.ShellLine(append([]string{"busbar"}, e.args...))
	e.answers.Store(true)
	doc, interrupted := c.Plan.Run(e.ctx, e.query(c.common))
	if doc == nil {
		return interrupted
	}
	if doc.Emitted != nil {
		if err := doc.Emitted.Write(c.Force); err != nil {
			return err
		}
	}
	return errors.Join(show(e, c.common, doc, report.Plan), interrupted)
}

// checkFolder says before the search what could not be written after it.
func (c *planCmd) checkFolder() error {
	if c.Emit == "" {
		if c.Force {
			return errors.New("--files, --pick, --detected and --force are for --emit DIR")
		}
		return nil
	}
	var err error
	if c.Folder, err = filepath.Abs(c.Emit); err != nil {
		return failure.Cannot(err)
	}
	list, err := os.ReadDir(c.Emit)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return failure.Cannot(fmt.Errorf("--emit: %w; expected a folder, or a name for a new one", err))
	case len(list) > 0 && !c.Force:
		return fmt.Errorf("--emit %s: the folder is not empty (%s); take another, or --force to replace an earlier "+
			"plan", c.Emit, list[0].Name())
	}
	return nil
}
