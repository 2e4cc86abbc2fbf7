package trainlog

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"busbar.dev/internal/lines"
)

// logs are made-up texts of the shapes that frameworks print, with the figures that one computes of them by hand.
var logs = []struct {
	name, framework string
	line            func(i int) string // of step i, from 1
	want            Run
}{
	{"nanotron", "nanotron", func(i int) string {
		return fmt.Sprintf("07/02/2024 14:37:%02d [INFO|DP=0|PP=0|TP=0|ip-10-0-0-7]: iteration: %d / 50 | consumed_tokens: "+
			"%d.1M"+
			" | elapsed_time_per_iteration_ms: %s | tokens_per_sec: 12.5K | tokens_per_sec_per_gpu: 1.56K | "+
			"global_batch_size: 1.02K | lm_loss: 9.63 | lr: 1e-05 | model_tflops_per_gpu: 40.5 | hardware_tflops_per_gpu: 41 |"+
			" grad_norm: 1.1", i, i, i, slowFirst(i, "4.71K", "345"))
	}, Run{
		Of: 50, Step: &Spread{Median: 0.345}, Rates: Rates{Tokens: 12500, PerGPU: 1560, TFLOPS: 40.5}, Facts: Facts{World: 8},
	}},
	{"Megatron", "Megatron-LM", func(i int) string {
		return fmt.Sprintf(" [2025-05-27 15:23:%02d] iteration %8d/   24000 | consumed samples: %12d | elapsed time per "+
			"iteration "+
			"(ms): %s | throughput per GPU (TFLOP/s/GPU): 140.4 | learning rate: 1.500000E-06 | global batch size:  1024 | lm "+
			"loss: 1.192634E+01 | loss scale: 1.0 | grad norm: 5.960 | number of skipped iterations:   0 |", i, i, 1024*i,
			slowFirst(i, "271607.0", "52728.1"))
	}, Run{Of: 24000, Step: &Spread{Median: 52.7281}, Rates: Rates{TFLOPS: 140.4}, Facts: Facts{Batch: 1024}}},
	{"torchtitan", "torchtitan", func(i int) string {
		return fmt.Sprintf("[rank0]:[titan] 2026-02-24 19:46:17,508 - root - INFO - step: %2d  loss:  7.62585  grad_norm: "+
			"26.6250  "+
			"memory: 66.91GiB(37.51%%)  tps: %s  tflops: 314.71  mfu: 13.99%%", i, slowFirst(i, "1,204", "10,050"))
	}, Run{Rates: Rates{PerGPU: 10050, TFLOPS: 314.71, MFU: 0.1399}}},
	{"NeMo", "NeMo", func(i int) string {
		return fmt.Sprintf("0: Training epoch 0, iteration %d/99 | lr: 6.897e-06 | global_batch_size: 128 | global_step: "+
			"%d | "+
			"max_memory_reserved: 127785762816 | reduced_train_loss: 11.96 | train_step_timing in s: %s | TFLOPS_per_GPU: "+
			"1.249e+03 | consumed_samples: 5888", i, i, slowFirst(i, "31.4", "6.08"))
	}, Run{Of: 99, Step: &Spread{Median: 6.08}, Rates: Rates{TFLOPS: 1249}, Facts: Facts{Batch: 128}}},
	{"DeepSpeed", "DeepSpeed", func(i int) string {
		return fmt.Sprintf("[2023-11-07 01:55:%02d,714] [INFO] [timer.py:260:stop] epoch=0/micro_step=%d/global_step=%d, "+
			"RunningAvgSamplesPerSec=25.0257, CurrSamplesPerSec=25.5, MemAllocated=4.32GB, MaxMemAllocated=38.49GB", i, 40*i,
			10*i)
	}, Run{Rates: Rates{Samples: 25.5}}},
	{"Hugging Face's bar", "Hugging Face Trainer", func(i int) string {
		return fmt.Sprintf("{'loss': 1.2, 'grad_norm': 3.4, 'learning_rate': 1e-05, 'epoch': 0.01}\n %d%%|█         | "+
			"%d/1000 "+
			"[01:%02d<12:34,  1.25it/s]", i/10, i, i)
	}, Run{Of: 1000, Step: &Spread{Median: 0.8}}},
	{"Axolotl's bar", "Hugging Face Trainer", func(i int) string {
		return fmt.Sprintf("{'loss': 0.9, 'learning_rate': 2e-05, 'tokens_per_second_per_gpu': 1834.5, 'epoch': 0.3}\n"+
			"  3%%|▎         | %d/3120 [05:%02d<2:45:17,  3.20s/it]", i, i)
	}, Run{Of: 3120, Step: &Spread{Median: 3.2}}},
	{"the Trainer's files of a plan", "Hugging Face Trainer", func(i int) string {
		begin := "llama3-8b on NVIDIA H100 80GB HBM3: world size 16, global batch size 128, num_layers 32, hidden_size 4096\n"
		if i > 1 {
			begin = ""
		}
		return begin + fmt.Sprintf(" %d%%|█         | %d/30 [00:%02d<01:00,  9.9s/it]Trainer step %d: %s s, 169125 "+
			"tokens/s, 54.1 GB\n %d%%|█         | %d/30 [00:%02d<01:00,  9.9s/it]", i-1, i-1, i-1, i,
			slowFirst(i, "16.2", "6.2"), i, i, i)
	}, Run{
		Rates: Rates{Tokens: 169125}, Facts: Facts{World: 16, Batch: 128, Layers: 32, Hidden: 4096},
	}},
	{"Lightning", "Lightning", func(i int) string {
		return fmt.Sprintf("Epoch 0:  %d%%|█         | %d/1563 [00:%02d<07:30, 2.00it/s, v_num=3, train_loss=2.31]", i, i,
			i)
	}, Run{Of: 1563, Step: &Spread{Median: 0.5}}},
	{"llm.c", "llm.c", func(i int) string {
		return fmt.Sprintf("step %4d/19560 | loss 11.010252 (+nanz)| norm 15.1374 (+nanz)| lr 8.57e-07 | %s ms | 31.1%% "+
			"bf16 MFU"+
			" | 124285 tok/s", i, slowFirst(i, "9688.25", "4339.91"))
	}, Run{Of: 19560, Step: &Spread{Median: 4.33991}, Rates: Rates{Tokens: 124285, MFU: 0.311}}},
	{"llm.c without a known peak", "llm.c", func(i int) string {
		return fmt.Sprintf("step %4d/1765 | loss 11.03 (+nanz)| norm 22.1 (+nanz)| lr 8.57e-07 | 2679.79 ms | -100.0%% "+
			"bf16 MFU | "+
			"195645 tok/s", i)
	}, Run{Of: 1765, Step: &Spread{Median: 2.67979}, Rates: Rates{Tokens: 195645}}},
	{"nanoGPT", "", func(i int) string {
		return fmt.Sprintf("iter %d: loss 4.0863, time 561.94ms, mfu 38.20%%", 1630+i)
	}, Run{Step: &Spread{Median: 0.56194}, Rates: Rates{MFU: 0.382}}},
	{"a step's line of one's own", "", func(i int) string {
		return fmt.Sprintf("step %5d | loss: 6.112 | lr 6.0000e-04 | norm: 1.2 | dt: 338.20ms | tok/sec: 1550000.10", i)
	}, Run{Step: &Spread{Median: 0.3382}, Rates: Rates{Tokens: 1550000.1}}},
	{"MaxText", "MaxText", func(i int) string {
		return fmt.Sprintf("completed step: %d, seconds: 1.341, TFLOP/s/device: 257.929, Tokens/s/device: 36653.244, loss: "+
			"7.1", i)
	}, Run{Step: &Spread{Median: 1.341}, Rates: Rates{PerGPU: 36653.244, TFLOPS: 257.929}}},
	{"plain", "", func(i int) string {
		return fmt.Sprintf("step %d loss 2.3 tok/s %d", 10*i, 831)
	}, Run{Rates: Rates{Tokens: 831}}},
	{"plain, the rate first", "", func(i int) string {
		return fmt.Sprintf("step %d tok/s 831 loss 2.3", 10*i)
	}, Run{Rates: Rates{Tokens: 831}}},
	{"plain with units", "", func(i int) string {
		return fmt.Sprintf("[step %d] loss=2.31 throughput 831.5 tokens/s 12.5 samples/s 41.2%% MFU", i)
	}, Run{Rates: Rates{Tokens: 831.5, Samples: 12.5, MFU: 0.412}}},
	{"ms/step", "", func(i int) string {
		return fmt.Sprintf("Step %d/500, train loss 3.1, 212.4 ms/step", i)
	}, Run{Of: 500, Step: &Spread{Median: 0.2124}}},
	{"Megatron-DeepSpeed", "", func(i int) string {
		return fmt.Sprintf("steps: %d loss: 7.1022 iter time (s): 1.250 samples/sec: 25.600", i)
	}, Run{Step: &Spread{Median: 1.25}, Rates: Rates{Samples: 25.6}}},
	{"MindSpeed", "Megatron-LM", func(i int) string {
		return fmt.Sprintf(" iteration  %d/50000 | consumed samples: 5632 | consumed tokens:  11534336 | elapsed time per "+
			"iteration"+
			" (ms):  52728.1 | learning rate:    1.499E-05 | lm loss:  1.376514E+01 | samples per second: 9.710 | TFLOPs: "+
			"167.52 |", i)
	}, Run{Of: 50000, Step: &Spread{Median: 52.7281}, Rates: Rates{Samples: 9.71, TFLOPS: 167.52}}},
	{"modded-nanogpt", "", func(i int) string {
		return fmt.Sprintf("step:%d/1750 train_loss:3.41 train_time:%dms step_avg:83.37ms", i, 83*i)
	}, Run{Of: 1750, Step: &Spread{Median: 0.08337}}},
	{"batches of one's own", "", func(i int) string {
		return fmt.Sprintf("2025-06-20 14:17:10 I [train.py:103] Batch %d Loss: 7.24291, Speed: 8.94 samples/sec, lr: "+
			"0.000010",
			i)
	}, Run{Rates: Rates{Samples: 8.94}}},
	{"nanotron of 2025", "nanotron", func(i int) string {
		return fmt.Sprintf("12/21 01:39:51 [INFO|DP=0|TP=0|n7]: iteration: %d / 1500000 | consumed_tokens: 480B | "+
			"time_per_iteration_ms: 8.79K | tokens_per_sec: 182K | tokens_per_sec_per_gpu: 699 | global_batch_size: 1.6M | "+
			"lm_loss: 2.04 | model_tflops_per_gpu: 15.4 | eta: 131 days, 1:45:39", 211364+i)
	}, Run{
		Of: 1500000, Step: &Spread{Median: 8.79}, Rates: Rates{Tokens: 182000, PerGPU: 699, TFLOPS: 15.4},
		Facts: Facts{World: 260},
	}},
	{"a bar with the rounded number of its step", "Lightning", func(i int) string {
		return fmt.Sprintf("Epoch 0:   3%%|▎   | %d/1100000 [5:28:58<171:22:21,  2.00it/s, loss=2.52, v_num=, "+
			"reduced_train_loss=2.510, global_step=3.1e+4, consumed_samples=2.54e+8]", 34100+i)
	}, Run{Of: 1100000, Step: &Spread{Median: 0.5}}},
	{"the mean of all steps so far", "", func(i int) string {
		return fmt.Sprintf("step:%d/30 train_time:%dms step_avg:%.2fms loss:3", i, 40*i+100, 40+100/float64(i))
	}, Run{Of: 30, Step: &Spread{Median: 0.04333}}},
	{"Megatron-DeepSpeed with the timer of DeepSpeed", "DeepSpeed", func(i int) string {
		return fmt.Sprintf("[timer.py:264:stop] epoch=0/micro_step=%[1]d/global_step=%[1]d, CurrSamplesPerSec=2472.5\n"+
			"iteration=  %[2]d/  136100 | elapsed_time_per_iteration_ms=3415.3 | lm loss=12.31 | samples_per_second=1798.9", i,
			136000+i)
	}, Run{Of: 136100, Step: &Spread{Median: 3.4153}, Rates: Rates{Samples: 1798.9}}},
	{"tokens/gpu/sec", "", func(i int) string {
		return fmt.Sprintf("step: %d         train loss: 3.01        test loss: 3.15         tokens/gpu/sec: 9178.40"+
			"         MFU: 62.5%%", 10*i)
	}, Run{Rates: Rates{PerGPU: 9178.4, MFU: 0.625}}},
	{"llama2.c", "", func(i int) string {
		return fmt.Sprintf("%d | loss 5.8543 | lr 4.100000e-05 | %s | mfu 21.50%%", 10*i,
			slowFirst(i, "8160.78ms", "812.25ms"))
	}, Run{Step: &Spread{Median: 0.81225}, Rates: Rates{MFU: 0.215}}},
	{"iterations that are parts of a step", "", func(i int) string {
		return fmt.Sprintf("iter %d step %d: loss 10.7259, iter time: 187.87ms", i, (i+1)/2)
	}, Run{Step: &Spread{Median: 0.18787}}},
	{"Megatron-DeepSpeed, whose stages are a world of their own", "Megatron-LM", func(i int) string {
		return fmt.Sprintf("using world size: 64 and model-parallel size: 4\n[INFO] [config.py:904:print]   world_size "+
			"................... 16\n iteration %d/ 1000 | elapsed time per iteration (ms): 127766.0 | lm loss: 3.9E+01", i)
	}, Run{Of: 1000, Step: &Spread{Median: 127.766}, Facts: Facts{World: 64}}},
	{"maskrcnn-benchmark", "", func(i int) string {
		return fmt.Sprintf("2022-05-23 16:26:05,629 trainer INFO: eta: 1:47:40  iter: %d  time: 0.1343 (0.1617)  data: "+
			"0.0002 (0.01)  "+
			"loss: 1.2208 (2.3323)  lr: 0.02\n %d%%|██ | %d/53 [00:05<00:01, 10.38it/s]", 50*i, i, i)
	}, Run{Step: &Spread{Median: 0.1343}}},
	{"brackets of an epoch", "", func(i int) string {
		return fmt.Sprintf("Epoch [3][%d/2500] lr: 0.02, time: 1.25, data_time: 0.015, loss_cls: 0.02", 50*i)
	}, Run{Step: &Spread{Median: 1.25}}},
	{"samples in brackets", "", func(i int) string {
		return fmt.Sprintf("Train Epoch: 0 [%6d/109468 (3%%)] Loss: 0.9 (1.0) Data (t): 0.1 Batch (t): 0.559, 36/s", 64*i)
	}, Run{Step: &Spread{Median: 0.559}}},
	{"an epoch in brackets before the step", "", func(i int) string {
		return fmt.Sprintf("epoch: [1/2], global_step: %d, loss: 6.9, avg_reader_cost: 0.01 s, avg_batch_cost: 0.18 s", i)
	}, Run{Step: &Spread{Median: 0.18}}},
	{"the rate on the next line", "", func(i int) string {
		return fmt.Sprintf("\titers: %d, epoch: 1 | loss: 0.34\n\tspeed: 0.0587s/iter; left time: 90.9s", 100*i)
	}, Run{Step: &Spread{Median: 0.0587}}},
	{"fairseq-like", "", func(i int) string {
		return fmt.Sprintf("2024-01-05 10:11:%02d | INFO | train_inner | epoch 001: %d / 990 loss=9.1, wps=65432.1, "+
			"ups=0.5, "+
			"global step: %d", i, i, i)
	}, Run{Step: &Spread{Median: 2}, Rates: Rates{Tokens: 65432.1}}},
	{"Composer, a number a line", "", func(i int) string {
		return fmt.Sprintf("[batch=%[1]d/1000]:\n\t Train time/batch: %[1]d\n\t Train throughput/batches_per_sec: 0.5\n\t "+
			"Train "+
			"throughput/device/batches_per_sec: 0.06\n\t Train throughput/tokens_per_sec: 272600.0\n\t Train "+
			"throughput/device/tokens_per_sec: 34075.0\n\t Train loss/train/total: 2.31", i)
	}, Run{Step: &Spread{Median: 2}, Rates: Rates{Tokens: 272600, PerGPU: 34075}, Facts: Facts{World: 8}}},
	{"OLMo", "", func(i int) string {
		return fmt.Sprintf("olmo.train:743\tINFO\t[step=%d/739328]\n    train/CrossEntropyLoss=7.101\n    "+
			"throughput/device/tokens_per_second=12,345\n    throughput/device/batches_per_second=0.2", i)
	}, Run{Step: &Spread{Median: 5}, Rates: Rates{PerGPU: 12345}}},
	{"verl", "", func(i int) string {
		return fmt.Sprintf("step:%d - actor/pg_loss:0.013 - timing_s/gen:40.1 - timing_s/step:95.3 - perf/throughput:1234.5",
			i)
	}, Run{Step: &Spread{Median: 95.3}, Rates: Rates{PerGPU: 1234.5}}},
	{"PyTorch's example of ImageNet", "", func(i int) string {
		return fmt.Sprintf("Epoch: [0][%5d/5005]\tTime  0.211 ( 0.413)\tData  0.001 ( 0.200)\tLoss 6.9012e+00 (7.0e+00)\t"+
			"Acc@1   0.00 (  0.11)", i)
	}, Run{Step: &Spread{Median: 0.211}}},
	{"timm", "", func(i int) string {
		return fmt.Sprintf("Train: 0 [%4d/1251 (  4%%)]  Loss: 6.952 (6.95)  Time: 0.512s, 2000.15/s  (0.601s, 1703.13/s)", i)
	}, Run{Step: &Spread{Median: 0.512}}},
}

