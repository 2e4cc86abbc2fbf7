package query

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// TestCalibrateDevices: a log that numbers other GPUs than the first is of those, and contradicts other words.
func TestCalibrateDevices(t *testing.T) {
	log := func(devices ...int) string {
		text := "# nThread 1 nGpus 1 minBytes 8 maxBytes 1073741824 step: 64(factor) warmup iters: 5 iters: 20 validation: " +
			"1\n" +
			"#\n# Using devices\n"
		for r := range 4 {
			text += fmt.Sprintf("#  Rank  %d Group  0 Pid   10%d on  host%d device  %d [0x4%d] NVIDIA A100-SXM4-40GB\n", r, r,
				r/2,
				devices[r%2], r)
		}
		text += "#\n#                                                    out-of-place                       in-place\n" +
			"#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw " +
			"#wrong\n" +
			"#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
		for _, row := range []string{
			"8 2 float sum -1 38 0 0 0", "65536 16384 float sum -1 80 0.82 1.23 0",
			"4194304 1048576 float sum -1 1200 3.5 5.24 0",
			"1073741824 268435456 float sum -1 252000 4.26 6.39 0",
		} {
			_, in, _ := strings.Cut(row, "-1")
			text += "  " + row + in + "\n"
		}
		return text
	}
	env := Env{Files: fstest.MapFS{
		"far": {Data: []byte(log(2, 3))}, "near": {Data: []byte(log(0, 1))}, "one": {Data: []byte(log(0, 0))},
	}}
	before := func(file, devices string) float64 {
		t.Helper()
		d, err := Calibrate{
			Files: []string{file}, Cluster: "baskerville:2", Devices: devices, NCCL: "2.18", Op: "all_reduce",
		}.Run(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		return d.Before.Median
	}
	far, near := before("near", "2,3"), before("near", "")
	if before("far", "") != far || before("far", "2,3") != far || before("one", "") != near || far == near {
		t.Errorf("errors of %v on far GPUs and %v on near ones", far, near)
	}
	for _, c := range []struct {
		files   []string
		devices string
		want    string
	}{
		{[]string{"far"}, "0,1", "ran on devices [2 3], and devices says [0 1]"},
		{[]string{"far", "far"}, "", "far is given twice"},
	} {
		_, err := Calibrate{
			Files: c.files, Cluster: "baskerville:2", Devices: c.devices, NCCL: "2.18", Op: "all_reduce",
		}.Run(t.Context(), env)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v on %s: %v, want %q", c.files, c.devices, err, c.want)
		}
	}
}

// TestPredictContradicted: two values of one key, and curves of no collective or layout, are refused; a floor is that
// of the slower branch.
func TestPredictContradicted(t *testing.T) {
	_, err := Predict{Cluster: "dgx-a100:2", Set: []string{"gdr=off", "gdr=on"}, Size: "1G"}.Run(t.Context(), Env{})
	if err == nil || !strings.Contains(err.Error(), "gdr is set twice") {
		t.Error(err)
	}
	d, err := Predict{Cluster: "baskerville:2", Layout: "2x2", Size: "1G"}.Run(t.Context(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	if r := d.Rows[0]; len(r.Branches) != 2 ||
		float64(r.Floor) > float64(r.Branches[1].BusBW)*r.Branches[1].Time.Seconds()/
			r.Branches[1].High.Seconds()*1.001 {
		t.Errorf("floor of %v with branches %+v", r.Floor, r.Branches)
	}
}
