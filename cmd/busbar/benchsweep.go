package main

import (
	"fmt"

	"busbar.dev/coll"
	"busbar.dev/unit"
)

// sweepFlags are those of nccl-tests that bench and bench gpu share. Who embeds them says where
// sizes begin and end when nobody asks.
type sweepFlags struct {
	Min    string  `short:"b" name:"minbytes" default:"${least}" placeholder:"SIZE" help:"The smallest size, ${least} without it (8, 64K, 1M, 1G are 1024-based as in nccl-tests)."`
	Max    string  `short:"e" name:"maxbytes" default:"${most}" placeholder:"SIZE" help:"The greatest size, ${most} without it."`
	Factor float64 `short:"f" name:"stepfactor" default:"${factor}" help:"From size to size."`
	Warm   int     `short:"w" name:"warmup" default:"5" least:"0" help:"Runs of each size before those that count."`
	Iters  int     `name:"iters" default:"20" least:"1" help:"Runs of each size that count."`
	Dtype  string  `short:"d" default:"float" help:"float, half, bfloat16, double, int8, int32, int64, …"`
}

// sizes from the smallest to the greatest; a barrier has none. What a host has memory for is
// asked elsewhere: the bound here keeps products of sizes and ranks within what numbers hold.
func (c *sweepFlags) sizes(kind coll.Kind) ([]unit.Bytes, error) {
	if kind == coll.Barrier {
		return []unit.Bytes{0}, nil
	}
	least, err := unit.ParseBytes(c.Min)
	if err != nil {
		return nil, fmt.Errorf("-b: %w", err)
	}
	most, err := unit.ParseBytes(c.Max)
	if err != nil {
		return nil, fmt.Errorf("-e: %w", err)
	}
	switch {
	case least < 0 || most < least:
		return nil, fmt.Errorf("-b %s -e %s: expected sizes from the smaller to the greater", c.Min, c.Max)
	case !(c.Factor > 1) && least != most:
		return nil, fmt.Errorf("-f %v: expected a factor above 1", c.Factor)
	case most > 16<<40:
		return nil, fmt.Errorf("-e %s: at most 16 TiB", c.Max)
	}
	var list []unit.Bytes
	for x := least; x <= most; {
		list = append(list, x)
		next := unit.Bytes(float64(x) * c.Factor)
		if next <= x {
			next = x + 1
		}
		if len(list) > 10000 || least == most {
			break
		}
		x = next
	}
	return list, nil
}
