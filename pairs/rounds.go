package pairs

// Rounds lists every pair of n ranks once, in rounds in which nobody is in two
// pairs: n−1 of them for an even n, n for an odd one, in which one rank rests (the
// circle method of tournaments). No round is nil; fewer than two ranks have none.
func Rounds(n int) [][][2]int {
	if n < 2 {
		return nil
	}
	m := n + n%2 // with a seat for the one that rests
	rounds := make([][][2]int, 0, m-1)
	for r := range m - 1 {
		pairs := make([][2]int, 0, n/2)
		for k := range m / 2 {
			a, b := seat(r, k, m), seat(r, m-1-k, m)
			if a < n && b < n {
				pairs = append(pairs, [2]int{min(a, b), max(a, b)})
			}
		}
		rounds = append(rounds, pairs)
	}
	return rounds
}

// seat is who sits at place k of round r: one stays, the others move round.
func seat(r, k, m int) int {
	if k == 0 {
		return m - 1
	}
	return (r + k) % (m - 1)
}
