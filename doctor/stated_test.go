package doctor

import (
	"strings"
	"testing"

	"busbar.dev/finding"
)

// A rate beside a machine that is named is compared with the prediction for it; it changes nothing of what is blamed.
func TestOfPredicted(t *testing.T) {
	for text, want := range map[string]string{
		"we get 12 GB/s busbw on 2 DGX H100":                                        "dgx-h100:2",
		"all_gather of 256 MB reaches 40 GB/s bus bandwidth on four dgx-a100 nodes": "256 MB all_gather on dgx-a100:4",
		"all_reduce_perf reports 100 GB/s busbw on dgx-h100:4, which is slow":       "dgx-h100:4",
		"we get 12 GB/s busbw on H100s":                                             "",
		"ib_write_bw gives 49 GB/s on 2 DGX H100":                                   "",
		"all_reduce on 2 DGX H100 is slow":                                          "",
		"we get 12 GB/s busbw on 99999 DGX H100":                                    "",
	} {
		r := say(t, text)
		got := ""
		for _, f := range r.Findings {
			if f.ID == "of-predicted" {
				if got = f.Cause; f.Severity != finding.Note {
					t.Errorf("%q: %v", text, f.Severity)
				}
			}
		}
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if p := confidenceOf(say(t, "we get 12 GB/s busbw on 2 DGX H100"), "quantity-expectation"); p >= 0.1 {
		t.Errorf("3%% of what is predicted is as expected, %.0f%% sure", 100*p)
	}
}