// slowFirst is the first figure for the first two steps, which compile, and the other for the rest.
func slowFirst(i int, first, rest string) string {
	if i < 3 {
		return first
	}
	return rest
}

func runOf(text string) *Run {
	var g Log
	for line := range strings.Lines(text) {
		g.Take(strings.TrimRight(line, "\n"))
	}
	return g.Run()
}

func TestFrameworks(t *testing.T) {
	for _, c := range logs {
		var b strings.Builder
		for i := 1; i <= 30; i++ {
			b.WriteString(c.line(i) + "\n" + c.line(i) + "\n") // two ranks print the same
		}
		r := runOf(b.String())
		if r == nil {
			t.Errorf("%s: no training", c.name)
			continue
		}
		near := func(what string, got, want float64) {
			if math.Abs(got-want) > 1e-3*want {
				t.Errorf("%s: %s %g; want %g", c.name, what, got, want)
			}
		}
		near("lines", float64(r.Lines), 30)
		near("tokens/s", r.Tokens, c.want.Tokens)
		near("tokens/s per GPU", r.PerGPU, c.want.PerGPU)
		near("samples/s", r.Samples, c.want.Samples)
		near("MFU", r.MFU, c.want.MFU)
		near("TFLOPS", r.TFLOPS, c.want.TFLOPS)
		if (r.Step == nil) != (c.want.Step == nil) {
			t.Errorf("%s: step %v", c.name, r.Step)
		} else if r.Step != nil {
			near("step", r.Step.Median, c.want.Step.Median)
		}
		if r.Framework != c.framework || r.Of != c.want.Of || r.Facts != c.want.Facts {
			t.Errorf("%s: %q, of %d, %+v", c.name, r.Framework, r.Of, r.Facts)
		}
		if slow := strings.Contains(c.line(1), slowFirst(1, "271607.0", "")); slow && r.LeftOut != 2 {
			t.Errorf("%s: %d left out", c.name, r.LeftOut)
		}
	}
}

