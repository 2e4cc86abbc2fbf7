package doctor

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"busbar.dev/finding"
)

// textOf is what is printed of a report.
func textOf(t *testing.T, r *Report) string {
	t.Helper()
	var b strings.Builder
	if err := (Text{}).Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A job whose own setting switches InfiniBand off is warned where InfiniBand is seen; without a sign of it there is a
// note, the cause before what follows from it, and the first line does not say that all is well.
func TestInfiniBandOff(t *testing.T) {
	log := func(second string) string {
		text := ""
		for _, host := range []string{"n1", "n2"} {
			for _, say := range []string{
				"NCCL_IB_DISABLE set by environment to 1.", "NET/Socket : Using [0]eno1:10.0.0.1<0>" + second,
				"Using network Socket",
			} {
				text += host + ":7:9 [0] NCCL INFO " + say + "\n"
			}
		}
		return text
	}
	for name, tt := range map[string]struct {
		second string
		sev    finding.Severity
	}{
		"ib0": {" [1]ib0:10.2.0.1<0>", finding.Warn}, "by its slot": {" [1]ibp65s0:10.2.0.1<0>", finding.Warn},
		"Ethernet only": {"", finding.Note}, "named almost so": {" [1]ibmgmt:10.2.0.1<0>", finding.Note},
	} {
		r := examine(t, log(tt.second))
		if len(r.Findings) != 2 || r.Findings[0].ID != "ib-disabled" || r.Findings[0].Severity != tt.sev ||
			r.Findings[1].ExplainedBy != "ib-disabled" {
			t.Errorf("%s: %+v", name, r.Findings)
		}
		if out := textOf(t, r); strings.Contains(out, "No problems found") ||
			tt.sev == finding.Note && !strings.Contains(out, "No errors or warnings. 2 notes.") {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// What nvidia-smi says of retired pages and remapped rows is told, as text and as XML.
func TestMemoryOfGPUs(t *testing.T) {
	const plain = "==============NVSMI LOG==============\nAttached GPUs : 2\nGPU 00000000:41:00.0\n    Retired Pages\n" +
		"        Single Bit ECC         : 31\n        Double Bit ECC         : 30\n" +
		"        Pending Page Blacklist : No\nGPU 00000000:81:00.0\n    Retired Pages\n" +
		"        Single Bit ECC         : N/A\n        Pending Page Blacklist : Yes\n    Remapped Rows\n" +
		"        Pending                : Yes\n        Remapping Failure Occurred : Yes\n"
	xml := `<nvidia_smi_log><attached_gpus>2</attached_gpus><gpu id="00000000:41:00.0"><retired_pages>` +
		"<multiple_single_bit_retirement><retired_count>31</retired_count></multiple_single_bit_retirement>" +
		"<double_bit_retirement><retired_count>30</retired_count></double_bit_retirement>" +
		`</retired_pages></gpu><gpu id="00000000:81:00.0"><retired_pages><pending_retirement>Yes</pending_retirement>` +
		"</retired_pages><remapped_rows><remapped_row_pending>Yes</remapped_row_pending>" +
		"<remapped_row_failure>Yes</remapped_row_failure></remapped_rows></gpu></nvidia_smi_log>"
	for _, text := range []string{plain, xml} {
		var got []string
		for _, f := range examine(t, text).Findings {
			got = append(got, f.Severity.String()+" "+f.ID+" "+f.Where)
		}
		slices.Sort(got)
		if want := []string{
			"error gpu-pages-retired gpu0", "error gpu-remap-failed gpu1", "warn gpu-remap-pending gpu1",
			"warn gpu-retire-pending gpu1",
		}; !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	}
	if f := examine(t, strings.ReplaceAll(strings.ReplaceAll(plain, "3", "2"), "Yes", "No")).Findings; finding.Serious(f) {
		t.Errorf("%+v", f)
	}
}

// A finding about a GPU names it where the lines do.
func TestNamedGPU(t *testing.T) {
	q := "GPU 00000000:41:00.0\n        HW Slowdown                       : Not Active\nGPU 00000000:81:00.0\n        " +
		"HW Slowdown                       : Active\n            HW Thermal Slowdown           : Active\n"
	if f := examine(t, q).Findings; len(f) == 0 || f[0].ID != "gpu-throttled" || f[0].Where != "GPU 00000000:81:00.0" {
		t.Errorf("%+v", f)
	}
	oom := "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 2 has a total capacity of 23.64 " +
		"GiB of which 1.21 GiB is free. Of the allocated memory 19.80 GiB is allocated by PyTorch, and 2.05 GiB is " +
		"reserved by PyTorch but unallocated. " +
		"If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid " +
		"fragmentation.\n"
	for text, want := range map[string][2]string{
		"[rank6]: " + oom: {"GPU 2 of rank 6 ran out", "Smaller micro-batch"},
		oom:               {"GPU 2 ran out", "Smaller micro-batch"},
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB\n": {
			"A GPU ran out", "Smaller micro-batch",
		},
	} {
		f := examine(t, text).Findings
		if i := slices.IndexFunc(f, func(f finding.Finding) bool { return f.ID == "out-of-memory" }); i < 0 ||
			!strings.HasPrefix(f[i].Title, want[0]) || !strings.Contains(f[i].Fix, want[1]) {
			t.Errorf("%s: %+v", text, f)
		}
	}
}

// TestKnownFailure: a failure whose own line says no more than that it happened is the question: what decides its cause
// is asked for, and the answer is short.
func TestKnownFailure(t *testing.T) {
	r := examine(t, "[rank1]:[E] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, "+
		"OpType=ALLREDUCE, NumelIn=1, Timeout(ms)=600000) ran for 600001 milliseconds before timing out.\n")
	out := textOf(t, r)
	if !r.Undecided || len(r.Findings) <= leading || r.Findings[0].ID == "collective-timeout" ||
		!strings.Contains(out, "The cause is not known; collect these") || strings.Count(out, "run: ") != leading ||
		!strings.Contains(out, "It shows: A collective timed out") || strings.Count(out, "\n") > answerLines {
		t.Errorf("%v: %s", ids(r), out)
	}
}

// Steps that are skipped are a warning beside the rate; the few with which the scale of the loss is sought are none.
func TestSkippedSteps(t *testing.T) {
	for by, want := range map[int]string{4: "training-rate training-overflow", 0: "training-rate"} {
		text := ""
		for i := 10; i <= 60; i += 10 {
			text += fmt.Sprintf("[INFO] [logging.py:68:log_dist] [Rank 0] step=%d, skipped=%d, lr=[5e-05]\n[INFO] "+
				"[timer.py:198:stop] 0/%d, RunningAvgSamplesPerSec=91.5, CurrSamplesPerSec=90.5, MemAllocated=1.5GB\n", i,
				9+by*i/10, i)
		}
		var got []string
		for _, f := range examine(t, text).Findings {
			got = append(got, f.ID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%d: %q", by, got)
		}
	}
}
