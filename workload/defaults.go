package workload

import (
	"cmp"
	"math"
)

// Complete fills what a job on so many ranks leaves open: the model's own sequences, a global batch of which every rank
// has whole micro-batches, and a micro-batch that divides it.
func (j *Job) Complete(ranks int) {
	j.Seq = cmp.Or(j.Seq, j.Model.Seq)
	drawn := j.Model.Pictures() && j.Model.attends()
	if n := int64(max(1, ranks)); j.GlobalBatch == 0 {
		each, micro := DefaultGlobalBatch(j.Seq, ranks)/n, max(1, j.MicroBatch)
		if drawn {
			each = drawnPictures
		}
		j.GlobalBatch = (each + micro - 1) / micro * micro * n
	}
	if j.MicroBatch == 0 {
		j.MicroBatch = DefaultMicroBatch(j.Seq, int64(j.Split.filled().DP), j.GlobalBatch)
		if drawn {
			j.MicroBatch = min(j.MicroBatch, drawnPictures)
		}
	}
}

// microTokens is how many tokens a micro-batch has by default: the published runs of GPT-3 and of Megatron-LM's models
// compute one sequence of 2,048 at once.
const microTokens = 2048

// fewTokens is what no sequence has less of: it is a picture, of which a GPU computes 256 at once (NVIDIA's ResNet-50;
// Goyal et al. 2017 have as many on eight).
const fewTokens = 8

// drawnPictures is how many pictures of a U-Net with attention a GPU of 80 GiB computes at once.
const drawnPictures = 4

// DefaultMicroBatch is the micro-batch of a replica of so many; it divides what a global batch gives each, where there
// is one.
func DefaultMicroBatch(seq, replicas, global int64) int64 {
	b := max(1, microTokens/max(fewTokens, seq))
	for global > 0 && b > 1 && global%(b*max(1, replicas)) != 0 {
		b--
	}
	return b
}

// Tokens of a step by default: defaultTokens in all, of the order of GPT-3's 3.2 million (Brown et al. 2020, table 2.1)
// and Llama 3's 4 to 16 million (Grattafiori et al. 2024, section 3.4.1), but on few GPUs at most rankTokens of each,
// so that a step takes seconds: nanoGPT trains GPT-2 by 61,440 tokens on each of eight.
const (
	defaultTokens = 4 << 20
	rankTokens    = 64 << 10
)

// DefaultBatchRule says what DefaultGlobalBatch does.
const DefaultBatchRule = "about 65,536 tokens per GPU, at most 4 million in all or a sequence per GPU"

// DefaultGlobalBatch is about as many sequences as have the tokens of a step by default: every rank gets 2ᵏ or
// 3·2ᵏ of them, so that every split and many micro-batches divide it.
func DefaultGlobalBatch(seq int64, ranks int) int64 {
	n := int64(max(1, ranks))
	if seq < fewTokens {
		return DefaultMicroBatch(seq, n, 0) * n
	}
	want, best := float64(max(1, min(defaultTokens, rankTokens*n)/seq))/float64(n), int64(1)
	for k := int64(1); float64(k) < 2*want; k *= 2 {
		for _, each := range []int64{k, 3 * k} {
			if math.Abs(math.Log(float64(each)/want)) < math.Abs(math.Log(float64(best)/want)) {
				best = each
			}
		}
	}
	return best * n
}
