package nccl

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/internal/csvtable"
)

// Version is a release of NCCL. The zero value is no release.
type Version struct{ Major, Minor, Patch int }

// Newest is the latest release whose rules are known here, Oldest the first. Up to 2.17 those are the table of
// estimates and what gates it; rings and trees are searched for as by 2.18.
var (
	Oldest = releases[0]
	Newest = releases[len(releases)-1]
)

//go:embed data/releases.csv
var releaseTable string

// releases are those of releases.csv, oldest first.
var releases = func() (list []Version) {
	for _, r := range csvtable.Must[struct {
		Release string `csv:"release"`
		Source  string `csv:"source"`
	}]("nccl/data/releases.csv", releaseTable) {
		var v Version
		fmt.Sscanf(r.Release, "%d.%d.%d", &v.Major, &v.Minor, &v.Patch)
		list = append(list, v)
	}
	return list
}()

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
	for _, r := range releases {
		if len(parts) == 2 && r.Minor == v.Minor {
			v.Patch = r.Patch // the last of them
		}
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

// CallLists reports whether NCCL_ALGO and NCCL_PROTO may differ by collective.
func (v Version) CallLists() bool { return v.rules().CallLists }

// TunerPlugins reports whether the release loads them.
func (v Version) TunerPlugins() bool { return v.rules().TunerPlugins }

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
