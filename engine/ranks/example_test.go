package ranks_test

import (
	"fmt"

	"busbar.dev/engine/ranks"
)

// Which rank a process is, and where it meets the others, under torchrun.
func ExampleConfigFromEnv() {
	env := map[string]string{"RANK": "1", "WORLD_SIZE": "8", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"}
	cfg, launcher, err := ranks.ConfigFromEnv(ranks.Environment{Getenv: func(name string) string { return env[name] }})
	fmt.Println(launcher, cfg.Rank, cfg.Size, cfg.Meet, err)
	// Output: torchrun 1 8 10.0.0.1:29500 <nil>
}
