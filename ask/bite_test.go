package ask

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"busbar.dev/query"
)

// plainly is what a question is asked with, as fields and their values.
var plainly = map[string]string{
	"map": "source=dgx-h100:2", "map --audit": "source=baskerville:2",
	"map --floors": "source=dgx-h100:2",
	"map --path":   "source=baskerville:2 path=node0/gpu0,node1/gpu1",
	"predict":      "cluster=dgx-h100:4 layout=2x8 size=64M", "experts": "cluster=dgx-h100:4 tokens=4096",
	"sched": "ranks=4",
	"step":  job + " layout=2x8", "need": job + " layout=2x8", "goodput": job + " layout=2x8", "scale": job + " nodes=1-2",
	"envelope": "cluster=dgx-a100:4 model=llama3-8b",
	"plan":     "cluster=dgx-a100:2 model=gpt2-large parallel=zero=1 micro-batch=4 recompute=none framework=megatron",
	"place":    "cluster=../docs/examples/two-types.yaml layout=2x4 model=gpt2-large parallel=zero=1 micro-batch=4",
	"doctor":   "path=../docs/examples/job.log", "hang": "path=../docs/examples/hang",
	"jobs":    "path=../docs/examples/jobs",
	"explain": "log=../docs/examples/rings.log", "measured": "result=../docs/examples/allreduce.txt cluster=dgx-h100:2",
	"trace": "path=../docs/examples/trace cluster=dgx-h100:1 layout=1x2 model=gpt2 seq=64",
	"diff":  "old=../docs/examples/before.jsonl new=../docs/examples/after.jsonl",
}

const job = "cluster=dgx-a100:4 model=gpt2-large parallel=zero=1 micro-batch=4"

