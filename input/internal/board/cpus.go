package board

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// maxCPU bounds the numbers of logical CPUs; Linux itself stops at 8192.
const maxCPU = 1 << 16

// CPUs is a set of logical CPUs.
type CPUs struct{ bits big.Int } // not changed once it is made

// ParseMask reads a mask as the kernel and hwloc write it: 32-bit hexadecimal
// words, the highest first, divided by commas, with or without 0x; an empty word
// is zero. hwloc's "0xf...f" (every higher CPU) is refused, for no real object
// has it.
func ParseMask(s string) (set CPUs, err error) {
	if n := strings.Count(s, ",") + 1; n > maxCPU/32 {
		return set, fmt.Errorf("CPU mask of %d words; at most %d", n, maxCPU/32)
	}
	for w := range strings.SplitSeq(strings.TrimSpace(s), ",") {
		w = strings.TrimPrefix(w, "0x")
		v, err := strconv.ParseUint("0"+w, 16, 64)
		if err != nil || len(w) > 8 {
			return CPUs{}, fmt.Errorf("CPU mask word %.20q; expected up to eight hexadecimal digits", w)
		}
		set.bits.Lsh(&set.bits, 32)
		set.bits.Or(&set.bits, new(big.Int).SetUint64(v))
	}
	return set, nil
}

// ParseList reads the kernel's list form, "0-15,64-79".
func ParseList(s string) (set CPUs, err error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return set, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		from, to, ranged := strings.Cut(part, "-")
		a, err := strconv.ParseUint(strings.TrimSpace(from), 10, 32)
		b := a
		if err == nil && ranged {
			b, err = strconv.ParseUint(strings.TrimSpace(to), 10, 32)
		}
		if err != nil || b < a || b >= maxCPU {
			return CPUs{}, fmt.Errorf("CPU list part %.20q; expected a number or a range below %d", part, maxCPU)
		}
		ones := new(big.Int).Lsh(big.NewInt(1), uint(b-a+1))
		ones.Sub(ones, big.NewInt(1))
		set.bits.Or(&set.bits, ones.Lsh(ones, uint(a)))
	}
	return set, nil
}

// With returns the set with CPU i added.
func (c CPUs) With(i int) (set CPUs) {
	set.bits.SetBit(&c.bits, i, 1)
	return set
}

// Empty reports whether no CPU is in the set.
func (c CPUs) Empty() bool { return c.bits.Sign() == 0 }

// Overlaps reports whether the two sets share a CPU.
func (c CPUs) Overlaps(o CPUs) bool { return !c.And(o).Empty() }

// Within reports whether every CPU of c is in o.
func (c CPUs) Within(o CPUs) bool { return new(big.Int).AndNot(&c.bits, &o.bits).Sign() == 0 }

// And returns the CPUs that are in both sets.
func (c CPUs) And(o CPUs) (both CPUs) {
	both.bits.And(&c.bits, &o.bits)
	return both
}

// String prints the list form, "0-15,64-79".
func (c CPUs) String() string {
	var parts []string
	for i := 0; i < c.bits.BitLen(); i++ {
		first := i
		for c.bits.Bit(i) == 1 {
			i++
		}
		switch i - first {
		case 0:
		case 1:
			parts = append(parts, strconv.Itoa(first))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", first, i-1))
		}
	}
	return strings.Join(parts, ",")
}

// Mask prints 32-bit hexadecimal words, the highest first.
func (c CPUs) Mask() string {
	if c.Empty() {
		return ""
	}
	digits := c.bits.Text(16)
	digits = strings.Repeat("0", -len(digits)&7) + digits
	var words []string
	for word := range slices.Chunk([]byte(digits), 8) {
		words = append(words, string(word))
	}
	return strings.Join(words, ",")
}
