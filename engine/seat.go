package engine

import "fmt"

// Seat is which rank a process is, as its launcher says.
type Seat struct {
	Launcher   string // "" where there is none
	Rank, Size int    // Size is 0 where nobody says
	// Local is the place among the ranks of this host and Count how many those are; -1 and 0
	// where nobody says.
	Local, Count int
}

// SeatFromEnv is what a launcher's environment says of this process, by the same variables as
// FromEnv. Nothing is needed beyond the rank's number.
func SeatFromEnv(get func(string) string) (Seat, error) {
	s := Seat{Local: -1}
	for _, l := range launchers {
		if get(l.rank) == "" {
			continue
		}
		s.Launcher = l.name
		for _, x := range []struct {
			name string
			to   *int
		}{{l.rank, &s.Rank}, {first(get, l.size...), &s.Size}, {l.local, &s.Local}, {l.count, &s.Count}} {
			if x.name == "" || get(x.name) == "" {
				continue
			}
			n, err := number16(get, x.name)
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