// Texts with rates and steps that are of no training.
func TestNoTraining(t *testing.T) {
	for name, line := range map[string]string{
		"a server of models": "INFO 01-29 07:44:%d metrics.py: Avg prompt throughput: 12.0 tokens/s, Avg generation " +
			"throughput: 30.1 tokens/s, Running: 1 reqs",
		"llama.cpp": "llama_print_timings: eval time = 123.%d ms / 50 runs ( 2.47 ms per token, 405.02 tokens " +
			"per second)",
		"a download":            "model-0000%[1]d-of-00004.safetensors:  %[1]d%%|█   | 1.2G/4.9G [00:12<00:38, 95.1MB/s]",
		"shards":                "Loading checkpoint shards: %d%%|██ | 1/4 [00:02<00:07,  2.50s/it]",
		"a data set":            "Map (num_proc=8): %[1]d%%|█ | %[1]d000/52002 [00:10<00:50, 812.11 examples/s]",
		"an evaluation":         "Evaluating: %[1]d%%|█ | %[1]d/163 [00:10<00:50, 8.11it/s]",
		"a bar of anything":     "%[1]d%%|█ | %[1]d/163 [00:10<00:50, 8.11it/s]",
		"ping":                  "64 bytes from 10.0.0.7: icmp_seq=%d ttl=64 time=0.301 ms",
		"fio":                   "Jobs: 1 (f=1): [r(1)][%d.0%%][r=1204MiB/s][r=308k IOPS][eta 00m:05s]",
		"packet loss":           "step %d: 0.0%% packet loss, rtt min/avg/max 0.1/0.2/0.3 ms",
		"a table of nccl-tests": "     %d8576        262144     float     sum      -1    112.2    9.34   17.52      0",
		"an optimizer's trial": "Trial %d finished with value: 0.91 and parameters: {'lr': 0.001}. Best is trial 3, loss " +
			"0.2",
	} {
		var b strings.Builder
		for i := 10; i < 40; i++ {
			fmt.Fprintf(&b, line+"\n", i)
		}
		if r := runOf(b.String()); r != nil {
			t.Errorf("%s is taken for a training: %+v", name, r)
		}
	}
}

