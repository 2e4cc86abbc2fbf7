package workload

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseCount reads a number of parameters or tokens from least to most: 20B, 1.3b, 350M, 1T or plain. false is none.
func ParseCount(text string, least, most float64) (float64, bool) {
	t := strings.ToUpper(strings.TrimSpace(text))
	scale := 1.0
	for suffix, x := range map[string]float64{"K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12} {
		if rest, ok := strings.CutSuffix(t, suffix); ok {
			t, scale = rest, x
			break
		}
	}
	n, err := strconv.ParseFloat(t, 64)
	return n * scale, err == nil && n*scale >= least && n*scale <= most
}

// parseParams reads a number of parameters.
func parseParams(text string) (float64, error) {
	n, ok := ParseCount(text, 1e3, 1e15)
	if !ok {
		return 0, fmt.Errorf("params is %q; expected a number of parameters from 1000 to 1e15, such as 20B", text)
	}
	return n, nil
}

// gptParams is the parameters of a GPT of such dimensions.
func gptParams(d Dims) float64 {
	h, l, f := float64(d.Hidden), float64(d.Layers), float64(d.FFN)
	return l*(4*h*h+2*h*f+9*h+f) + h*float64(d.Vocab+d.Context) + 2*h
}

// Margins of solving: how far a stated number of parameters may be from that of the usual
// shape before the width between products is fitted to it, and from any shape.
const (
	roundName = 0.02
	farName   = 0.3
)

// solve finds what is missing of a GPT with so many parameters: its width and depth in the
// proportions of GPT-3 (128 units a layer), and the width between products.
func solve(d *Dims, params float64) error {
	words := float64(d.Vocab + d.Context)
	switch {
	case d.Hidden == 0 && d.Layers == 0:
		d.Layers = max(1, int64(math.Round(math.Cbrt(params/(12*128*128)))))
		fallthrough
	case d.Hidden == 0:
		a := 12 * float64(d.Layers)
		d.Hidden = width((math.Sqrt(words*words+4*a*params) - words) / (2 * a))
	case d.Layers == 0:
		h := float64(d.Hidden)
		d.Layers = max(1, int64(math.Round((params-words*h)/(12*h*h+13*h))))
	}
	if d.Heads == 0 && d.Hidden >= 4096 && d.Hidden%128 == 0 {
		d.Heads = d.Hidden / 128
	}
	stated := d.FFN != 0
	usual := d.filled()
	got := gptParams(usual)
	off := math.Abs(got/params - 1)
	switch {
	case stated && off > 0.05, off > farName:
		return fmt.Errorf("%d layers of %d units and %d between products are %.4gB parameters; params says %.4gB", d.Layers,
			d.Hidden, usual.FFN, got/1e9, params/1e9)
	case stated || off <= roundName:
		return nil
	}
	h, l := float64(d.Hidden), float64(d.Layers)
	d.FFN = multiple((params-2*h-words*h-l*(4*h*h+9*h))/(l*(2*h+1)), 64)
	return nil
}

// width rounds the units of a layer to heads of 64 or, from 4096 on, of 128, eight of them where
// that is near, so that tensor parallelism can divide them.
func width(x float64) int64 {
	switch {
	case x >= 4096:
		return multiple(x, 1024)
	case x >= 2048:
		return multiple(x, 512)
	}
	return multiple(x, 128)
}

// multiple rounds to one of n, at least n.
func multiple(x float64, n int64) int64 {
	if !(x < 1<<40) {
		return 1 << 40 // more than Check allows
	}
	return max(n, int64(math.Round(x/float64(n)))*n)
}
