package nccl

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is a release of NCCL. The zero value is no release.
type Version struct{ Major, Minor, Patch int }

// Newest is the latest release whose rules are known here, Oldest the first. Up to 2.17 those are the table of
// estimates and what gates it; rings and trees are searched for as by 2.18.
var (
	Oldest = Version{2, 8, 3}
	Newest = Version{2, 30, 7}
)

// latest is the last patch of each minor release, which a version without patch
// stands for. Source of the list: NVIDIA's release tags.
var latest = map[int]int{
	8: 4, 9: 9, 10: 3, 11: 4, 12: 12, 13: 4, 14: 3, 15: 5, 16: 5, 17: 1, 18: 6, 19: 4, 20: 5, 21: 5, 22: 3, 23: 4, 24: 3,
	25: 1, 26: 6, 27: 7, 28: 9, 29: 7, 30: 7,
}

// ParseVersion reads "2.28", "2.28.9" and what NCCL prints: "NCCL version 2.28.9+cuda13.0",
// "2.18.5-1". Without a patch it means the last one of that release.
func ParseVersion(s string) (Version, error) {
	bad := func(why string) (Version, error) {
		return Version{}, fmt.Errorf("NCCL version %q: %s; write it as 2.28 or 2.28.9", s, why)
	}
	text, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "NCCL version ")), "+")
	text, _, _ = strings.Cut(text, "-")
	parts := strings.Split(strings.TrimPrefix(text, "v"), ".")
	if len(parts) < 2 || len(parts) > 3 {
		return bad("expected two or three numbers")
	}
	var n [3]int
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil || v < 0 || v > 999 {
			return bad("expected numbers")
		}
		n[i] = v
	}
	v := Version{n[0], n[1], n[2]}
	if len(parts) == 2 {
		v.Patch = latest[v.Minor]
	}
	if v.Major != 2 || v.Minor < Oldest.Minor || v.Minor > Newest.Minor {
		return bad(fmt.Sprintf("rules are known for %d.%d to %d.%d", Oldest.Major, Oldest.Minor, Newest.Major, Newest.Minor))
	}
	return v, nil
}

// Nearest is the known release that is nearest to one that is older or newer than all of them, false for what is none.
func Nearest(text string) (Version, bool) {
	var major, minor int
	if n, err := fmt.Sscanf(text, "%d.%d", &major, &minor); err != nil || n != 2 || major != 2 || minor < 0 ||
		minor > 999 {
		return Version{}, false
	}
	switch {
	case minor < Oldest.Minor:
		return Oldest, true
	case minor > Newest.Minor:
		return Newest, true
	}
	return Version{}, false
}

// String prints "2.28.9".
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// Compare orders releases: -1, 0 or 1.
func (v Version) Compare(o Version) int {
	for _, d := range [3]int{v.Major - o.Major, v.Minor - o.Minor, v.Patch - o.Patch} {
		switch {
		case d < 0:
			return -1
		case d > 0:
			return 1
		}
	}
	return 0
}

// From reports whether the release is 2.minor or later.
func (v Version) From(minor int) bool { return v.Major > 2 || v.Major == 2 && v.Minor >= minor }

// MarshalText writes "2.28.9".
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads what ParseVersion reads.
func (v *Version) UnmarshalText(b []byte) error {
	p, err := ParseVersion(string(b))
	if err == nil {
		*v = p
	}
	return err
}

// maxChannels is the bound on channels of a communicator: 32 up to 2.24, 64 since
// (NCCL 2.28 src/include/device.h).
func (v Version) maxChannels() int {
	if v.From(25) {
		return 64
	}
	return 32
}