func TestDrift(t *testing.T) {
	var b strings.Builder
	for i := range 100 {
		ms := 500 + 2*i // a fifth longer in the end
		if i%20 == 10 {
			ms *= 3
		}
		fmt.Fprintf(&b, "step %d loss 2.0 step time %d ms\n", i, ms)
	}
	r := runOf(b.String())
	if r == nil || math.Abs(r.Drift-0.31) > 0.02 || r.Slow != 0.05 || r.First != 0 || r.Last != 99 {
		t.Errorf("%+v", r)
	}
}

// The clock of a bar tells how fast it goes, and not the mean that it prints, in which the first step still counts.
func TestBarClock(t *testing.T) {
	var b strings.Builder
	for i := 1; i <= 40; i++ {
		at := 90 + 10*i // the first step took 100 s
		if i > 20 {
			at += 45 // an evaluation
		}
		fmt.Fprintf(&b, "{'loss': 1.2}\n %d%%|█ | %d/400 [%d:%02d<12:34, %.2fs/it]\n", i/4, i, at/60, at%60,
			float64(at)/float64(i))
	}
	if r := runOf(b.String()); r == nil || r.Step.Median != 10 || r.Lines != 40 || r.LeftOut != 0 {
		t.Errorf("%+v", r)
	}
}

