//go:build !linux

package main

import (
	"errors"

	"busbar.dev/internal/failure"
)

// errNoLab is the answer of every lab command here.
var errNoLab = failure.Cannot(errors.New("a lab needs Linux: network namespaces, bridges and token buckets"))

// Run refuses.
func (labUpCmd) Run(*env) error { return errNoLab }

// Run refuses.
func (labExecCmd) Run(*env) error { return errNoLab }

// Run refuses.
func (labShellCmd) Run(*env) error { return errNoLab }

// Run refuses.
func (labStatusCmd) Run(*env) error { return errNoLab }

// Run refuses.
func (labDownCmd) Run(*env) error { return errNoLab }

// Run refuses.
func (labFaultCmd) Run(*env) error { return errNoLab }

// Run refuses.
func (labHealCmd) Run(*env) error { return errNoLab }

// Run refuses.
func (labHoldCmd) Run(*env) error { return errNoLab }

// Run refuses.
func (labRankCmd) Run(*env) error { return errNoLab }

// Run refuses.
func (labCheckCmd) Run(*env) error { return errNoLab }
