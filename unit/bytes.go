package unit

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size or an amount of memory.
type Bytes int64

// Powers of 1024 and of 1000.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
	TiB Bytes = 1 << 40
	KB  Bytes = 1e3
	MB  Bytes = 1e6
	GB  Bytes = 1e9
	TB  Bytes = 1e12
)

var byteSuffix = map[string]Bytes{
	"": 1, "B": 1,
	"K": KiB, "M": MiB, "G": GiB, "T": TiB,
	"KIB": KiB, "MIB": MiB, "GIB": GiB, "TIB": TiB,
	"KB": KB, "MB": MB, "GB": GB, "TB": TB,
}

// ParseBytes reads "8", "64K" (as nccl-tests means it: 65536), "1.32GB"
// (1.32e9) or "1GiB".
func ParseBytes(s string) (Bytes, error) {
	num, suffix, err := split(s)
	if err != nil {
		return 0, fmt.Errorf("size %q: %w", s, err)
	}
	if strings.ContainsRune(suffix, 'b') && !strings.ContainsRune(suffix, 'B') {
		return 0, fmt.Errorf("size %q: a small b means bits; sizes are in bytes: %s?", s,
			strings.TrimSuffix(strings.TrimSpace(s), suffix)+strings.ReplaceAll(strings.ToUpper(suffix), "I", "i"))
	}
	mul, ok := byteSuffix[strings.ToUpper(suffix)]
	if !ok {
		return 0, fmt.Errorf("size %q: unknown unit %q; use K, M, G (1024-based), KB, MB, GB (1000-based) or KiB, MiB, GiB",
			s, suffix)
	}
	v := num * float64(mul)
	if mul == 1 && v != math.Trunc(v) || v > 0 && v < 1 {
		return 0, fmt.Errorf("size %q: a part of a byte; expected whole bytes", s)
	}
	if v < 0 || v >= math.MaxInt64 {
		return 0, fmt.Errorf("size %q: out of range; expected 0 to 8 EiB", s)
	}
	return Bytes(math.Round(v)), nil
}

// String prints short exact multiples of 1024 as KiB…TiB and everything else
// with three digits in decimal units, so that the text parses back to within its
// digits: 1536 is 1.54 KB, which is 1540 bytes. Exact loses nothing.
func (b Bytes) String() string {
	for _, u := range []struct {
		v Bytes
		s string
	}{{TiB, "TiB"}, {GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}} {
		if b >= u.v && b%u.v == 0 && b/u.v < 1_000_000 {
			return strconv.FormatInt(int64(b/u.v), 10) + " " + u.s
		}
	}
	return scaled(float64(b), "B")
}

// Exact is the size as text that parses back to it, such as 1536B or 64KiB: for flags, and for fields of questions that
// are text.
func (b Bytes) Exact() string {
	text, _ := b.MarshalText() // which cannot fail
	return string(text)
}

// MarshalText writes an exact form that parses back: whole multiples of 1024 or
// 1000 with their unit, else the number of bytes.
func (b Bytes) MarshalText() ([]byte, error) {
	for _, u := range []struct {
		v Bytes
		s string
	}{{GiB, "GiB"}, {MiB, "MiB"}, {GB, "GB"}, {MB, "MB"}, {KiB, "KiB"}} {
		if b >= u.v && b%u.v == 0 {
			return []byte(strconv.FormatInt(int64(b/u.v), 10) + u.s), nil
		}
	}
	return []byte(strconv.FormatInt(int64(b), 10) + "B"), nil
}

// UnmarshalText reads what ParseBytes reads.
func (b *Bytes) UnmarshalText(text []byte) error {
	v, err := ParseBytes(string(text))
	if err == nil {
		*b = v
	}
	return err
}

// MarshalJSON writes the number of bytes.
func (b Bytes) MarshalJSON() ([]byte, error) { return json.Marshal(int64(b)) }

// UnmarshalJSON reads a number of bytes, or a text with a unit.
func (b *Bytes) UnmarshalJSON(data []byte) error {
	if isText(data) {
		return fromText(data, b.UnmarshalText)
	}
	return json.Unmarshal(data, (*int64)(b))
}

func isText(data []byte) bool { return len(data) > 0 && data[0] == '"' }

// fromText reads a JSON string as a text with a unit.
func fromText(data []byte, read func([]byte) error) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	return read([]byte(s))
}

// split cuts a text into its number and what follows it.
func split(s string) (float64, string, error) {
	s = strings.TrimSpace(s)
	i := 0
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || strings.IndexByte("+-._", s[i]) >= 0 || isExponent(s, i)) {
		i++
	}
	num := strings.ReplaceAll(s[:i], "_", "")
	if num == "" {
		return 0, "", fmt.Errorf("does not begin with a number")
	}
	v, err := strconv.ParseFloat(num, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, "", fmt.Errorf("%q is not a number", s[:i])
	}
	return v, strings.TrimSpace(s[i:]), nil
}

// isExponent reports whether s[i] is the e of a number such as 1e9 or 1E+9.
func isExponent(s string, i int) bool {
	if s[i] != 'e' && s[i] != 'E' || i == 0 || i+1 >= len(s) {
		return false
	}
	next := s[i+1]
	if next == '+' || next == '-' {
		return i+2 < len(s) && s[i+2] >= '0' && s[i+2] <= '9'
	}
	return next >= '0' && next <= '9'
}

// scaled prints v with three significant digits and a decimal prefix.
func scaled(v float64, unit string) string {
	prefix, div := "", 1.0
	for _, p := range []struct {
		s string
		v float64
	}{{"P", 1e15}, {"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"K", 1e3}} {
		if math.Abs(v) >= p.v*0.9995 {
			prefix, div = p.s, p.v
			break
		}
	}
	return digits(v/div) + " " + prefix + unit
}

// digits prints v with three significant digits and no trailing zeros, whole
// numbers whole.
func digits(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	dec := 2
	if a := math.Abs(v); a >= 100 {
		dec = 0
	} else if a >= 10 {
		dec = 1
	} else if a < 1 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	s := strconv.FormatFloat(v, 'f', dec, 64)
	if strings.ContainsRune(s, '.') {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}
