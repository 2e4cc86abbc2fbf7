package pairs

// Rounds lists every pair of n ranks once, in rounds in which nobody is in two
// pairs: n−1 of them for an even n, n for an odd one, in which one rank rests (the
// circle method of tournaments). No round is nil; fewer than two ranks have none.
func Rounds(n int) [][][2]int {
	if n < 2 {
		return nil
	}
	rounds := make([][][2]int, 0, Count(n))
	for r := range Count(n) {
		rounds = append(rounds, Round(n, r))
	}
	return rounds
}

// Count is how many rounds n ranks have.
func Count(n int) int {
	if n < 2 {
		return 0
	}
	return n + n%2 - 1
}

// Round is one of the rounds of n ranks, for those who cannot hold all.
func Round(n, r int) [][2]int {
	m := n + n%2 // with a seat for the one that rests
	pairs := make([][2]int, 0, n/2)
	for k := range m / 2 {
		a, b := partnerAt(r, k, m), partnerAt(r, m-1-k, m)
		if a < n && b < n {
			pairs = append(pairs, [2]int{min(a, b), max(a, b)})
		}
	}
	return pairs
}

// partnerAt is who sits at place k of round r: one stays, the others move round.
func partnerAt(r, k, m int) int {
	if k == 0 {
		return m - 1
	}
	return (r + k) % (m - 1)
}
