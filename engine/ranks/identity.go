package ranks

import (
	"fmt"
	"slices"
)

// Identity is which rank a process is, as its launcher says.
type Identity struct {
	Launcher   string // "" where there is none
	Rank, Size int    // Size is 0 where the launcher does not say
	// LocalRank is the place among the ranks of this host and LocalSize how many those are; -1 and
	// 0 where the launcher does not say.
	LocalRank, LocalSize int
}

// IdentityFromEnv is what a launcher's environment says of this process. Nothing is needed beyond the rank's number.
func IdentityFromEnv(get func(string) string) (Identity, error) {
	id, _, err := identify(get)
	return id, err
}

// identify is who this process is, and the launcher that says so; nil where there is none.
func identify(get func(string) string) (id Identity, by *launcher, err error) {
	id.LocalRank = -1
	i := slices.IndexFunc(launchers, func(l launcher) bool { return get(l.rank) != "" })
	if i < 0 {
		return id, nil, nil
	}
	by = &launchers[i]
	id.Launcher = by.name
	for _, x := range []struct {
		name string
		to   *int
	}{{by.rank, &id.Rank}, {first(get, by.size...), &id.Size}, {by.local, &id.LocalRank}, {by.count, &id.LocalSize}} {
		if x.name == "" || get(x.name) == "" {
			continue
		}
		if *x.to, err = parseNumber(get, x.name); err != nil {
			return id, by, fmt.Errorf("%s: %w", by.name, err)
		}
	}
	if id.Size > 0 && id.Rank >= id.Size {
		err = fmt.Errorf("%s: rank %d of %d", by.name, id.Rank, id.Size)
	}
	return id, by, err
}
