package workload

import (
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/internal/words"
)

// Split is how a model and its batch are spread over ranks.
type Split struct {
	DP int `json:"dp"` // replicas of the model
	TP int `json:"tp"` // ranks that share every layer
	PP int `json:"pp"` // stages of layers
	CP int `json:"cp"` // ranks that share every sequence
	EP int `json:"ep"` // ranks that share the experts
	// ETP is how many ranks share every expert's matrices; 0 is TP where replicas hold the experts, and 1 where these are
	// spread over tensor-parallel ranks too (Megatron-Core's folding: ep × etp divides dp × cp × tp).
	ETP int `json:"etp,omitempty"`
	// Chunks is how many stages of the pipeline a rank has (interleaving); 1 is none.
	Chunks int `json:"vpp"`
	// ZeRO is what data-parallel ranks divide among them: 1 the optimizer's state, 2 also
	// gradients, 3 also parameters (Rajbhandari et al. 2020). FSDP's full sharding is 3.
	ZeRO int `json:"zero"`
	// Shard is over how many ranks they divide it; 0 is all that hold the same parameters, and
	// ShardNode those of a node (Within says how many).
	Shard int `json:"shard"`
	// SeqParallel divides what lies between the tensor-parallel products too (Korthikanti et
	// al. 2022).
	SeqParallel bool `json:"sequence_parallel"`
	// Order is which ranks sit beside each other, the nearest first; none is TensorDataPipeline.
	Order Order `json:"order,omitempty"`
}

// Order is how ranks are numbered, the fastest digit first, by Megatron-LM's names.
type Order string

// Orders.
const (
	TensorDataPipeline Order = "tp-cp-dp-pp" // stages of a pipeline are farthest apart
	TensorPipelineData Order = "tp-cp-pp-dp" // replicas are
)

// Strides are from a rank to the next one of its tensor-parallel, context-parallel and
// data-parallel group and of its pipeline.
func (s Split) Strides() (tp, cp, dp, pp int) {
	s = s.filled()
	if s.Order == TensorPipelineData {
		return 1, s.TP, s.TP * s.CP * s.PP, s.TP * s.CP
	}
	return 1, s.TP, s.TP * s.CP, s.TP * s.CP * s.DP
}

// filled has 1 where nothing is said.
func (s Split) filled() Split {
	// One by one: a search asks millions of times.
	s.DP, s.TP, s.PP, s.CP, s.EP, s.Chunks = max(s.DP, 1), max(s.TP, 1), max(s.PP, 1), max(s.CP, 1), max(s.EP, 1),
		max(s.Chunks, 1)
	if s.ETP == 0 {
		if s.ETP = s.TP; (s.DP*s.CP)%s.EP != 0 {
			s.ETP = 1
		}
	}
	if s.Shard == 0 || s.Shard > s.DP*s.CP {
		s.Shard = s.DP * s.CP
	}
	return s
}

// ExpertTensor is how many ranks share every expert's matrices.
func (s Split) ExpertTensor() int { return s.filled().ETP }

// Ranks is how many there are.
func (s Split) Ranks() int { s = s.filled(); return s.DP * s.TP * s.PP * s.CP }

// String is the split in the words of the command line: what frameworks choose otherwise where nobody says (Fill) is
// said, so that it is read as the same.
func (s Split) String() string {
	s = s.filled()
	text := fmt.Sprintf("dp=%d,tp=%d,pp=%d", s.DP, s.TP, s.PP)
	for _, x := range []struct {
		name string
		v    int
	}{{"cp", s.CP}, {"ep", s.EP}, {"vpp", s.Chunks}} {
		if x.v > 1 {
			text += fmt.Sprintf(",%s=%d", x.name, x.v)
		}
	}
	if s.EP > 1 && (s.TP > 1 || s.ETP != s.TP) {
		text += fmt.Sprintf(",etp=%d", s.ETP)
	}
	if s.DP*s.CP > 1 || s.ZeRO > 0 {
		text += fmt.Sprintf(",zero=%d", s.ZeRO)
	}
	if s.ZeRO > 0 && s.Shard < s.DP*s.CP {
		text += fmt.Sprintf(",shard=%d", s.Shard)
	}
	switch {
	case s.SeqParallel:
		text += ",sp=1"
	case s.TP > 1:
		text += ",sp=0"
	}
	return text
}

// ShardNode is "shard=node": as many as a node has of those that hold the same parameters.
const ShardNode = -1

// Within is the split on nodes of so many GPUs: what was left to them is a number.
func (s Split) Within(gpus int) (Split, error) {
	if s.Shard != ShardNode {
		return s, nil
	}
	each := max(s.TP, 1)
	if s.Order == TensorPipelineData {
		each *= max(s.PP, 1)
	}
	if gpus%each != 0 {
		return s,
			fmt.Errorf("shard=node: the %d GPUs of a node do not hold whole groups of %d; give shard a number", gpus, each)
	}
	s.Shard = gpus / each
	return s, nil
}

// maxDegree bounds a degree of parallelism.
const maxDegree = 1 << 21

