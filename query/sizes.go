package query

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/unit"
)

// comparedSize is the size of a comparison where nobody gives one: the gradients of a
// model of half a billion parameters, large enough for the links to count.
const comparedSize = 1 * unit.GiB

// sizes are those of --size, or those that nccl-tests would take.
func (q *Predict) sizes() ([]unit.Bytes, error) {
	if q.Size != "" {
		if q.Min != "" || q.Max != "" {
			return nil, fmt.Errorf("--size and -b or -e: expected one of them")
		}
		return sizeList(string(q.Size))
	}
	if q.Min == "" && q.Max == "" && q.Compare != "" {
		return []unit.Bytes{comparedSize}, nil
	}
	lo, hi := 8*unit.Bytes(1), 128*unit.MiB
	var err error
	if q.Min != "" {
		if lo, err = q.Min.bytes(); err != nil {
			return nil, fmt.Errorf("-b: %w", err)
		}
	}
	switch {
	case q.Max != "":
		if hi, err = q.Max.bytes(); err != nil {
			return nil, fmt.Errorf("-e: %w", err)
		}
	case q.Min != "":
		hi = max(hi, lo)
	}
	return sizeSteps(lo, hi, q.Factor)
}

func sizeList(text string) ([]unit.Bytes, error) {
	var list []unit.Bytes
	for _, s := range strings.Split(text, ",") {
		b, err := unit.ParseBytes(s)
		if err == nil && (b < 1 || b > maxSize) {
			err = fmt.Errorf("%s; expected 1 byte to %v", s, maxSize)
		}
		if err != nil {
			return nil, fmt.Errorf("--size: %w", err)
		}
		if !slices.Contains(list, b) {
			list = append(list, b)
		}
	}
	return list, nil
}

const (
	maxSize  = 1024 * unit.TiB
	maxSteps = 10_000
)

// sizeSteps goes from lo to hi by a factor.
func sizeSteps(lo, hi unit.Bytes, factor float64) ([]unit.Bytes, error) {
	switch {
	case lo < 1 || hi > maxSize:
		return nil, fmt.Errorf("-b %d -e %d; expected sizes of 1 byte to %v", int64(lo), int64(hi), maxSize)
	case lo > hi:
		return nil, fmt.Errorf("-b %v is more than -e %v", lo, hi)
	case math.IsInf(factor, 0) || math.IsNaN(factor):
		return nil, fmt.Errorf("-f %g; expected a number more than 1", factor)
	case !(factor > 1):
		if lo == hi {
			return []unit.Bytes{lo}, nil
		}
		return nil, fmt.Errorf("-f %g; expected more than 1", factor)
	}
	var list []unit.Bytes
	for b := float64(lo); b <= float64(hi); b *= factor {
		if next := unit.Bytes(b); len(list) == 0 || next > list[len(list)-1] {
			list = append(list, next)
		}
		if len(list) > maxSteps {
			return nil, fmt.Errorf("-f %g makes more than %d sizes", factor, maxSteps)
		}
	}
	return list, nil
}

// sizeNotes tells of sizes that are bytes where people may have meant parameters:
// 7B is seven bytes.
func sizeNotes(text string) []string {
	const few = 10_000
	var notes []string
	for _, s := range strings.Split(text, ",") {
		s = strings.TrimSpace(s)
		n, ok := strings.CutSuffix(s, "B")
		v, err := strconv.ParseFloat(n, 64)
		if !ok || err != nil || v < 1 || v >= few {
			continue
		}
		notes = append(notes, fmt.Sprintf("%s is %g bytes; did you mean %g billion parameters? %gGB in bfloat16", s, v, v, 2*v))
	}
	return notes
}
