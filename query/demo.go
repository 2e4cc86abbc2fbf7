package query

import "context"

// Demo asks the first questions about this machine and about the reference cluster, whose measurements are published: what they
// are, what is wrong with them, and how long an all-reduce of gradients takes on four GPUs of the latter placed three ways.
type Demo struct{}

// DemoDoc is the answer to Demo.
type DemoDoc struct {
	Prediction  *PredictDoc `json:"prediction"` // on the reference cluster
	Reference   *MapDoc     `json:"reference"`
	ThisMachine *MapDoc     `json:"this_machine"` // null where machines cannot be read
}

// DemoReference is the reference cluster.
const DemoReference = "baskerville:2"

// DemoPredict is the prediction that Demo asks for.
func DemoPredict() Predict {
	return Predict{Cluster: "baskerville", Compare: "1x4,2x2,4x1", Size: "1.32GB", Dtype: "bfloat16"}
}

// Run asks.
func (Demo) Run(ctx context.Context, env Env) (*DemoDoc, error) {
	d := &DemoDoc{}
	var err error
	if env.Machine != nil {
		if d.ThisMachine, err = (Map{}).Run(ctx, env); err != nil {
			return nil, err
		}
	}
	if d.Reference, err = (Map{Sources: []string{DemoReference}}).Run(ctx, env); err != nil {
		return nil, err
	}
	if d.Prediction, err = DemoPredict().Run(ctx, env); err != nil {
		return nil, err
	}
	return d, nil
}