// A log of any length is kept in as much memory as a short one, and thinned out evenly.
func TestLong(t *testing.T) {
	var g Log
	for i := range 5 * maxKept {
		g.Take(fmt.Sprintf("step %d loss 2.0 step time %d ms", i, 500+i%2))
	}
	r := g.Run()
	if r == nil || len(g.lines) > maxKept || r.Last < 5*maxKept-16 || math.Abs(r.Step.Median-0.5) > 0.002 {
		t.Errorf("%d lines kept: %+v", len(g.lines), r)
	}
}

func TestFacts(t *testing.T) {
	l, ok := Parse("using world size: 64, data-parallel size: 4, context-parallel size: 1, tensor-model-parallel size: " +
		"8, " +
		"encoder-tensor-model-parallel size: 0, pipeline-model-parallel size: 2")
	if want := (Facts{World: 64, DP: 4, TP: 8, PP: 2, CP: 1}); !ok || l.Facts != want {
		t.Errorf("%+v; want %+v", l.Facts, want)
	}
	l, _ = Parse("  seq_length ...................................... 4096")
	if l.Sequence != 4096 {
		t.Errorf("%+v", l)
	}
	l, _ = Parse("rank 3 step 17 step time 1.24 s")
	if l.Rank != 3 || l.Number != 17 || l.Seconds != 1.24 {
		t.Errorf("%+v", l)
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range logs {
		f.Add(c.line(7))
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, _ := Parse(text)
		for _, v := range []float64{l.Seconds, l.Tokens, l.PerGPU, l.Samples, l.MFU, l.TFLOPS} {
			if !(v >= 0) || math.IsInf(v, 0) {
				t.Errorf("%+v", l)
			}
		}
		var g Log
		for range 5 {
			g.Take(text)
			g.Take("step 3 loss 1 " + text)
		}
		g.Run()
	})
}

