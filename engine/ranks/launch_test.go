package ranks

import (
	"os/exec"
	"testing"
	"time"
)

// TestKilledRank: where one rank is killed that the others have yet to meet, it alone is named, and nobody waits as
// long as for a rank that is silent.
func TestKilledRank(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	c := &children{stderr: make([]transcript, 3)}
	for _, does := range []string{"exec sleep 3600", "kill -9 $$", "exec sleep 3600"} {
		cmd := exec.Command(sh, "-c", does)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		c.ranks = append(c.ranks, cmd)
	}
	if err := c.outlast(t.Context(), time.Hour); err == nil || err.Error() != "rank 1 was ended by signal 9 (killed)" {
		t.Error(err)
	}
}
