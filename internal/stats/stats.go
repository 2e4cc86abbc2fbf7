// Package stats holds the quantiles that busbar computes and prints, each with one definition.
//
//   - Quantile and Median go straight between two values of the list (Hyndman and Fan 1996,
//     definition 7; the default of R and NumPy): for errors, ratios and scores.
//   - Nearest is a value of the list, the one nearest to where Quantile looks and of two the
//     upper: for times and rates, where a figure should be one that was measured. At is its place.
//   - MedianLow is a value of the list too, of two the lower.
//
// All of an empty list are 0. None expects the list to be sorted; all may reorder it, and leave one
// that is sorted as it is.
package stats

import (
	"cmp"
	"slices"
)

// Quantile is the q-quantile, 0 ≤ q ≤ 1; between two values it goes straight. It sorts the list.
func Quantile[T ~float32 | ~float64](list []T, q float64) T {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	at := q * float64(len(list)-1)
	i := min(int(at), len(list)-1)
	if i+1 >= len(list) {
		return list[i]
	}
	f := T(at - float64(i))
	return list[i]*(1-f) + list[i+1]*f
}

// Median is the 0.5-quantile: of an even number of values the mean of the two in the middle.
func Median[T ~float32 | ~float64](list []T) T { return Quantile(list, 0.5) }

// Nearest is the value of the list nearest to the q-quantile, of two the upper.
func Nearest[T cmp.Ordered](list []T, q float64) T {
	if len(list) == 0 {
		var zero T
		return zero
	}
	return nth(list, At(len(list), q))
}

// At is the place of Nearest in a sorted list of n values.
func At(n int, q float64) int { return max(0, int(q*float64(n-1)+0.5)) }

// MedianLow is the value in the middle of the list, of two the lower.
func MedianLow[T cmp.Ordered](list []T) T {
	if len(list) == 0 {
		var zero T
		return zero
	}
	return nth(list, (len(list)-1)/2)
}

// nth is the k-th smallest value (Hoare's selection), in linear time; histories of fleets are long.
func nth[T cmp.Ordered](list []T, k int) T {
	lo, hi := 0, len(list)-1
	for hi-lo > 8 {
		p := median3(list[lo], list[(lo+hi)/2], list[hi])
		i, j := lo, hi
		for i <= j {
			for list[i] < p {
				i++
			}
			for list[j] > p {
				j--
			}
			if i <= j {
				list[i], list[j] = list[j], list[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return list[k]
		}
	}
	slices.Sort(list[lo : hi+1])
	return list[k]
}

func median3[T cmp.Ordered](a, b, c T) T { return max(min(a, b), min(max(a, b), c)) }
