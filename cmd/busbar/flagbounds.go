package main

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// outOfBounds reports a flag whose value is below or above what its tags allow: least and most,
// in the form that the flag itself takes. A zero that was typed is no way to ask for the usual.
func outOfBounds(k *kong.Context) error {
	for _, p := range k.Path {
		if p.Flag == nil {
			continue
		}
		least, most := p.Flag.Tag.Get("least"), p.Flag.Tag.Get("most")
		if least == "" && most == "" {
			continue
		}
		value := reflect.Indirect(p.Flag.Target)
		got, ok := figureOf(value)
		if !ok {
			continue
		}
		low, okLow := bound(least)
		high, okHigh := bound(most)
		switch {
		case okLow && got < low && okHigh, okHigh && got > high && okLow:
			return fmt.Errorf("--%s %v: expected from %s to %s", p.Flag.Name, value.Interface(), least, most)
		case okLow && got < low:
			return fmt.Errorf("--%s %v: expected %s or more", p.Flag.Name, value.Interface(), least)
		case okHigh && got > high:
			return fmt.Errorf("--%s %v: expected %s at most", p.Flag.Name, value.Interface(), most)
		}
	}
	return nil
}

// unreadable is why flags could not be read, in words for people who do not count in bits.
func unreadable(err error) string {
	return strings.ReplaceAll(err.Error(), "a valid 64 bit int", "a whole number of at most 18 digits")
}

// figureOf is a flag's value as a number; times are nanoseconds.
func figureOf(v reflect.Value) (float64, bool) {
	switch {
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanFloat():
		return v.Float(), true
	}
	return 0, false
}

// bound reads a tag: a number or a time.
func bound(text string) (float64, bool) {
	if x, err := strconv.ParseFloat(text, 64); err == nil {
		return x, true
	}
	d, err := time.ParseDuration(text)
	return float64(d), err == nil && text != ""
}
