package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// conversions is written below the sums.
func (s isa) conversions() {}

var (
	_ = Imm
	_ = RET
)
