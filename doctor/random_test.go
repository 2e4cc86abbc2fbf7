package doctor

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"busbar.dev/internal/test/threads"
)

// Texts put together at random from lines that mean something, whole, cut, doubled
// and damaged: the doctor never panics and never says more than fits on a few
// pages. BUSBAR_FUZZ=10m goes on for that long.
func TestRandomTexts(t *testing.T) {
	span := 2 * time.Second
	if d, err := time.ParseDuration(os.Getenv("BUSBAR_FUZZ")); err == nil {
		span = d
	}
	pool := linePool(t)
	words := vocabulary()
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 1))
	n := 0
	var text string
	defer func() {
		if r := recover(); r != nil {
			t.Fatalf("seed %d, text %q: %v", seed, text, r)
		}
	}()
	for end := time.Now().Add(span); time.Now().Before(end); n++ {
		text = randomText(rng, pool)
		r := words.NewReader()
		if err := r.Read("x", strings.NewReader(text)); err != nil {
			continue
		}
		set, err := r.Set()
		if err != nil {
			t.Fatal(err)
		}
		rep := Examine(set)
		rep.Mask(n%2 == 0)
		var b strings.Builder
		for _, err := range []error{
			Text{}.Write(&b, rep), indented(&b, rep), Markdown(&b, rep),
		} {
			if err != nil {
				t.Fatalf("%v\n%q", err, text)
			}
		}
		if b.Len() > 1<<20 {
			t.Fatalf("%d bytes of report for %q", b.Len(), text)
		}
		for i, f := range rep.Findings {
			if f.ID == "" || f.Title == "" || f.Confidence < 0 || f.Confidence > 1 ||
				i > 0 && rep.Findings[i-1].ExplainedBy != "" && f.ExplainedBy == "" {
				t.Fatalf("finding %d of %q: %+v", i, text, f)
			}
		}
	}
	t.Logf("%d texts", n)
}

// linePool is lines of trials and of an example.
func linePool(t *testing.T) []string {
	job, err := os.ReadFile("../docs/examples/job.log")
	if err != nil {
		t.Fatal(err)
	}
	pool := strings.Split(string(job), "\n")
	for _, x := range threads.Trials(t, "") {
		pool = append(pool, strings.Split(x.Text, "\n")...)
	}
	return append(pool, "8x H100", "2x8 H100, 8x400G RoCE", "NCCL_ALGO=", "rank 3 step time 1 s", "a1,b2 3.5",
		"{\"a\":{\"NCCL_X\":\"1\"}}", "\x1b[", "# Rank  0 Group  0 Pid 1 on n device  0 [0000:1b:00] NVIDIA H100", "\x00")
}

func randomText(rng *rand.Rand, pool []string) string {
	var b strings.Builder
	for range 1 + rng.IntN(20) {
		l := []byte(pool[rng.IntN(len(pool))])
		switch rng.IntN(6) {
		case 0:
			l = l[:rng.IntN(len(l)+1)]
		case 1:
			if len(l) > 0 {
				l[rng.IntN(len(l))] = byte(rng.IntN(256))
			}
		case 2:
			l = append(l, pool[rng.IntN(len(pool))]...)
		case 3:
			for i := range l {
				if l[i] >= '0' && l[i] <= '9' && rng.IntN(2) == 0 {
					l[i] = byte('0' + rng.IntN(10))
				}
			}
		}
		b.Write(l)
		if rng.IntN(12) > 0 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
