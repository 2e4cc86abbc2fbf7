package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

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
	lib, err := profiler.Library(func(args ...string) ([]byte, error) {
		ctx, stop := context.WithTimeout(e.ctx, time.Minute)
		defer stop()
		cc := exec.CommandContext(ctx, "cc", args...)
		cc.Stdin = strings.NewReader(profiler.Source())
		return cc.CombinedOutput()
	})
	if err != nil {
		return err
	}
	b.Env[name] = lib
	if _, ok := os.LookupEnv("BUSBAR_HOST"); !ok {
		b.Env["BUSBAR_HOST"] = b.Host
	}
	return nil
}
