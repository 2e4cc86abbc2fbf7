// Package pairtable is what tools that copy between the GPUs of a node have in
// common: tables with a row and a column for each GPU, and the node with its pairs
// that follows from them.
package pairtable

import (
	"math"
	"strconv"
	"strings"
)

// Bounds of what a table may hold.
const (
	MaxDevices = 4096
	// maxRate is beyond any copy between two devices, in GB/s; a greater figure is a
	// misprint or not a rate.
	maxRate = 1e6
)

// Numbers reads the numbers of devices, such as those above the columns.
func Numbers(f []string) ([]int, bool) {
	if len(f) == 0 || len(f) > MaxDevices {
		return nil, false
	}
	ids := make([]int, 0, len(f))
	for _, s := range f {
		n, ok := Number(s)
		if !ok {
			return nil, false
		}
		ids = append(ids, n)
	}
	return ids, true
}

// Number reads the number of a device.
func Number(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && n < MaxDevices
}

// row reads the number of a row and its values; more values than columns is no row
// of the table, fewer is one that was cut.
func row(f []string, cols int) (device int, values []float64, ok bool) {
	if len(f) < 2 || len(f)-1 > cols {
		return 0, nil, false
	}
	if device, ok = Number(f[0]); !ok {
		return 0, nil, false
	}
	for _, s := range f[1:] {
		v, ok := Value(s)
		if !ok {
			return 0, nil, false
		}
		values = append(values, v)
	}
	return device, values, true
}

// Value reads one figure; N/A is not a number.
func Value(s string) (float64, bool) {
	if v, err := strconv.ParseFloat(s, 64); err == nil {
		return v, true
	}
	return math.NaN(), strings.EqualFold(s, "N/A")
}
