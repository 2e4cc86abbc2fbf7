package workload

import "busbar.dev/workload/pipeline"

// Staging is how a framework divides blocks among the places of a pipeline.
type Staging string

// Ways to divide blocks.
const (
	// StageEven gives as many layers to each; where that does not go, the embedding and the loss take the place of one.
	StageEven Staging = ""
	// StageSlots counts the embedding and the loss as a layer each, and gives what is left over to the first (torchtitan).
	StageSlots Staging = "slots"
	// StageCost goes by what blocks compute, and to the next place when the share of those before it is passed (nanotron).
	StageCost Staging = "cost"
)

// Slots are what a model has beside its layers that may stand in a pipeline in place of one: the embedding, and the
// loss (Megatron-Core's account_for_embedding_in_pipeline_split and account_for_loss_in_pipeline_split).
const Slots = 2

// Places are where the places of the job's pipeline begin among the blocks of its model, and where the last one ends.
func (j *Job) Places(o *Outline) []int {
	shape := j.Pipeline()
	places, all := shape.Ranks*shape.Chunks, len(o.Order)
	list := make([]int, places+1)
	list[places] = all
	if places == 1 {
		return list
	}
	layers, before := o.Layers(), 0
	for _, k := range o.Order {
		if o.Kinds[k].Kind == Entry {
			before++
		}
	}
	slots := layers + Slots
	switch {
	case j.Staging == StageCost:
		j.placeByCost(o, list)
	case j.Staging == StageSlots || layers%places != 0 && (places > layers || slots%places == 0):
		for place := 1; place < places; place++ {
			list[place] = before + min(max(place*(slots/places)+min(place, slots%places)-1, 0), layers)
		}
	default:
		placeEvenly(shape, layers, before, list)
	}
	return list
}

// placeEvenly gives every rank as many layers as goes, and every place of it.
func placeEvenly(s pipeline.Shape, layers, before int, list []int) {
	at := before
	for place := range s.Ranks * s.Chunks {
		r, c := s.Owner(place)
		mine := (r+1)*layers/s.Ranks - r*layers/s.Ranks
		if place > 0 {
			list[place] = at
		}
		at += (c+1)*mine/s.Chunks - c*mine/s.Chunks
	}
}

// placeByCost goes by the products of blocks.
func (j *Job) placeByCost(o *Outline, list []int) {
	cost := make([]float64, len(o.Kinds))
	all := 0.0
	for i := range o.Kinds {
		for k := range o.Kinds[i].Parts {
			if p := &o.Kinds[i].Parts[k]; p.Kind == Matmul {
				cost[i] += float64(p.In) * float64(p.Out) * float64(max(p.Experts, 1))
			}
		}
		all += cost[i] * o.Kinds[i].Count
	}
	passed, place, places := 0.0, 0, len(list)-1
	for i, k := range o.Order {
		passed += cost[k]
		if place+1 < places && passed > all*float64(place+1)/float64(places) {
			place++
			list[place] = i + 1
		}
	}
	for place++; place < places; place++ {
		list[place] = len(o.Order)
	}
}
