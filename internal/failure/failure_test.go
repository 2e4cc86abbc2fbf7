package failure

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

func TestCannot(t *testing.T) {
	err := fmt.Errorf("outer: %w", Cannot(fs.ErrPermission))
	if !errors.Is(err, ErrCannot) || !errors.Is(err, fs.ErrPermission) || err.Error() != "outer: permission denied" {
		t.Errorf("%v: lost its mark, its cause or its text", err)
	}
	if Cannot(nil) != nil {
		t.Error("no error became one")
	}
	if err := fmt.Errorf("plain: %w", fs.ErrPermission); errors.Is(err, ErrCannot) {
		t.Error("an unmarked error counts as marked")
	}
}
