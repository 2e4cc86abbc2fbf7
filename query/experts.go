package query

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/predict"
)

// Experts asks how long the tokens of a mixture of experts take to the GPUs of their experts (dispatch) and back
// (combine), as DeepEP and its like exchange them over NVLink and RDMA. All GPUs of the layout are one expert-parallel
// group.
type Experts struct {
	Cluster string `short:"c" names:"cluster" placeholder:"CLUSTER" help:"Cluster: a preset (dgx-h100:4), a cluster file, or any file that map reads (topo.xml:8 is eight such nodes) (default: this machine)."`
	Layout  Layout `short:"l" placeholder:"NODESxGPUS" help:"Participating nodes and GPUs per node: 2x4 is two nodes with four GPUs each (default: all GPUs)."`
	MoE
	Dtype string `short:"d" enum:"fp8,bf16" default:"fp8" help:"Of dispatched tokens, fp8 (with scales) or bf16; combined ones are bf16 (default fp8)."`
	GPU   string `name:"gpu" placeholder:"MODEL" help:"GPU model when the cluster's source does not name it: a100-80."`
	NIC   string `name:"nic" placeholder:"[COUNTx]SPEED" help:"NICs when the source does not state them: 200Gb/s or HDR sets the rate of existing NICs, 4x200Gb/s or 4xHDR adds four per node."`

	Set []string `placeholder:"KEY=VALUE" sep:"none" help:"Change the cluster: nic=400G, nics=4 (per node), gdr=on or off, nvlink=off, oversubscription=4:1, gpu=h200. Repeatable."`
}

// MoE is a layer of a mixture of experts, and how its tokens are exchanged.
type MoE struct {
	Model   string `short:"m" names:"model" placeholder:"MODEL" help:"Model whose layer it is, instead of hidden, topk and experts: qwen3-235b-a22b."`
	Tokens  string `default:"128,1024,4096" placeholder:"N,…" help:"Tokens of a GPU, one number or several with commas (default 128,1024,4096)."`
	Hidden  int    `default:"7168" least:"1" help:"Elements of a token: the model's hidden size (default 7168)."`
	TopK    int    `name:"topk" default:"8" least:"1" help:"Experts of a token (default 8)."`
	Experts int    `default:"256" least:"1" help:"Experts of a layer, divided evenly among the GPUs (default 256)."`
	Mode    string `enum:"normal,low_latency" default:"normal" help:"normal sends a token once to each node and hands it on there (training, prefill); low_latency straight to every expert (decode) (default normal)."`
	SMs     int    `name:"sms" default:"20" least:"1" help:"normal: multiprocessors that move data (default 20)."`
	Limit   int    `name:"node-limit" default:"0" least:"0" help:"normal: nodes that a token's experts are on at most, where the model's routing is limited so (4 in DeepSeek-V3); 0 is no limit (default 0)."`
}

// ExpertsDoc is the answer to Experts.
type ExpertsDoc struct {
	Cluster string       `json:"cluster"`
	Layout  string       `json:"layout"`
	GPUs    int          `json:"gpus"` // of the expert-parallel group
	Mode    string       `json:"mode"`
	Hidden  int          `json:"hidden"`
	TopK    int          `json:"topk"`
	Experts int          `json:"experts"`
	Rows    []expertsRow `json:"rows"`
	Noted
}

// expertsRow is one exchange. Bytes and bandwidths are those of one GPU, one direction.
type expertsRow struct {
	Op     string `json:"op"` // dispatch, combine
	Tokens int    `json:"tokens_per_gpu"`
	Dtype  string `json:"dtype"`
	predict.ExpertTime
}

// Run predicts both directions for every number of tokens.
func (q Experts) Run(ctx context.Context, env Env) (doc *ExpertsDoc, err error) {
	defer prepared(&q, &env, &doc, &err)()
	if err != nil {
		return nil, err
	}
	if q.Mode == "low_latency" {
		if err := unread(&q, "sms node-limit", "with mode=low_latency tokens go straight to every expert"); err != nil {
			return nil, err
		}
	}
	tokens, err := parseTokens(q.Tokens)
	if err == nil {
		err = q.takeModel(env)
	}
	if err != nil {
		return nil, err
	}
	place := placement{
		cluster: q.Cluster, layout: string(q.Layout), gpu: q.GPU, nic: q.NIC, set: q.Set,
	}
	p, name, err := place.predictor(ctx, &env, "")
	if err != nil {
		return nil, err
	}
	d := &ExpertsDoc{
		Cluster: p.Cluster.Name, Layout: name, GPUs: len(p.Layout), Mode: q.Mode, Hidden: q.Hidden, TopK: q.TopK,
		Experts: q.Experts,
		Rows:    []expertsRow{},
	}
	for _, n := range tokens {
		for _, combine := range []bool{false, true} {
			row, err := q.row(p, n, combine)
			if err != nil {
				return nil, err
			}
			d.Rows = append(d.Rows, row)
		}
	}
	return d, ctx.Err()
}

// takeModel takes the layer of the model that is named.
func (q *Experts) takeModel(env Env) error {
	if q.Model == "" {
		return nil
	}
	m, err := LoadModel(env, q.Model)
	switch {
	case err != nil:
		return err
	case m.Dims.Experts == 0:
		return fmt.Errorf("-m %s: the model has no experts", q.Model)
	}
	err = unread(q, "hidden topk experts", "the model says it")
	q.Hidden, q.TopK, q.Experts = int(m.Dims.Hidden), int(m.Dims.TopK), int(m.Dims.Experts)
	return err
}

// row predicts one exchange.
func (q *Experts) row(p *predict.Predictor, tokens int, combine bool) (expertsRow, error) {
	call := predict.ExpertCall{
		Combine: combine, LowLatency: q.Mode == "low_latency", Tokens: tokens, Hidden: q.Hidden, TopK: q.TopK,
		Experts: q.Experts, Width: 2, SMs: q.SMs, Groups: q.Limit,
	}
	row := expertsRow{Op: "dispatch", Tokens: tokens, Dtype: "bf16"}
	switch {
	case combine:
		row.Op = "combine"
	case q.Dtype == "fp8":
		row.Dtype, call.Width = "fp8", 1
	}
	t, err := p.Experts(call)
	if err != nil {
		return row, err
	}
	row.ExpertTime = *t
	return row, nil
}

// parseTokens reads numbers with commas.
func parseTokens(text string) ([]int, error) {
	var list []int
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("--tokens %s; expected numbers from 1 on, with commas: 128,4096", text)
		}
		list = append(list, n)
	}
	if len(list) > 64 {
		return nil, errors.New("--tokens: expected 1 to 64 numbers: 128,4096")
	}
	return list, nil
}
