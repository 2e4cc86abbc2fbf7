package measure

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"busbar.dev/engine/device"
)

// TestLaunchedSecret: the secret of ranks that a launcher starts is in its environment, and not among its arguments,
// which everybody on the host can read.
func TestLaunchedSecret(t *testing.T) {
	stop := errors.New("enough")
	asked := false
	with := Programs{Worker: func(args, env []string) (device.Process, error) {
		asked = true
		secret := func(s string) bool { return strings.HasPrefix(s, "BUSBAR_GPU_TOKEN=") }
		i := slices.IndexFunc(env, secret)
		if i < 0 || slices.Contains(args, env[i]) || slices.ContainsFunc(args, secret) ||
			!slices.Contains(args, "NCCL_ALGO=Ring") {
			t.Errorf("arguments %q, environment %q", args, env)
		}
		return nil, stop
	}}
	g := GPURanks{PerHost: 2, Helper: "busbar-gpu"}
	if _, err := g.launched(t.Context(), with, []string{"srun"}, map[string]string{"NCCL_ALGO": "Ring"}); !asked ||
		!errors.Is(err, stop) {
		t.Errorf("%v; expected a launcher to be started", err)
	}
}
