package truth

import (
	"encoding/json"
	"fmt"

	"busbar.dev/predict"
	"busbar.dev/sim"
)

// maxShelf bounds the predictors that are kept for the next group: a predictor of a
// large cluster takes megabytes, and sweeps of one machine stand together.
const maxShelf = 32

// shelf keeps predictors by what describes them.
type shelf struct {
	by map[string]*shelved
}

type shelved struct {
	predictor *predict.Predictor
	assumed   []string
	err       error
}

// predict prepares a group and prices its points.
func (s *shelf) predict(g *Group, figures *sim.Figures) (*Case, []Row, error) {
	if g.Own() {
		return g.own()
	}
	c, err := s.prepare(g, figures)
	if err != nil {
		return nil, nil, err
	}
	rows, err := c.Predict(nil)
	return c, rows, err
}

func (s *shelf) prepare(g *Group, figures *sim.Figures) (*Case, error) {
	pts, err := g.Points()
	if err != nil {
		return nil, err
	}
	key := g.description()
	p := s.by[key]
	if p == nil {
		if p = shelve(g, figures); len(s.by) >= maxShelf || s.by == nil {
			s.by = map[string]*shelved{}
		}
		s.by[key] = p
	}
	if p.err != nil {
		return nil, p.err
	}
	return newCase(g, pts, p.predictor, p.assumed)
}

// shelve makes the predictor of a group.
func shelve(g *Group, figures *sim.Figures) *shelved {
	place, err := g.Describe()
	if err != nil {
		return &shelved{err: err}
	}
	v, assumed := g.version(place)
	if assumed != "" {
		place.Assumed = append(place.Assumed, assumed)
	}
	if _, ok := g.algo(); !ok && g.Algo != "" {
		place.Assumed = append(place.Assumed, fmt.Sprintf("%.40q is none of NCCL's algorithms: as NCCL chooses", g.Algo))
	}
	x := &shelved{assumed: place.Assumed}
	x.predictor, x.err = predict.New(place.Cluster, place.Layout, v, g.env(), figures)
	return x
}

// description is everything that a group's predictor depends on.
func (g *Group) description() string {
	b, err := json.Marshal([]any{g.Nodes, g.PerNode, g.GPU, g.Intra, g.NICs, g.Gbps, g.Fabric, g.NCCL, g.Algo, g.Env})
	if err != nil {
		return fmt.Sprintf("%s:%d", g.File, g.Line)
	}
	return string(b)
}
