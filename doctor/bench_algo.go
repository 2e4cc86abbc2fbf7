package doctor

import (
	"fmt"
	"math"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/internal/stats"
	"busbar.dev/predict"
)

// curveFit is how well an algorithm and a protocol explain a measured curve.
type curveFit struct {
	predict.Setting

	level, shape float64 // likelihoods of how far off the parts are as a whole, and of how much their points differ in that
	off          float64 // mean of the factor between measured and predicted times, as a logarithm without sign
}

// explains weighs a choice for every point of the middle and large sizes: the start of a collective costs about the same for all. Points of one
// part share the model's error, so each part counts as two measurements: its median, and the spread around that, which is one of repeated runs.
func (s *Curve) explains(c *truth.Case, setting func(i int) predict.Setting) curveFit {
	parts, n, sum := map[string][]float64{}, 0, 0.0
	margins := s.parts()
	for i := range s.Points {
		if p := &s.Points[i]; p.Ratio() > 0 && predict.SizeClass(p.Size) != "small" {
			run, err := c.Predictor.Price(c.Ops[i], setting(i))
			if err != nil || run.Time <= 0 {
				return curveFit{}
			}
			x := math.Log(float64(p.Time) / float64(run.Time))
			parts[predict.SizeClass(p.Size)] = append(parts[predict.SizeClass(p.Size)], x)
			n, sum = n+1, sum+math.Abs(x)
		}
	}
	if n < 3 {
		return curveFit{}
	}
	f := curveFit{level: 1, shape: 1, off: sum / float64(n)}
	for name, list := range parts {
		mid, spread := stats.Nearest(list, 0.5), 0.0
		for _, x := range list {
			spread += (x - mid) * (x - mid) / float64(len(list))
		}
		f.level *= expects(mid, margins[name].margin)
		f.shape *= math.Exp(-spread / (2 * math.Log(slack) * math.Log(slack)))
	}
	return f
}

// lies finds the algorithm and protocol whose curve the measured one lies on, where that is likelier than the predicted choice, and than a fault
// that slows it by any factor.
func (s *Curve) lies(c *truth.Case) {
	parts := s.parts()
	if !parts["large"].slow() && !parts["middle"].slow() {
		return
	}
	chosen := s.explains(c, func(i int) predict.Setting { return c.Settings[i] })
	fault := chosen.shape
	for _, name := range []string{"middle", "large"} {
		if len(parts[name].points) > 0 {
			fault /= greatestLog
		}
	}
	best, all := curveFit{}, 0.0
	for _, algo := range []string{"ring", "tree", "nvls", "nvls_tree"} {
		for _, proto := range []string{"simple", "ll128", "ll"} {
			f := s.explains(c, func(i int) predict.Setting {
				return predict.Setting{Algo: algo, Proto: proto, Channels: c.Settings[i].Channels}
			})
			if f.level > 0 {
				all++
			}
			if f.Setting = (predict.Setting{Algo: algo, Proto: proto}); f.level*f.shape > best.level*best.shape {
				best = f
			}
		}
	}
	// A fault and another choice are as likely before; which other choice is not known.
	p := best.level * best.shape / max(all, 1)
	p /= p + fault + chosen.level*chosen.shape*(1-slowShare)/slowShare
	last := c.Settings[len(c.Settings)-1]
	if !(p >= 0.5) || best.Algo == last.Algo && best.Proto == last.Proto {
		return
	}
	s.On = fmt.Sprintf("The measured curve lies on that of %s with protocol %s (within %.0f%%, likelihood %.0f%%), not on that of %s with %s, which NCCL would choose.", best.Algo, best.Proto, 100*(math.Exp(best.off)-1), 100*p, last.Algo, last.Proto)
	switch {
	case strings.HasPrefix(last.Algo, "nvls") && !strings.HasPrefix(best.Algo, "nvls"):
		s.On += " Is NVLS switched off or not available (NCCL_NVLS_ENABLE, fabric manager)?"
	case best.Proto != last.Proto:
		s.On += " Is NCCL_PROTO set, or LL128 not available?"
	default:
		s.On += " Is NCCL_ALGO set, or a tuner plugin loaded?"
	}
}