// ParseSplit reads dp=8,tp=4,pp=2 with cp, ep, vpp, zero, shard and sp. What is not said is
// left 0, and dp follows from the number of ranks.
func ParseSplit(text string) (Split, error) {
	var s Split
	sp := 0
	fields := map[string]*int{
		"dp": &s.DP, "tp": &s.TP, "pp": &s.PP, "cp": &s.CP, "ep": &s.EP, "etp": &s.ETP, "vpp": &s.Chunks, "zero": &s.ZeRO,
		"shard": &s.Shard, "sp": &sp,
	}
	if strings.TrimSpace(text) == "" {
		return s, nil
	}
	said := map[*int]bool{}
	for _, part := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(part, "=")
		to, ok := fields[strings.ToLower(strings.TrimSpace(key))]
		if !ok {
			return s, fmt.Errorf("parallel %q: %q is unknown; expected dp, tp, pp, cp, ep, etp, vpp, zero, shard or sp with a "+
				"number (FSDP is zero=3, DDP is zero=0)", text, key)
		}
		if to == &s.Shard && strings.TrimSpace(value) == "node" {
			s.Shard = ShardNode
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil || n < 0 || n > maxDegree {
			return s, fmt.Errorf("parallel %q: %s is %q; expected a whole number up to %d", text, key, value, maxDegree)
		}
		switch {
		case said[to]:
			return s, fmt.Errorf("parallel %q: %s is said twice", text, key)
		case n == 0 && to != &s.ZeRO && to != &sp:
			return s, fmt.Errorf("parallel %q: %s is 0; expected at least 1, or leave it out", text, key)
		}
		*to, said[to] = n, true
	}
	s.SeqParallel = sp > 0
	switch {
	case sp > 1:
		return s, fmt.Errorf("parallel %q: sp=%d; expected 0 or 1", text, sp)
	case s.ZeRO > 3:
		return s, fmt.Errorf("parallel %q: zero=%d; expected 0 to 3", text, s.ZeRO)
	}
	return s, nil
}

// On is the split over so many ranks: replicas fill what the other degrees leave.
func (s Split) On(ranks int) (Split, error) {
	if s.Shard < 0 {
		return s, fmt.Errorf("shard=node, and it is not known how many GPUs a node has; give shard a number")
	}
	each := max(s.TP, 1) * max(s.PP, 1) * max(s.CP, 1)
	if s.DP == 0 {
		if ranks%each != 0 {
			return s, fmt.Errorf("%s cannot be divided evenly by tp × pp × cp = %d", words.Plural(ranks, "GPU"), each)
		}
		s.DP = ranks / each
	}
	s = s.filled()
	if s.Ranks() != ranks {
		return s, fmt.Errorf("%s takes %s, and there are %d", s, words.Plural(s.Ranks(), "GPU"), ranks)
	}
	return s, nil
}

// Check reports a split that a model does not allow.
func (s Split) Check(m *Model) error {
	s = s.filled()
	d := m.Dims.filled()
	switch {
	case m.Replicated() && s.TP*s.PP*s.CP*s.EP > 1:
		return fmt.Errorf("%s is trained by replicas of the whole model; leave tp, pp, cp and ep out (dp and zero remain)",
			m.Name)
	case m.Replicated() && s.DP%s.Shard == 0:
		return nil
	case int64(s.TP) > d.Heads || d.Heads%int64(s.TP) != 0:
		return fmt.Errorf("tp=%d does not divide the %d heads of %s", s.TP, d.Heads, m.Name)
	case int64(s.PP*s.Chunks) > d.Layers+Slots:
		return fmt.Errorf("pp=%d with %d chunks each is more than the %d layers of %s with its embedding and loss", s.PP,
			s.Chunks, d.Layers, m.Name)
	case s.Chunks > 1 && s.PP == 1:
		return fmt.Errorf("vpp=%d without a pipeline; give pp", s.Chunks)
	case (s.DP*s.CP)%s.Shard != 0:
		return fmt.Errorf("shard=%d does not divide the %d ranks that hold the same parameters", s.Shard, s.DP*s.CP)
	case s.EP > 1 && d.Experts == 0:
		return fmt.Errorf("ep=%d: %s has no experts", s.EP, m.Name)
	case s.EP > 1 && d.Experts%int64(s.EP) != 0:
		return fmt.Errorf("ep=%d does not divide the %d experts of %s", s.EP, d.Experts, m.Name)
	case s.ETP != s.TP && s.ETP != 1:
		return fmt.Errorf("etp=%d; expected 1, or tp=%d", s.ETP, s.TP)
	case (s.DP*s.CP*s.TP)%(s.EP*s.ETP) != 0:
		return fmt.Errorf("ep=%d with etp=%d does not divide the %d ranks of dp × cp × tp, which share the experts", s.EP,
			s.ETP, s.DP*s.CP*s.TP)
	case s.Order != "" && s.Order != TensorDataPipeline && s.Order != TensorPipelineData:
		return fmt.Errorf("order %q; expected %s or %s", s.Order, TensorDataPipeline, TensorPipelineData)
	case s.Order == TensorPipelineData && !even(s.Shard, s.CP), s.Order == TensorPipelineData && !even(s.EP, s.CP):
		return fmt.Errorf("order %s with cp=%d: shard=%d and ep=%d should each be a multiple of cp or divide it", s.Order,
			s.CP, s.Shard, s.EP)
	}
	return nil
}

// even reports whether one of two numbers divides the other.
func even(a, b int) bool { return a%b == 0 || b%a == 0 }