// another is a field's other value, with what both askings have beside the plain fields; after a bar another try. A
// field of one question alone has that before its name. What is not here is a flag, and set.
var another = map[string]string{
	"source": "dgx-h100:4", "path": "../docs/examples/topo.txt", "map --path path": "node0/gpu0,node0/gpu1",
	"cluster": "dgx-b200:4", "layout": "1x8", "model": "gpt2-xl", "predict gpu": "h800", "experts gpu": "h800",
	"gpu": "a100-40", "map gpu": "h200", "map --audit gpu": "h800 | h100 source=../docs/examples/topo.txt",
	"map --path gpu": "h800", "nic": "100G", "set": "nic=10G", "experts set": "nic=100G", "experts cluster": "dgx-a100:4",
	"map --audit set": "nic=10G", "map --floors gpu": "h800",
	"hosts":   "big[1-2] cluster=../docs/examples/two-types.yaml layout=2x4",
	"devices": "2,3 layout= | 0-1 layout=1x4 | 2,3", "compare": "1x4,2x4 layout=", "nccl": "2.12",
	"env": "NCCL_DEBUG=INFO | NCCL_PROTO=LL",

	"parallel": "zero=3", "global-batch": "128", "micro-batch": "2", "seq": "512", "precision": "fp32",
	"recompute": "full",
	"lora":      "rank=16 parallel=zero=0", "packed": "1024 | 128", "method": "dpo", "mtp": "1 framework=megatron",
	"graphs": "1 | 1 micro-batch=1 framework=megatron", "framework": "deepspeed", "kernels": "eager", "unfused": "1",
	"padded": "1 | 1 kernels=eager framework=ddp parallel=zero=0", "sync": "1 | 1 framework=ddp parallel=zero=0",
	"schedule": "gpipe | gpipe framework=megatron parallel=pp=2,zero=1",
	"order":    "tp-cp-pp-dp | tp-cp-pp-dp framework=megatron parallel=tp=2,pp=2,zero=1",
	"bucket":   "200MiB | 200MiB framework=ddp parallel=zero=0", "compress": "bf16 | bf16 framework=ddp parallel=zero=0",
	"context": "gather | gather framework=megatron parallel=cp=2,zero=1", "offload": "optimizer framework=deepspeed",
	"channels-first": "1 | 1 model=resnet50 parallel=zero=0", "trace channels-first": "1",

	"op": "all_gather", "experts op": "combine", "minbytes": "1M | 1M size=", "maxbytes": "1M | 1M size=",
	"stepfactor": "4 | 4 size= minbytes=1K maxbytes=1M", "size": "1M", "dtype": "half op=all_gather",
	"experts dtype": "bf16",
	"root":          "1 | 15 op=broadcast cluster=../docs/examples/two-types.yaml layout=16x4", "algo": "all",
	"sched algo": "tree",
	"proto":      "ll", "launch": "torch", "links": "1", "tokens": "128", "hidden": "4096", "topk": "4", "experts": "64",
	"experts model": "qwen3-30b-a3b",
	"mode":          "low_latency", "sms": "8 mode=low_latency | 8", "node-limit": "1 mode=low_latency | 1",
	"ranks": "8 | 8 layout=2x2", "channels": "2", "pieces": "8 | 8 algo=chain",
	"groups": "2 | 0,2/1,3 algo=hierarchical layout=2x2 ranks=",
	"inner":  "direct | direct algo=hierarchical groups=2", "outer": "tree | tree algo=hierarchical groups=2",
	"sched root": "1 | 1 op=broadcast algo=chain", "sched size": "1M", "sched nccl": "2.12", "sched gpu": "h800",
	"sched nic": "1G",
	"sched set": "nic=1G", "sched devices": "2,3", "sched layout": "2x2 ranks=", "sched cluster": "dgx-h100:2 ranks=",

	"slow": "1x20%", "loader": "1", "sample-size": "1MB | 2MB sample-size=1MB read-rate=1MB/s",
	"read-rate": "1MB/s | 2MB/s sample-size=1MB read-rate=1MB/s",
	"tuner":     "1 | 1 cluster=baskerville:4 layout=4x4", "advise": "1 layout=1x4 | 1 cluster=baskerville:4 layout=4x4",
	"mfu": "0.4", "gpus": "8 layout=",
	"trace kernels": "compiled", "trace nccl": "2.12 layout=2x1 cluster=dgx-h100:2 nic=1G", "trace order": "tp-cp-pp-dp",
	"within": "40", "nodes": "1-4 | all", "place nodes": "4",
	"mtbf": "1y", "checkpoint-time": "30s", "checkpoint-interval": "1h", "restart-time": "1h",
	"storage": "1GB/s | 1GB/s checkpoint-time=30s restart-time=1h", "async-checkpoint": "1", "spares": "1", "elastic": "1",
	"repair-time": "9d", "node-loss": "0.1", "price": "2.5 | 2.5 objective=cost",

	"emit": "plan", "files": "slurm | slurm emit=plan", "pick": "2 | 2 emit=plan parallel=",
	"detected":    "../docs/examples/topo.txt",
	"keep-order":  "1 | 1 hosts=gpu[1,3,2,4] cluster=../docs/examples/leaf-spine.yaml",
	"plan hosts":  "gpu[1,3] cluster=../docs/examples/leaf-spine.yaml",
	"plan layout": "1x8", "plan gpus": "8", "plan parallel": "zero=3 framework=", "plan framework": "deepspeed",
	"top":       "1 parallel=",
	"place top": "1", "place nccl": "2.8 layout=2x8", "place devices": "0-1", "place compare": "1x4,2x4",
	"plan schedule": "gpipe | gpipe parallel=pp=2,zero=1", "plan context": "gather | gather parallel=cp=2,zero=1",
	"plan offload": "optimizer framework=deepspeed", "plan compress": "bf16 | bf16 framework=ddp parallel=zero=0",
	"plan bucket": "200MiB | 200MiB framework=ddp parallel=zero=0", "plan kernels": "eager framework=fsdp parallel=zero=2",
	"plan nic": "10G", "reserve": "0.9", "max-nodes": "1", "max-step": "1us", "avoid": "node1", "objective": "cost",
	"host-memory": "2GB offload=optimizer framework=deepspeed",
	"free":        "gpu[009-016]", "scheduler": "gpu[002,009]", "place cluster": "dgx-a100:4",

	"envelope lora": "rank=16", "envelope mtp": "1", "envelope graphs": "1", "envelope padded": "1", "envelope sync": "1",
	"envelope schedule": "gpipe", "envelope order": "tp-cp-pp-dp", "envelope bucket": "200MiB",
	"envelope context": "gather",
	"envelope offload": "optimizer", "envelope compress": "bf16", "envelope channels-first": "1",

	"words": "qwen", "hardware words": "h100", "causes words": "nic", "frameworks words": "ddp",
	"algorithms words": "ring",
	"presets words":    "h100",

	"rules": "no-such-folder", "ignore": "no-such-file", "mask": "addresses", "fail-on": "never", "comm": "no-such-id",
	"explain size": "1M",
	"log":          "../docs/examples/two-nodes.log", "result": "../docs/examples/before.jsonl",
	"measured op": "all_gather",
	"old":         "../docs/examples/after.jsonl", "new": "../docs/examples/before.jsonl", "threshold": "5000",
	"alpha": "1e-9",
	"ras":   "127.0.0.1:1", "hang hosts": "node1", "hang job": "1", "pods": "train/llama", "pid": "1",
	"dumps":   "no-such-folder",
	"trigger": "no-such-pipe", "gap": "3s", "every": "9s", "scale every": "1 | 1 nodes=1-4", "since": "1s",
	"jobs since": "1ms",
}

