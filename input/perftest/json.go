package perftest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"busbar.dev/unit"
)

// report is what the programs write with --out_json: the last size of a run.
type report struct {
	Info *struct {
		Test   string `json:"test"`
		Device string `json:"Device"`
		QPs    int    `json:"Number_of_qps"`
	} `json:"test_info"`
	Results *struct {
		Size    int64   `json:"MsgSize"`
		Iters   int64   `json:"n_iterations"`
		Average float64 `json:"BW_average"`
		Rate    float64 `json:"MsgRate"` // millions of messages a second
		Typical float64 `json:"t_typical"`
		Mean    float64 `json:"t_avg"`
		Tail    float64 `json:"percentile_99"`
	} `json:"results"`
}

const maxJSON = 1 << 16

// asText makes a test's name that of the text: RDMA_Write BW.
var asText = strings.NewReplacer("_Bidirectional", " Bidirectional", "_Post_List", " Post List", "_BW", " BW",
	"_Latency", " Latency")

func matchJSON(data []byte) bool {
	return len(data) < maxJSON && bytes.Contains(data, []byte(`"test_info"`)) && bytes.Contains(data, []byte(`"MsgSize"`))
}

// readJSON reads one report. Where only a rate was asked for, the size is missing, and with --raw_qos a key is
// unquoted: then there is no table.
func readJSON(data []byte) []Table {
	var r report
	if !matchJSON(data) || json.Unmarshal(data, &r) != nil || r.Info == nil || r.Results == nil {
		return nil
	}
	x := r.Results
	for _, v := range []float64{float64(x.Size), float64(x.Iters), x.Average, x.Rate, x.Typical, x.Mean, x.Tail} {
		if !(v >= 0 && v < 1e12) { // negative figures are a known fault of long runs
			return nil
		}
	}
	clip := func(s string) string { return strings.ToValidUTF8(s[:min(len(s), 64)], "?") }
	test := asText.Replace(strings.TrimSuffix(r.Info.Test, "_Test"))
	t := Table{
		Line: 1, Test: clip(test), Device: clip(r.Info.Device), QPs: max(r.Info.QPs, 0),
		Both: strings.Contains(test, "Bidirectional"), Latency: x.Average == 0,
	}
	// The report does not name the unit of its rates; messages a second times their size does.
	scale := float64(1 << 20)
	if moved := float64(x.Size) * x.Rate * 1e6; moved > 0 &&
		math.Abs(math.Log(x.Average*1e9/8/moved)) < math.Abs(math.Log(x.Average*scale/moved)) {
		scale = 1e9 / 8
	}
	if t.Both {
		scale /= 2
	}
	row := Row{
		Line: 1, Size: unit.Bytes(x.Size), Iters: int(min(x.Iters, math.MaxInt32)), Rate: unit.Rate(x.Average * scale),
		Typical: unit.Micros(cmp.Or(x.Typical, x.Mean)), Tail: unit.Micros(x.Tail),
	}
	if row.Rate == 0 && row.Typical == 0 {
		return nil
	}
	if row.Text = fmt.Sprintf("%s: %s", row.Size, row.Rate); t.Latency {
		row.Text = fmt.Sprintf("%s: %s", row.Size, row.Typical)
	}
	t.Rows = []Row{row}
	return []Table{t}
}
