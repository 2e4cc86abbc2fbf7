package workload

import "busbar.dev/unit"

// CheckpointBytes is what a checkpoint holds of a job: every parameter once, as it is kept, and the
// optimizer's state of it. Gradients and activations are computed again, and replicas save one copy
// between them.
func (j *Job) CheckpointBytes() unit.Volume {
	weight, _, state := j.state()
	return unit.Volume(float64(j.Model.Params()) * (weight + state))
}
