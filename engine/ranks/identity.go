package ranks

import "fmt"

// Identity is which rank a process is, as its launcher says.
type Identity struct {
	Launcher   string // "" where there is none
	Rank, Size int    // Size is 0 where the launcher does not say
	// LocalRank is the place among the ranks of this host and LocalSize how many those are; -1 and
	// 0 where the launcher does not say.
	LocalRank, LocalSize int
}

// IdentityFromEnv is what a launcher's environment says of this process, by the same variables as
// ConfigFromEnv. Nothing is needed beyond the rank's number.
func IdentityFromEnv(get func(string) string) (Identity, error) {
	s := Identity{LocalRank: -1}
	for _, l := range launchers {
		if get(l.rank) == "" {
			continue
		}
		s.Launcher = l.name
		for _, x := range []struct {
			name string
			to   *int
		}{{l.rank, &s.Rank}, {first(get, l.size...), &s.Size}, {l.local, &s.LocalRank}, {l.count, &s.LocalSize}} {
			if x.name == "" || get(x.name) == "" {
				continue
			}
			n, err := parseNumber(get, x.name)
			if err != nil {
				return s, fmt.Errorf("%s: %w", s.Launcher, err)
			}
			*x.to = n
		}
		if s.Size > 0 && s.Rank >= s.Size {
			return s, fmt.Errorf("%s: rank %d of %d", s.Launcher, s.Rank, s.Size)
		}
		return s, nil
	}
	return s, nil
}
