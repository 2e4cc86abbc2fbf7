#!/usr/bin/env python3
"""Trains the model of a plan by the Trainer of Hugging Face's transformers: model.json is its configuration, hf_args.json the arguments.

Environment: PLAN (folder of the files), TOKENIZER and DATA (a name or folder of datasets, with a column "text"); without them it trains on made-up tokens. SAVE, STEPS, LR, WARMUP, SAVE_EVERY."""

import json
import os

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

HERE = os.environ.get("PLAN") or os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "plan.json")) as f:
    JOB = json.load(f)["job"]


class MadeUp(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        x = torch.randint(0, JOB["dims"]["vocab"], (JOB["seq"],), generator=torch.Generator().manual_seed(i))
        return {"input_ids": x, "labels": x}


def texts():
    from datasets import load_dataset

    tokenizer, seq = AutoTokenizer.from_pretrained(os.environ["TOKENIZER"]), JOB["seq"]

    def pack(rows):
        ids = [i for r in tokenizer(rows["text"])["input_ids"] for i in r + [tokenizer.eos_token_id or 0]]
        cut = [ids[a : a + seq] for a in range(0, len(ids) - seq + 1, seq)]
        return {"input_ids": cut, "labels": cut}

    data = load_dataset(os.environ["DATA"], split="train")
    return data.map(pack, batched=True, remove_columns=data.column_names)


def main():
    with open(os.path.join(HERE, "model.json")) as f:
        shape = json.load(f)
    with open(os.path.join(HERE, "hf_args.json")) as f:
        words = json.load(f)
    for key, name, kind in (("output_dir", "SAVE", str), ("max_steps", "STEPS", int), ("learning_rate", "LR", float), ("warmup_steps", "WARMUP", int), ("save_steps", "SAVE_EVERY", int)):
        if os.environ.get(name):
            words[key] = kind(os.environ[name])
    if words.get("deepspeed"):
        words["deepspeed"] = os.path.join(HERE, words["deepspeed"])
    args = TrainingArguments(**words)
    config = AutoConfig.for_model(shape.pop("model_type"), **shape)
    model = AutoModelForCausalLM.from_config(config)
    Trainer(model=model, args=args, train_dataset=texts() if os.environ.get("DATA") else MadeUp()).train(resume_from_checkpoint=os.environ.get("RESUME") or None)


if __name__ == "__main__":
    main()
