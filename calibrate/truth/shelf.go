package truth

import (
	"encoding/json"
	"fmt"

	"busbar.dev/predict"
	"busbar.dev/result"
	"busbar.dev/sim"
)

// maxShelf bounds the predictors that are kept for the next sweep: a predictor of a
// large cluster takes megabytes, and sweeps of one machine stand together.
const maxShelf = 32

// shelf keeps predictors by what describes them.
type shelf struct {
	by      map[string]*shelved
	without sim.Mechanisms
}

type shelved struct {
	predictor *predict.Predictor
	assumed   []string
	unused    []string
	err       error
}

// predict prepares a sweep and prices its points.
func (k *shelf) predict(s *result.Sweep) (*Case, []Row, error) {
	c, err := k.prepare(s)
	if err != nil {
		return nil, nil, err
	}
	rows, err := c.Predict(nil)
	return c, rows, err
}

func (k *shelf) prepare(s *result.Sweep) (*Case, error) {
	c, err := newCase(s)
	if err != nil {
		return nil, err
	}
	key := description(s)
	p := k.by[key]
	if p == nil {
		if p = shelve(s, k.without); len(k.by) >= maxShelf || k.by == nil {
			k.by = map[string]*shelved{}
		}
		k.by[key] = p
	}
	if p.err != nil {
		return nil, p.err
	}
	c.Unused = p.unused
	return c.by(p.predictor, p.assumed)
}

// shelve makes the predictor of a sweep.
func shelve(s *result.Sweep, without sim.Mechanisms) *shelved {
	place, err := Describe(machine(s), s.Nodes, s.PerNode, without)
	if err != nil {
		return &shelved{err: err}
	}
	v, assumed := version(s, place)
	if assumed != "" {
		place.Assumed = append(place.Assumed, assumed)
	}
	if text := algoText(s); text != "" {
		if _, ok := algo(s); !ok {
			place.Assumed = append(place.Assumed, fmt.Sprintf("%.40q is none of NCCL's algorithms: as NCCL chooses", text))
		}
	}
	x := &shelved{assumed: place.Assumed}
	env := settings(s)
	if x.predictor, x.err = predict.New(place.Cluster, place.Layout, v, env, nil); x.err == nil {
		x.predictor.Conditions, x.unused = conditions(s)
		x.predictor.Without = without
		x.unused = append(x.unused, unusedSettings(s, env)...)
		for _, words := range place.Unread {
			x.unused = append(x.unused, "words: "+words)
		}
	}
	return x
}

// description is everything that a sweep's predictor depends on.
func description(s *result.Sweep) string {
	m := machine(s)
	b, err := json.Marshal([]any{
		s.Nodes, s.PerNode, m.GPU, m.Joined, m.NICs, m.Gbps, m.Fabric, s.Library, algoText(s), protoText(s), s.Env, s.Tool,
		said(s).Launch, said(s).Year, said(s).Notes,
	})
	if err != nil {
		return fmt.Sprintf("%s:%d", s.File, s.Line)
	}
	return string(b)
}
