// Command gen writes the amd64 kernels of internal/reduce with avo: one run for
// each instruction set, as the go:generate lines there say.
//
// A kernel is put together from three parts: an element type (how a vector of
// it is widened to the type it is computed in, and narrowed again), an
// operation on vectors of that type, and a frame (loops, and a tail that takes
// any number of elements).
package main

import (
	"flag"
	"log"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// vec is a vector register of either width.
type vec = reg.VecVirtual

// isa is the instruction set written for: AVX2 with F16C, or AVX-512 (F, BW,
// DQ, VL) when wide.
type isa struct{ wide bool }

func (s isa) suffix() string {
	if s.wide {
		return "AVX512"
	}
	return "AVX2"
}

// vec returns a fresh register of the full width.
func (s isa) vec() vec {
	if s.wide {
		return ZMM()
	}
	return YMM()
}

// half returns a fresh register of half the width.
func (s isa) half() vec {
	if s.wide {
		return YMM()
	}
	return XMM()
}

// size is the bytes of a register of the full width.
func (s isa) size() int {
	if s.wide {
		return 64
	}
	return 32
}

func main() {
	set := flag.String("isa", "", "avx2, avx512 or neon")
	part := flag.String("part", "", "floats, ints or convert")
	flag.Parse()
	if *set == "neon" {
		if err := neon(flag.Lookup("out").Value.String(), flag.Lookup("stubs").Value.String()); err != nil {
			log.Fatal("gen: ", err)
		}
		return
	}
	if *set != "avx2" && *set != "avx512" {
		log.Fatalf("gen: -isa is %q, want avx2, avx512 or neon", *set)
	}
	s := isa{wide: *set == "avx512"}
	switch *part {
	case "floats":
		s.floats()
	case "ints":
		s.ints()
	case "convert":
		s.conversions()
	default:
		log.Fatalf("gen: -part is %q, want floats, ints or convert", *part)
	}
	Generate()
}
