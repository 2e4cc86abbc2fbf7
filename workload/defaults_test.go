package workload

import "testing"

// TestDefaultGlobalBatch: a batch that nobody named has many divisors and about four million tokens, or 65,536 of every
// rank where that is less, whatever the sequences and ranks.
func TestDefaultGlobalBatch(t *testing.T) {
	for _, seq := range []int64{128, 197, 384, 512, 1000, 1024, 2048, 4096, 131072} {
		for ranks := 1; ranks <= 200; ranks++ {
			b := DefaultGlobalBatch(seq, ranks)
			each := b / int64(ranks)
			odd := each
			for odd%2 == 0 {
				odd /= 2
			}
			if b%int64(ranks) != 0 || odd > 3 {
				t.Fatalf("sequences of %d on %d ranks: %d, %d of a rank; expected 2ᵏ or 3·2ᵏ of every rank", seq, ranks, b,
					each)
			}
			want := float64(min(defaultTokens, ranks*rankTokens))
			if tokens := float64(b * seq); tokens < 0.7*want || tokens > 1.5*want && each > 1 {
				t.Fatalf("sequences of %d on %d ranks: %d are %.3g tokens", seq, ranks, b, tokens)
			}
		}
	}
	if b := DefaultGlobalBatch(4096, 64); b != 1024 {
		t.Errorf("sequences of 4096 on 64 ranks: %d; expected 1024", b)
	}
	if b := DefaultGlobalBatch(8192, 4); b != 32 {
		t.Errorf("sequences of 8192 on 4 ranks: %d; expected 32", b)
	}
	if b := DefaultGlobalBatch(1, 8); b != 2048 {
		t.Errorf("pictures on 8 ranks: %d; expected 256 of each", b)
	}
}