// TestBarsAlone reads how fast a bar goes whose clock went on for long enough, and says that nothing else names a
// training.
func TestBarsAlone(t *testing.T) {
	bars := "  0%| | 10/900 [01:38<2:26:11,  9.86s/it]\n  0%| | 20/900 [03:17<2:23:02,  9.86s/it]\n"
	if r := runOf(bars); r == nil || !r.Bar || r.Step == nil || r.Step.Median != 9.9 {
		t.Errorf("two bars: %+v", r)
	}
	if r := runOf("loss 1.6\n" + bars); r == nil || r.Bar {
		t.Errorf("two bars and a loss: %+v", r)
	}
}

// TestNoStep: lines that name a loss and tokens/s and no step count where no others do.
func TestNoStep(t *testing.T) {
	const line = "{'loss': 1.5, 'learning_rate': 9e-06, 'epoch': 1.5, 'step_tokens_per_second': 18835.9}\n"
	if r := runOf(strings.Repeat(line, 5)); r == nil || r.Tokens != 18835.9 || r.Lines != 5 {
		t.Errorf("%+v", r)
	}
	if r := runOf(strings.Repeat("Training Epoch:[84/1500]\t loss=10.3\t lr=0.0001\t epoch_time=151.9\n", 5)); r != nil {
		t.Errorf("the time of an epoch is taken for that of a step: %+v", r)
	}
}

