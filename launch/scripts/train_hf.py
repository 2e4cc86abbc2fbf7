#!/usr/bin/env python3
"""Trains the model of a plan by the Trainer of Hugging Face's transformers: model.json is its configuration, hf_args.json the arguments; with lora.json
it trains adapters by PEFT beside frozen weights.

Environment: PLAN (folder of the files), MODEL (name or folder of trained weights; without it weights are random), TOKENIZER and DATA (a name or folder of datasets, with a column "text"); without them it trains on made-up tokens. SAVE, STEPS, LR, MIN_LR, WARMUP, SAVE_EVERY."""

import json
import os
import time

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForPreTraining, AutoTokenizer, DataCollatorForLanguageModeling, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

HERE = os.environ.get("PLAN") or os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "plan.json")) as f:
    JOB = json.load(f)["job"]
LORA = os.path.join(HERE, "lora.json")
ENCODER = JOB.get("architecture", {}).get("kind") == "encoder"  # which predicts masked words and, as BERT, whether one text follows another
AUTO = AutoModelForPreTraining if ENCODER else AutoModelForCausalLM


class MadeUp(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        x = torch.randint(0, JOB["dims"]["vocab"], (JOB["seq"],), generator=torch.Generator().manual_seed(i))
        return {"input_ids": x, "labels": x, **({"next_sentence_label": 0} if ENCODER else {})}


class Meter(TrainerCallback):
    """Says of every step what the plan predicted of it: how long it took and the memory it needed."""

    def on_train_begin(self, args, state, control, **_):
        if state.is_world_process_zero:
            gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
            print("%s on %s: world size %d, global batch size %d, micro batch size %d, sequence length %d, num_layers %d, hidden_size %d" % (JOB["model"], gpu, args.world_size, JOB["global_batch"], args.per_device_train_batch_size, JOB["seq"], JOB["dims"].get("layers", 0), JOB["dims"].get("hidden", 0)), flush=True)

    def on_step_begin(self, args, state, control, **_):
        self.began = time.perf_counter()

    def on_step_end(self, args, state, control, **_):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        if state.is_world_process_zero:
            took, memory = time.perf_counter() - self.began, torch.cuda.max_memory_allocated() / 1e9 if torch.cuda.is_available() else 0
            print("Trainer step %d: %.3f s, %.0f tokens/s, %.1f GB" % (state.global_step, took, JOB["global_batch"] * JOB["seq"] / took, memory), flush=True)


def texts():
    from datasets import load_dataset

    tokenizer, seq = AutoTokenizer.from_pretrained(os.environ["TOKENIZER"]), JOB["seq"]

    def pack(rows):
        ids = [i for r in tokenizer(rows["text"])["input_ids"] for i in r + [tokenizer.eos_token_id or 0]]
        cut = [ids[a : a + seq] for a in range(0, len(ids) - seq + 1, seq)]
        return {"input_ids": cut, "labels": cut, **({"next_sentence_label": [0] * len(cut)} if ENCODER else {})}

    data = load_dataset(os.environ["DATA"], split="train")
    return data.map(pack, batched=True, remove_columns=data.column_names)


def load(shape):
    frozen, how = os.path.exists(LORA), {}
    if frozen and JOB["precision"].startswith("bf16"):
        how["torch_dtype"] = torch.bfloat16  # frozen weights need no copy in float32
    if not os.environ.get("MODEL"):
        # Random weights are made where they are used: the host is slow at it.
        whole = torch.cuda.is_available() and JOB["parallel"].get("zero", 0) < 3
        with torch.device("cuda:" + os.environ.get("LOCAL_RANK", "0") if whole else "cpu"):
            return AUTO.from_config(AutoConfig.for_model(shape.pop("model_type"), **shape), **how)
    bits = [part.removeprefix("bits=") for part in JOB.get("lora", "").split(",") if part.startswith("bits=")]
    if bits and bits[0] in ("4", "8"):
        from transformers import BitsAndBytesConfig

        how["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=bits[0] == "4", load_in_8bit=bits[0] == "8", bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16
        )
        how["device_map"] = {"": int(os.environ.get("LOCAL_RANK", "0"))}
    return AUTO.from_pretrained(os.environ["MODEL"], **how)


def adapted(model):
    from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training

    with open(LORA) as f:
        config = LoraConfig(**json.load(f))
    if getattr(model, "is_quantized", False):
        model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=JOB["recompute"] == "full")
    model = get_peft_model(model, config)
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    if trained != JOB["adapter_params"]:
        print("adapters of %d parameters; the plan counts %d" % (trained, JOB["adapter_params"]))
    return model


def main():
    with open(os.path.join(HERE, "model.json")) as f:
        shape = json.load(f)
    with open(os.path.join(HERE, "hf_args.json")) as f:
        words = json.load(f)
    for key, name, kind in (("output_dir", "SAVE", str), ("max_steps", "STEPS", int), ("learning_rate", "LR", float), ("warmup_steps", "WARMUP", int), ("save_steps", "SAVE_EVERY", int)):
        if os.environ.get(name):
            words[key] = kind(os.environ[name])
    if os.environ.get("SAVE") == "":
        words["save_strategy"] = "no"
    if os.environ.get("MIN_LR"):
        words["lr_scheduler_kwargs"] = {"min_lr": float(os.environ["MIN_LR"])}
    if words.get("deepspeed"):
        words["deepspeed"] = os.path.join(HERE, words["deepspeed"])
    # As many micro-batches as make up the global batch: an elastic job may have fewer ranks than the plan.
    words["gradient_accumulation_steps"] = max(1, JOB["global_batch"] // (JOB["micro_batch"] * int(os.environ.get("WORLD_SIZE", "1"))))
    if not torch.cuda.is_available():  # to try the files
        words.update(use_cpu=True, ddp_backend="gloo", optim="adamw_torch", dataloader_pin_memory=False)
    args = TrainingArguments(**words)
    model = load(shape)
    have = sum(p.numel() for p in model.parameters())
    if not getattr(model, "is_quantized", False) and abs(have - JOB["params"]) > JOB["params"] // 1000:
        raise SystemExit("the model has %d parameters; plan.json says %d" % (have, JOB["params"]))
    if os.path.exists(LORA):
        model = adapted(model)
    masked = DataCollatorForLanguageModeling(AutoTokenizer.from_pretrained(os.environ["TOKENIZER"]), mlm_probability=0.15) if ENCODER and os.environ.get("DATA") else None
    trainer = Trainer(model=model, args=args, train_dataset=texts() if os.environ.get("DATA") else MadeUp(), data_collator=masked, callbacks=[Meter()])
    last = get_last_checkpoint(args.output_dir) if os.path.isdir(args.output_dir) else None
    trainer.train(resume_from_checkpoint=os.environ.get("RESUME") or last)


if __name__ == "__main__":
    main()
