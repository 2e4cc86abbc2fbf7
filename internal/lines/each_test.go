package lines

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestEach(t *testing.T) {
	var got []string
	keep := func(num int, text string) error {
		got = append(got, fmt.Sprint(num, text))
		return nil
	}
	if err := Each("log", strings.NewReader("a\n[1,0]<stdout>:b\r\n\x1b[1mc\x1b[0m"), keep); err != nil {
		t.Fatal(err)
	}
	if want := "1a 2b 3c"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}

	enough := errors.New("enough")
	if err := Each("log", strings.NewReader("a\nb\n"), func(int, string) error { return enough }); err != enough {
		t.Errorf("got %v, want what take returned", err)
	}

	broken := errors.New("the disk is gone")
	err := Each("log", io.MultiReader(strings.NewReader("a\nb\n"), iotest.ErrReader(broken)), keep)
	if !errors.Is(err, broken) || err.Error() != "log:2: the disk is gone" {
		t.Errorf("got %v, want the reader's error with its place", err)
	}
}