// Parse reads a line as it stands.
func Parse(text string) (Line, bool) { return new(Log).parse(text) }

// Older DeepSpeed names the step in the line before that of its timer; skipped steps count from the first such line.
func TestSkippedSteps(t *testing.T) {
	var g Log
	for i := 10; i <= 50; i += 10 {
		g.Take(fmt.Sprintf("[INFO] [logging.py:68:log_dist] [Rank 0] step=%d, skipped=%d, lr=[5e-05], mom=[(0.9, 0.999)]", i,
			7+i/2))
		g.Take(fmt.Sprintf("[INFO] [timer.py:198:stop] 0/%d, RunningAvgSamplesPerSec=230.5, CurrSamplesPerSec=227.5", i))
	}
	if r := g.Run(); r == nil || r.Samples != 227.5 || r.Last != 50 || r.Skipped != 20 || r.SkippedOf != 40 ||
		r.ScaleFell {
		t.Errorf("%+v", r)
	}
	for scale, fell := range map[string]bool{"1024.0": true, "1.0": false} { // bf16 has one of 1 from the beginning
		var g Log
		for i, s := range []string{scale, "1.0", "1.0"} {
			g.Take(fmt.Sprintf(" iteration %d/ 50 | elapsed time per iteration (ms): 500.0 | lm loss: 2.0 | loss scale: %s |",
				i+1, s))
		}
		if r := g.Run(); r == nil || r.ScaleFell != fell {
			t.Errorf("from %s: %+v", scale, r)
		}
	}
}