// echoes are fields of documents that repeat the question, or say how long the answer took.
var echoes = strings.Fields("job cluster model op nccl dtype layout hosts set command notes within objective fail_on " +
	"mode resolved_cluster " +
	"hidden topk experts tokens_per_gpu framework precision alpha threshold tuner kept global_batch")

// TestFieldsBite gives every field of every question another value: the answer changes, apart from what it repeats of
// the question, or an error says why it cannot.
func TestFieldsBite(t *testing.T) {
	if testing.Short() {
		t.Skip("asks some five hundred questions")
	}
	list := append([]*Question{}, Questions...)
	audit, path := *Audit, *Path
	path.Name = "map --path"
	for _, q := range append(list, &audit, &path) {
		t.Run(strings.ReplaceAll(q.Name, " ", ""), func(t *testing.T) {
			t.Parallel()
			before := map[string]answer{}
			for _, p := range q.Params() {
				if p.Name != "watch" && p.Name != q.Name { // which have the command ask again, and ask what is asked
					bites(t, q, p.Name, before)
				}
			}
		})
	}
}

// answer is what a question was answered with.
type answer struct {
	text string
	err  error
}

// bites tries another value of a field until it changes something, and wants every try that does not to be an error.
// What was asked before is not asked again.
func bites(t *testing.T, q *Question, field string, before map[string]answer) {
	tries, ok := another[q.Name+" "+field]
	if !ok {
		tries, ok = another[field]
	}
	if !ok {
		tries = "1"
	}
	for try := range strings.SplitSeq(tries, " | ") {
		value, beside, _ := strings.Cut(try, " ")
		plain, ok := before[beside]
		if !ok {
			plain.text, plain.err = asked(t, q, plainly[q.Name]+" "+beside)
			before[beside] = plain
		}
		if plain.err != nil {
			t.Errorf("%s without --%s: %v", q.Name, field, plain.err)
			continue
		}
		switch is, err := asked(t, q, plainly[q.Name]+" "+beside+" "+field+"="+value); {
		case err != nil && err.Error() == "":
			t.Errorf("%s: an error of --%s does not say why", q.Name, field)
		case err == nil && is == plain.text:
			t.Errorf("%s: --%s %s changes nothing and says nothing", q.Name, field, value)
		case err == nil:
			return
		default:
			t.Logf("%s %s: %v", q.Name, field, err)
		}
	}
}

// asked is the answer to a question with fields: its document without what that repeats, and whether something is
// wrong. A later value of a field replaces an earlier one; an empty one leaves the field out.
func asked(t *testing.T, q *Question, fields string) (string, error) {
	t.Helper()
	given := map[string]string{}
	for word := range strings.FieldsSeq(fields) {
		name, value, _ := strings.Cut(word, "=")
		given[name] = value
	}
	question := q.New()
	for _, p := range q.Params() {
		value, ok := given[p.Name]
		delete(given, p.Name)
		if !ok || value == "" {
			continue
		}
		if err := p.Set(question, value); err != nil {
			return "", err
		}
	}
	for name := range given {
		t.Fatalf("%s has no field %s", q.Name, name)
	}
	doc, err := q.Run(t.Context(), question, query.Env{})
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(doc)
	var plain any
	if err = errors.Join(err, json.Unmarshal(text, &plain)); err != nil {
		t.Fatal(err)
	}
	text, err = json.Marshal([]any{without(plain), wrongIs(doc)})
	if err != nil {
		t.Fatal(err)
	}
	return string(text), nil
}

func wrongIs(doc any) bool {
	w, ok := doc.(interface{ Wrong() bool })
	return ok && w.Wrong()
}

// without leaves out of a document what repeats the question.
func without(x any) any {
	switch x := x.(type) {
	case map[string]any:
		for _, name := range echoes {
			delete(x, name)
		}
		for k, v := range x {
			x[k] = without(v)
		}
	case []any:
		for i, v := range x {
			x[i] = without(v)
		}
	}
	return x
}
