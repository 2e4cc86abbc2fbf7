//go:build unix

package engine_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestElasticStorm starts newcomers and kills members and newcomers in any order, faster than the
// others can agree on one loss. Two members are spared, so that there is a job; whoever is left
// at the end has come in and says the same.
func TestElasticStorm(t *testing.T) {
	rounds := killings(t, 1)
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(14, seed))
	for k := range rounds {
		how := ways[(k+int(seed%3))%3]
		c := newCast(t, 5, 20*time.Second, how)
		spared := map[int]bool{rng.IntN(5): true, rng.IntN(5): true}
		dead := storm(c, rng, spared)
		member := map[int]bool{}
		for i := range c.all {
			if !dead[i] {
				if i >= 5 {
					c.expect(i, "joined")
				}
				member[i] = true
			}
		}
		for _, in := range c.input {
			in.Close()
		}
		ends := map[string]bool{}
		for i := range member {
			line := c.line(i)
			if !strings.HasPrefix(line, "end ") {
				t.Fatalf("seed %d, storm %d over %s: actor %d says %q", seed, k, how, i, line)
			}
			ends[strings.Join(strings.Fields(line)[:7], " ")] = true // histories began at different times
		}
		if len(ends) != 1 {
			t.Fatalf("seed %d, storm %d over %s: %d actors are left, and their ends are %v", seed, k, how, len(member), ends)
		}
		c.end()
	}
}

// storm lets actors come and go for a while, and tells who was killed.
func storm(c *cast, rng *rand.Rand, spared map[int]bool) (dead map[int]bool) {
	dead = map[int]bool{}
	for range 16 {
		pause(rng, 60)
		if victim := rng.IntN(len(c.all)); rng.IntN(2) == 0 && !spared[victim] && !dead[victim] {
			c.all[victim].cmd.Process.Kill()
			dead[victim] = true
			continue
		}
		if len(c.all)-len(dead) < 10 {
			c.start(-1)
		}
	}
	return dead
}
