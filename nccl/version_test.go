package nccl

import "testing"

func TestParseVersion(t *testing.T) {
	for in, want := range map[string]string{
		"2.28": "2.28.9", "2.28.9": "2.28.9", "2.30.7": "2.30.7", "2.28.9+cuda13.0": "2.28.9",
		"NCCL version 2.28.9+cuda13.0": "2.28.9", "v2.18.5-1": "2.18.5", "2.8.4": "2.8.4", "2.17": "2.17.1",
		" 2.19 ": "2.19.4",
	} {
		v, err := ParseVersion(in)
		if err != nil || v.String() != want {
			t.Errorf("%q: %v, %v; want %s", in, v, err, want)
		}
	}
	for _, in := range []string{"", "2", "2.7", "2.999.1", "3.0", "2.x", "2.28.9.1", "2.-3", "two"} {
		if v, err := ParseVersion(in); err == nil {
			t.Errorf("%q: %v without error", in, v)
		}
	}
}

func TestVersionOrder(t *testing.T) {
	list := []string{"2.18.1", "2.18.5", "2.19.3", "2.28.3", "2.28.9", "2.30.7"}
	for i, a := range list {
		for j, b := range list {
			va, _ := ParseVersion(a)
			vb, _ := ParseVersion(b)
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := va.Compare(vb); got != want {
				t.Errorf("%s against %s: %d, want %d", a, b, got, want)
			}
		}
	}
}
