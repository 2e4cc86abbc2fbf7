package pairs

import "slices"

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

// Sample is some rounds of many ranks, at most so many, in which nobody is in two pairs of a round and no pair comes
// twice. First come the distances 1, 2, 4 …, so that every rank is measured with one nearby, one of the next larger
// group and so on, if ranks are numbered by where they are; then rounds of the circle method, evenly spread, each of
// which gives every rank another partner. What is wrong with a rank shows with all of its partners. What is wrong with
// a part f of the ways that a rank's messages may take is missed with probability (1−f)^k, where k is its number of
// partners.
func Sample(n, most int) [][][2]int {
	var rounds [][][2]int
	near := map[[2]int]bool{}
	for d := 1; d < n && len(rounds) < most; d *= 2 {
		var round [][2]int
		for a := range n {
			if p := [2]int{a, a ^ d}; p[0] < p[1] && p[1] < n {
				round, near[p] = append(round, p), true
			}
		}
		rounds = append(rounds, round)
	}
	all, rest := Count(n), min(most, Count(n))-len(rounds)
	for k := range max(rest, 0) {
		rounds = append(rounds, slices.DeleteFunc(Round(n, k*all/rest), func(p [2]int) bool { return near[p] }))
	}
	return rounds
}
