package launch

import (
	"encoding/json"
	"regexp"
	"strings"

	"busbar.dev/workload"
)

// HFShards is what divides states under Hugging Face's Trainer: fsdp, deepspeed, or nothing.
func (w *writer) HFShards() string {
	switch j := w.Job; {
	case j.Split.ZeRO == 1 || j.Offload == workload.OffloadOptimizer:
		return "deepspeed"
	case j.Split.ZeRO > 1:
		return "fsdp"
	}
	return ""
}

// hfReason is why there is no config.json of the model; "" where there is one.
func (w *writer) hfReason() string {
	m := w.Job.Model
	if len(m.Config) > 0 {
		return ""
	}
	if _, err := workload.Find(m.Name); err == nil && (w.Details.Beyond != "" || w.Details.Usual()) {
		return m.Name + ": busbar has not all of its config.json; give the folder of the model (-m DIR), whose " +
			"config.json is then written as it is"
	}
	return when(w.Arch.Kind != workload.DecoderOnly && w.Details.Type != "bert",
		m.Name+" is neither a decoder nor BERT; give train_hf.py your own model")
}

// putModel adds the model as a config.json of Hugging Face: the user's own, without what holds for its weights alone,
// where there is one.
func (w *writer) putModel(name string) {
	var doc map[string]json.RawMessage
	if data := w.Job.Model.Config; len(data) == 0 {
		w.add(name, w.hfReason())
		return
	} else if err := json.Unmarshal(data, &doc); err != nil {
		w.put(name, "", err.Error())
		return
	}
	for _, field := range []string{
		"quantization_config", "dtype", "torch_dtype", "transformers_version", "_name_or_path", "auto_map",
	} {
		delete(doc, field)
	}
	w.putJSON(name, doc, "")
}

// putJSON adds a document, or the reason why there is none.
func (w *writer) putJSON(name string, doc any, reason string) {
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		reason = err.Error()
	}
	w.put(name, string(text)+"\n", reason)
}

// putAdapters adds the adapters of a plan as PEFT's LoraConfig takes them.
func (w *writer) putAdapters(name string) {
	j := w.Job
	names := j.Adapted()
	for i, module := range names {
		names[i] = regexp.QuoteMeta(module)
	}
	w.putJSON(name, map[string]any{
		"task_type": "CAUSAL_LM", "r": j.LoRA.Rank, "lora_alpha": 2 * j.LoRA.Rank, "lora_dropout": 0.0, "bias": "none",
		"target_modules": `.*\.(` + strings.Join(names, "|") + ")",
	}, when(!j.LoRA.Frozen(), "the plan has no adapters (--lora)"))
}
