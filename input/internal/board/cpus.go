package board

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// maxCPU bounds the numbers of logical CPUs; Linux itself stops at 8192.
const maxCPU = 1 << 16

// CPUs is a set of logical CPUs: bit i%64 of word i/64.
type CPUs []uint64

// ParseMask reads a mask as the kernel and hwloc write it: 32-bit hexadecimal
// words, the highest first, divided by commas, with or without 0x; an empty word
// is zero. hwloc's "0xf...f" (every higher CPU) is refused, for no real object
// has it.
func ParseMask(s string) (CPUs, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, nil
	}
	if n := strings.Count(s, ",") + 1; n > maxCPU/32 {
		return nil, fmt.Errorf("CPU mask of %d words; at most %d", n, maxCPU/32)
	}
	words := strings.Split(s, ",")
	set := make(CPUs, (len(words)+1)/2)
	for i, w := range words {
		w = strings.TrimPrefix(w, "0x")
		if w == "" {
			continue
		}
		v, err := strconv.ParseUint(w, 16, 32)
		if err != nil {
			return nil, fmt.Errorf("CPU mask word %.20q; expected up to eight hexadecimal digits", w)
		}
		at := len(words) - 1 - i
		set[at/2] |= v << (32 * (at % 2))
	}
	return set.trim(), nil
}

// ParseList reads the kernel's list form, "0-15,64-79".
func ParseList(s string) (CPUs, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, nil
	}
	var set CPUs
	for part := range strings.SplitSeq(s, ",") {
		from, to, ranged := strings.Cut(part, "-")
		a, err := strconv.ParseUint(strings.TrimSpace(from), 10, 32)
		b := a
		if err == nil && ranged {
			b, err = strconv.ParseUint(strings.TrimSpace(to), 10, 32)
		}
		if err != nil || b < a || b >= maxCPU {
			return nil, fmt.Errorf("CPU list part %.20q; expected a number or a range below %d", part, maxCPU)
		}
		for i := a; i <= b; i++ {
			set = set.With(int(i))
		}
	}
	return set, nil
}

// With returns the set with CPU i added.
func (c CPUs) With(i int) CPUs {
	for len(c) <= i/64 {
		c = append(c, 0)
	}
	c[i/64] |= 1 << (i % 64)
	return c
}

// Has reports whether CPU i is in the set.
func (c CPUs) Has(i int) bool { return i >= 0 && i/64 < len(c) && c[i/64]&(1<<(i%64)) != 0 }

// Empty reports whether no CPU is in the set.
func (c CPUs) Empty() bool { return len(c.trim()) == 0 }

// Overlaps reports whether the two sets share a CPU.
func (c CPUs) Overlaps(o CPUs) bool {
	for i := range min(len(c), len(o)) {
		if c[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

// Within reports whether every CPU of c is in o.
func (c CPUs) Within(o CPUs) bool {
	for i, w := range c {
		var v uint64
		if i < len(o) {
			v = o[i]
		}
		if w&^v != 0 {
			return false
		}
	}
	return true
}

// And returns the CPUs that are in both sets.
func (c CPUs) And(o CPUs) CPUs {
	both := make(CPUs, min(len(c), len(o)))
	for i := range both {
		both[i] = c[i] & o[i]
	}
	return both.trim()
}

// String prints the list form, "0-15,64-79".
func (c CPUs) String() string {
	var b []byte
	for i := 0; i < len(c)*64; {
		w := c[i/64] >> (i % 64)
		if w == 0 {
			i = (i/64 + 1) * 64
			continue
		}
		i += bits.TrailingZeros64(w)
		first := i
		for c.Has(i) {
			i++
		}
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(first), 10)
		if i-first > 1 {
			b = append(b, '-')
			b = strconv.AppendInt(b, int64(i-1), 10)
		}
	}
	return string(b)
}

// Mask prints 32-bit hexadecimal words, the highest first.
func (c CPUs) Mask() string {
	var words []string
	for i := 2*len(c) - 1; i >= 0; i-- {
		words = append(words, fmt.Sprintf("%08x", uint32(c[i/2]>>(32*(i%2)))))
	}
	return strings.TrimPrefix(strings.Join(words, ","), "00000000,")
}

func (c CPUs) trim() CPUs {
	for len(c) > 0 && c[len(c)-1] == 0 {
		c = c[:len(c)-1]
	}
	return c
}
