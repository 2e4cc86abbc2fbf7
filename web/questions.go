package web

import "time"

// kind is what a parameter's value may be.
type kind int

const (
	word    kind = iota // a short text: a name, a list, a size
	number              // digits, with a point and a sign
	yes                 // a flag that is there or not: 1
	repeat              // a word that may be given several times
	cluster             // a preset with an optional count, or an upload
	model               // a name, dimensions, or an upload
	upload              // an upload
	uploads             // one or more
)

// param is a parameter of a question and the flag that it becomes.
type param struct {
	name string // in the address
	flag string // of the command; "" is a word without a flag
	kind kind
}

// question is a command that can be asked for, with all that may be said.
type question struct {
	name    string
	command []string
	params  []param
	// pictures are values of o that give a picture or a file instead of JSON, with
	// the word for -o and the type of what comes.
	pictures map[string]picture
	within   time.Duration
	heavy    bool // takes all cores for long
	fresh    bool // about this machine, where no cluster is named: kept for a short time only
}

type picture struct{ word, mime string }

const (
	shortly = 10 * time.Second
	longer  = 60 * time.Second
)

const svgType = "image/svg+xml"

// where are the parameters that say what a job runs on and what it is.
func where(more ...param) []param {
	return append([]param{
		{"c", "cluster", cluster},
		{"l", "layout", word},
		{"m", "model", model},
		{"parallel", "parallel", word},
		{"global-batch", "global-batch", number},
		{"micro-batch", "micro-batch", number},
		{"seq", "seq", number},
		{"precision", "precision", word},
		{"recompute", "recompute", word},
		{"framework", "framework", word},
		{"unfused", "unfused", yes},
		{"padded", "padded", yes},
		{"sync", "sync", yes},
		{"schedule", "schedule", word},
		{"order", "order", word},
		{"bucket", "bucket", word},
		{"context", "context", word},
		{"offload", "offload", word},
		{"compress", "compress", word},
		{"nccl", "nccl", word},
		{"gpu", "gpu", word},
		{"nic", "nic", word},
	}, more...)
}

// failing are the parameters about failures and checkpoints.
var failing = []param{
	{"goodput", "goodput", yes},
	{"mtbf", "mtbf", word},
	{"checkpoint-time", "checkpoint-time", word},
	{"checkpoint-interval", "checkpoint-interval", word},
	{"restart-time", "restart-time", word},
	{"storage", "storage", word},
}

// questions are all that can be asked. A parameter that is not here is refused.
var questions = []question{
	{name: "map", command: []string{"map"}, within: shortly, fresh: true, params: []param{
		{"c", "", cluster}, {"audit", "audit", yes}, {"path", "path", repeat},
	}, pictures: map[string]picture{
		"svg": {"svg", svgType}, "yaml": {"yaml", "text/plain; charset=utf-8"}, "dot": {"dot", "text/plain; charset=utf-8"},
		"matrix": {"matrix", "text/plain; charset=utf-8"}, "nccl-xml": {"nccl-xml", "text/plain; charset=utf-8"},
	}},
	{name: "predict", command: []string{"predict"}, within: shortly, fresh: true, params: []param{
		{"c", "cluster", cluster},
		{"l", "layout", word},
		{"op", "op", word},
		{"b", "minbytes", word},
		{"e", "maxbytes", word},
		{"f", "stepfactor", number},
		{"size", "size", word},
		{"d", "dtype", word},
		{"root", "root", number},
		{"algo", "algo", word},
		{"proto", "proto", word},
		{"nccl", "nccl", word},
		{"nccl-plan", "nccl-plan", yes},
		{"links", "links", yes},
		{"compare", "compare", word},
		{"gpu", "gpu", word},
		{"nic", "nic", word},
		{"env", "env", repeat},
	}, pictures: map[string]picture{"svg": {"svg=-", svgType}}},
	{name: "step", command: []string{"step"}, within: shortly, params: where(append([]param{
		{"compare", "compare", word},
		{"advise", "advise", yes},
		{"set", "set", repeat},
		{"slow", "slow", repeat},
		{"tokens", "tokens", word},
		{"price", "price", word},
		{"energy", "energy", word},
		{"gpu-power", "gpu-power", word},
		{"overhead", "overhead", number},
	}, failing...)...), pictures: map[string]picture{"svg": {"svg=-", svgType}, "trace": {"trace=-", "application/json"}}},
	{name: "envelope", command: []string{"envelope"}, within: shortly, params: where(param{"gpus", "gpus", number}, param{"mfu", "mfu", number})},
	{name: "need", command: []string{"need"}, within: shortly, params: where(param{"within", "within", number})},
	{name: "scale", command: []string{"scale"}, within: shortly, params: where(append([]param{{"nodes", "nodes", number}, {"set", "set", repeat}}, failing...)...)},
	{name: "plan", command: []string{"plan"}, within: longer, heavy: true, params: planParams},
	{name: "presets", command: []string{"presets"}, within: shortly},
	{name: "models", command: []string{"models"}, within: shortly, params: []param{{"model", "", word}}},
	{name: "hardware", command: []string{"hardware"}, within: shortly, params: []param{{"table", "", word}}},
	{name: "version", command: []string{"version"}, within: shortly},
	{name: "doctor", command: []string{"doctor"}, within: longer, params: []param{{"file", "", uploads}, {"mask", "mask", word}}},
	{name: "explain", command: []string{"doctor", "explain"}, within: longer, params: []param{{"file", "", uploads}, {"comm", "comm", word}, {"size", "size", word}}, pictures: map[string]picture{"svg": {"svg=-", svgType}}},
	{name: "measured", command: []string{"doctor", "bench"}, within: shortly, params: []param{
		{"file", "", upload}, {"c", "cluster", cluster}, {"l", "layout", word}, {"op", "op", word}, {"nccl", "nccl", word},
	}},
}

var planParams = []param{
	{"c", "cluster", cluster},
	{"l", "layout", word},
	{"gpus", "gpus", number},
	{"m", "model", model},
	{"global-batch", "global-batch", number},
	{"seq", "seq", number},
	{"precision", "precision", word},
	{"framework", "framework", word},
	{"parallel", "parallel", word},
	{"micro-batch", "micro-batch", number},
	{"recompute", "recompute", word},
	{"schedule", "schedule", word},
	{"bucket", "bucket", word},
	{"context", "context", word},
	{"offload", "offload", word},
	{"compress", "compress", word},
	{"top", "top", number},
	{"reserve", "reserve", number},
	{"host-memory", "host-memory", word},
	{"max-nodes", "max-nodes", number},
	{"max-step", "max-step", word},
	{"avoid", "avoid", word},
	{"tuner", "tuner", yes},
	{"objective", "objective", word},
	{"price", "price", word},
	{"energy", "energy", word},
	{"gpu-power", "gpu-power", word},
	{"overhead", "overhead", number},
	{"set", "set", repeat},
	{"nccl", "nccl", word},
	{"gpu", "gpu", word},
	{"nic", "nic", word},
	{"hosts", "hosts", word},
	{"keep-order", "keep-order", yes},
}
