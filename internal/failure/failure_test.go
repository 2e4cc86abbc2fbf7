package failure

import (
	"context"
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

func TestIn(t *testing.T) {
	err := fmt.Errorf("outer: %w", In("layout", In("root", Cannot(fs.ErrPermission))))
	var named interface{ Field() string }
	if !errors.As(err, &named) || named.Field() != "root" || !errors.Is(err, ErrCannot) ||
		err.Error() != "outer: permission denied" {
		t.Errorf("%v: lost its field, its mark or its text", err)
	}
	if In("root", nil) != nil || errors.As(In("root", context.Canceled), &named) {
		t.Error("no error became one, or the end of a context is about a parameter")
	}
}
