package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"busbar.dev/fleet/nvsentinel"
	"busbar.dev/internal/failure"
	"busbar.dev/measure"
)

// preflight checks as NVSentinel's preflight does: the pods of a gang meet, check each other, and every one reports its
// own node. It ends with 0 where nothing speaks against the node, where the verdict is only stored, or where nothing
// could be checked, which is no fault of the node; with 1 where something does, 2 for a wrong environment, and 3 where
// the gang did not meet or the event was not taken.
func (c *checkCmd) preflight(e *env) error {
	for _, flag := range []string{"emit", "hosts", "ranks", "rank", "meet", "output"} {
		if e.given[flag] {
			return fmt.Errorf("--as %s and --%s: expected one of them; NVSentinel says who takes part", c.As, flag)
		}
	}
	p, err := nvsentinel.Read(os.Getenv)
	if err != nil {
		return err
	}
	gang, err := p.Meet(e.ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "busbar-preflight.")
	if err != nil {
		return failure.Cannot(err)
	}
	defer os.RemoveAll(dir)
	c.Job.Ranks, c.Job.Rank, c.Job.Meet = gang.Size, gang.Rank, filepath.Join(dir, "meet")
	if gang.Size > 1 {
		c.Job.Meet = net.JoinHostPort(gang.Address, gang.Port)
	}
	if !e.given["meet-timeout"] {
		c.Job.Patience = 10 * time.Minute // containers of a gang do not start at once
	}
	var told *measure.CheckNode
	c.Told = func(n measure.CheckNode) { told = &n }
	_, err = c.RunOn(e.ctx, e.measuring(c.common), gpuPrograms(),
		onRanks(e, c.common, c.Job, func() error { return nil }, e.into(""), c.answer))
	if e.ctx.Err() != nil {
		return err
	}
	if told == nil {
		err = errors.Join(err, errors.New("rank 0 sent no verdict"))
		fmt.Fprintln(e.stderr, "busbar: not checked:", err)
		return p.Report(e.ctx, nvsentinel.Event{
			Message: fmt.Sprint("not checked, which says nothing of the node: ", err), Codes: []string{"BUSBAR_NOT_CHECKED"},
		})
	}
	event := nvsentinel.Event{Healthy: told.Passed(), Fatal: told.Verdict == "unhealthy", Message: told.Verdict}
	for _, list := range [][]string{told.Reasons, told.Untested} {
		if len(list) > 0 {
			event.Message += ": " + strings.Join(list, "; ")
		}
	}
	for _, kind := range told.Kinds {
		event.Codes = append(event.Codes, nvsentinel.Code(kind))
	}
	fmt.Fprintf(e.stderr, "%s: %s\n", p.Node, event.Message)
	if err := p.Report(e.ctx, event); err != nil {
		return err
	}
	if told.Passed() || p.StoreOnly {
		return nil
	}
	return errWrong
}
