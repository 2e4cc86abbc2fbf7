package lines

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// ahead lists the lines of a text that is read in chunks.
func ahead(in io.Reader, size, workers int) ([]string, error) {
	a := NewAhead[[]string](in)
	a.Size, a.Workers = size, workers
	var got []string
	for made := range a.All(func() func(*Chunk, *[]string) {
		return func(c *Chunk, out *[]string) {
			*out = (*out)[:0]
			for c.Next() {
				*out = append(*out, fmt.Sprintf("%d:%s", c.Num(), c.Text()))
			}
		}
	}) {
		got = append(got, *made...)
	}
	return got, a.Err("log")
}

// Chunks give the lines of a Reader whatever their size.
func TestAhead(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		var b strings.Builder
		for range rnd.IntN(300) {
			b.WriteString(strings.Repeat([]string{"x", "ab\r", "\x1b[1mred\x1b[0m", "", "\x00", " "}[rnd.IntN(6)], rnd.IntN(20)))
			if rnd.IntN(60) == 0 {
				b.WriteString(strings.Repeat("long ", rnd.IntN(50_000)))
			}
			b.WriteString([]string{"\n", "\n", "\r\n", ""}[rnd.IntN(4)])
		}
		want := collect(New(strings.NewReader(b.String())))
		size := MaxPiece * (1 + rnd.IntN(3))
		got, err := ahead(iotest.HalfReader(strings.NewReader(b.String())), size, 1+rnd.IntN(4))
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("chunks of %d: %d lines, want %d; %v", size, len(got), len(want), err)
		}
	}
}

func TestAheadErrors(t *testing.T) {
	broken := errors.New("the disk is gone")
	got, err := ahead(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), MaxPiece, 2)
	if len(got) != 2 || !errors.Is(err, broken) || err.Error() != "log:2: the disk is gone" {
		t.Errorf("got %q and %v, want both lines and the reader's error with its place", got, err)
	}
	a := NewAhead[int](strings.NewReader(strings.Repeat("line\n", 1_000_000)))
	for range a.All(func() func(*Chunk, *int) { return func(*Chunk, *int) {} }) {
		break // nothing may hang
	}
}
