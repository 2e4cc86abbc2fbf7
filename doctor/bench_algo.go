package doctor

import (
	"fmt"
	"math"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/predict"
)

// curveFit is how well an algorithm and a protocol explain a measured curve.
type curveFit struct {
	predict.Setting

	off float64 // median of the factor between measured and predicted times, as a logarithm without sign
}

// A curve lies on another algorithm's where that is at most onCurve off, and the predicted choice at least thrice as much.
const (
	onCurve = 0.22 // 25%
	thrice  = 3
)

// lies finds the algorithm and protocol whose curve the measured one lies on, where it is not the predicted one's. Only large and middle sizes are
// asked: the start of a collective costs about the same for all.
func (s *Curve) lies(c *truth.Case) {
	if parts := s.parts(); !parts["large"].slow() && !parts["middle"].slow() {
		return
	}
	offOf := func(setting func(i int) predict.Setting) float64 {
		var list []float64
		for i := range s.Points {
			if p := &s.Points[i]; p.Ratio() > 0 && predict.SizeClass(p.Size) != "small" {
				run, err := c.Predictor.Price(c.Ops[i], setting(i))
				if err != nil || run.Time <= 0 {
					return math.Inf(1)
				}
				list = append(list, math.Abs(math.Log(float64(p.Time)/float64(run.Time))))
			}
		}
		if len(list) < 3 {
			return math.Inf(1)
		}
		sum := 0.0
		for _, x := range list {
			sum += x
		}
		return sum / float64(len(list))
	}
	chosen := offOf(func(i int) predict.Setting { return c.Settings[i] })
	best := curveFit{off: math.Inf(1)}
	for _, algo := range []string{"ring", "tree", "nvls", "nvls_tree"} {
		for _, proto := range []string{"simple", "ll128", "ll"} {
			off := offOf(func(i int) predict.Setting {
				return predict.Setting{Algo: algo, Proto: proto, Channels: c.Settings[i].Channels}
			})
			if off < best.off {
				best = curveFit{predict.Setting{Algo: algo, Proto: proto}, off}
			}
		}
	}
	last := c.Settings[len(c.Settings)-1]
	if best.off > onCurve || best.off*thrice > chosen || best.Algo == last.Algo && best.Proto == last.Proto {
		return
	}
	s.On = fmt.Sprintf("The measured curve lies on that of %s with protocol %s (within %.0f%%), not on that of %s with %s, which NCCL would choose.", best.Algo, best.Proto, 100*(math.Exp(best.off)-1), last.Algo, last.Proto)
	switch {
	case strings.HasPrefix(last.Algo, "nvls") && !strings.HasPrefix(best.Algo, "nvls"):
		s.On += " Is NVLS switched off or not available (NCCL_NVLS_ENABLE, fabric manager)?"
	case best.Proto != last.Proto:
		s.On += " Is NCCL_PROTO set, or LL128 not available?"
	default:
		s.On += " Is NCCL_ALGO set, or a tuner plugin loaded?"
	}
}
