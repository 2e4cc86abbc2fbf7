package lazyre

import (
	"testing"
)

func TestNewInTests(t *testing.T) {
	if r := New(`a+`); r.re == nil {
		t.Error("not compiled at once in a test: a wrong expression would fail only when used")
	}
	defer func() {
		if recover() == nil {
			t.Error("a wrong expression is taken")
		}
	}()
	New(`a(`)
}

func TestFirstUse(t *testing.T) {
	inTest = false
	defer func() { inTest = true }()
	r := New(`(a)(b)?`)
	if r.re != nil {
		t.Error("compiled before its first use")
	}
	for range 2 {
		if m := r.FindStringSubmatch("xa"); len(m) != 3 || m[1] != "a" || m[2] != "" {
			t.Errorf("found %q", m)
		}
	}
}