// What real logs were read wrongly for.
func TestMisread(t *testing.T) {
	const megatron = " iteration %[1]d/ 9 | elapsed time per iteration (ms): 75000.0 | lm loss: 2.0 | samples per " +
		"second: " +
		"27.2 |\n"
	var timers, again strings.Builder
	for i := range 6 {
		fmt.Fprintf(&timers, "[timer.py:260:stop] epoch=0/micro_step=%[1]d/global_step=%[1]d, CurrSamplesPerSec=31%[1]d\n"+
			megatron, i)
	}
	for run := range 2 {
		for i := range 7 {
			fmt.Fprintf(&again, "step %d loss 2.0 dt: %dms\n", 50*i, 200+run)
		}
	}
	const titan = "2026-01-20 18:24:09,732 - step: %d loss: 4.2 memory: 5.12GiB(10.78%%) tps: 2,0%02d mfu: 4.2%%\n"
	var before strings.Builder
	for i := range 5 {
		fmt.Fprintf(&before, titan, i+1, i)
	}
	for name, c := range map[string]struct {
		text string
		ok   func(r *Run) bool
	}{
		"two timers of one step":   {timers.String(), func(r *Run) bool { return r.Step.Median == 75 && r.Samples == 27.2 }},
		"two runs":                 {again.String(), func(r *Run) bool { return r.Again == 1 && r.Lines == 14 }},
		"torchtitan by its memory": {before.String(), func(r *Run) bool { return r.PerGPU == 2002 && r.Tokens == 0 }},
		"torchtitan told by a later line": {
			strings.Replace(before.String(), "memory: 5.12GiB(10.78%)", "", 1),
			func(r *Run) bool { return r.PerGPU == 2002 && r.Tokens == 0 },
		},
		"a scale among the arguments": {
			"  initial_loss_scale .... 4294967296\n  min_loss_scale .... 1.0\n" + timers.String(),
			func(r *Run) bool { return !r.ScaleFell },
		},
		"the first of two means": {
			fmt.Sprintf(megatron, 10) + strings.Replace(fmt.Sprintf(megatron, 20), "75000.0", "140.6", 1),
			func(r *Run) bool { return r.Step.Median == 0.1406 },
		},
		"the last line of Hugging Face's Trainer": {
			strings.Repeat("{'loss': 1.2, 'learning_rate': 2e-05, 'epoch': 0.1}\n", 4) + "{'train_runtime': 3600.1, " +
				"'train_samples_per_second': 12.3, 'train_steps_per_second': 0.2, 'train_loss': 1.2, 'epoch': 3.0}\n",
			func(r *Run) bool { return r.Step.Median == 5 && r.Samples == 12.3 && r.Lines == 1 },
		},
		"llm.c's main.log": {strings.Repeat("s:7 trl:3.0099 lr:0.000060 norm:0.30\n", 4), func(r *Run) bool {
			return r.Lines == 0 && r.Framework == "llm.c"
		}},
	} {
		if r := runOf(c.text); r == nil || !c.ok(r) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// A loss or a norm that is nan to the end is told, from its first step, and not one that a scale that is sought mends.
func TestNaN(t *testing.T) {
	const step = " iteration %d/ 90 | elapsed time per iteration (ms): 500.0 | loss scale: %d.0 | grad norm: %s | lm " +
		"loss: %s |\n"
	for _, c := range []struct {
		scale      int
		norm, loss [3]string
		nan        string
		lines      int
	}{
		{1, [3]string{"1.2", "nan", "nan"}, [3]string{"2.1", "2.0", "2.0"}, "norm", 2},
		{1024, [3]string{"nan", "nan", "nan"}, [3]string{"2.1", "2.0", "2.0"}, "", 0},
		{1024, [3]string{"1.2", "nan", "nan"}, [3]string{"2.1", "2.0", "nan"}, "loss", 1},
		{1, [3]string{"nan", "nan", "1.2"}, [3]string{"2.1", "2.0", "2.0"}, "", 0},
	} {
		var b strings.Builder
		for i := range 3 {
			fmt.Fprintf(&b, step, 7+i, c.scale, c.norm[i], c.loss[i])
		}
		if r := runOf(b.String()); r == nil || r.NaN != c.nan || r.NaNs != c.lines ||
			c.lines > 0 && r.NaNFrom != 10-c.lines || r.Step.P10 != 0.5 {
			t.Errorf("%+v: %+v", c, r)
		}
	}
	const titan = "[titan] - root - INFO - \x1b[31mstep: %d  \x1b[32mloss: 9.%[1]d  grad_norm: 2.5  memory: " +
		"71.20GiB(97.%[1]d0%%)  " +
		"\x1b[33mtps: 7,439  mfu: 10.3%%\n[titan] - root - WARNING - %[1]d CUDA memory allocation retries.\n"
	if r := runOf(lines.StripANSI(fmt.Sprintf(titan, 2) + fmt.Sprintf(titan, 3))); r == nil || r.Memory != 0.973 ||
		r.Retries != 3 || r.Lines != 2 || r.PerGPU != 7439 {
		t.Errorf("allocation retries: %+v", r)
	}
	dicts := strings.Repeat("{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 0.0002, 'epoch': 0.1}\n", 4)
	if r := runOf(dicts); r == nil || r.Lines != 0 || r.NaN != "norm" || r.NaNs != 4 || r.NaNFrom != -1 {
		t.Errorf("lines without a step: %+v", r)
	}
}

// Lines of a process each, and what all of them did together at the end.
func TestImages(t *testing.T) {
	text := "Step\tImg/sec\ttotal_loss\n"
	for i := 10; i <= 100; i += 10 {
		text += strings.Repeat(fmt.Sprintf("%d\timages/sec: 310.5 +/- 0.4 (jitter = 1.9)\t7.81%d\n", i, i), 2)
	}
	r := runOf(text + "total images/sec: 620.91\n")
	if r == nil || r.Samples != 620.91 || r.First != 10 || r.Last != 100 || r.Framework != "tf_cnn_benchmarks" {
		t.Errorf("%+v", r)
	}
}

// A loss that falls to exactly 0 is none; one of 0 beside others is of a rank that has none.
func TestFallen(t *testing.T) {
	line := "{'loss': %v, 'grad_norm': 1.4, 'learning_rate': 1e-05, 'epoch': 0.1}\n"
	for want, losses := range map[string][]float64{
		"zero": {3.5, 3.4, 0}, "": {2.1, 0, 2.2, 0, 2.0, 0}, " ": {0.2, 0.01, 0}, "  ": {0, 0, 0},
	} {
		text := ""
		for _, l := range losses {
			text += fmt.Sprintf(line, l)
		}
		if r := runOf(text); r == nil || r.NaN != strings.TrimSpace(want) {
			t.Errorf("%v: %+v", losses, r)
		}
	}
}
