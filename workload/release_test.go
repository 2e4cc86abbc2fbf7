package workload_test

import (
	"strings"
	"testing"

	"busbar.dev/workload"
)

// One rule for releases: between two that are known it is the older one, newer than all it is the newest and is said to
// be, and what is older than all or no release is refused with the list.
func TestFrameworkReleases(t *testing.T) {
	for text, want := range map[string]string{
		"megatron@0.12.1": "megatron@0.12", "megatron@0.17": "megatron@0.15", "megatron@23.05": "megatron@23.04",
		"megatron@23": "megatron@23.04", "megatron@2.7": "megatron@2.6",
		"megatron@0": "megatron@0.19", "hf@4": "hf@4.57", "fsdp@2": "fsdp@2.9", "megatron@2025-06": "megatron@0.12",
		"megatron@2025-06-30": "megatron@0.12", "torchtitan@0.2.1": "torchtitan@0.2",
		"megatron@99": "megatron@0.19 newer", "megatron@0.20": "megatron@0.19 newer", "megatron@24.05": "megatron@0.19 newer",
		"torchtitan@99": "torchtitan@0.2 newer", "fsdp@99": "fsdp@2.9 newer",
		"ddp@99": "ddp@2.9 newer", "hf@5": "hf@5.0", "hf@6": "hf@5.0 newer", "deepspeed@1.2": "deepspeed@0.18 newer",
		"megatron@2026-13": "", "megatron@x": "", "megatron@1": "", "fsdp@0.3": "", "fsdp@1.0": "", "megatron@0.1": "",
		"megatron@2019": "",
	} {
		f, err := workload.ParseFramework(text)
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), "known are") {
				t.Errorf("%s: %v, %v; expected an error with the releases that are known", text, f, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := f.ID
		if f.Newer != "" {
			got += " newer"
		}
		if got != want {
			t.Errorf("%s: %s; expected %s", text, got, want)
		}
	}
}

func TestGivenTwice(t *testing.T) {
	if _, err := workload.ParseLoRA("rank=16,rank=32"); err == nil {
		t.Error("a rank that is given twice is taken")
	}
}
