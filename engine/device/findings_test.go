package device

import (
	"encoding/json"
	"strings"
	"testing"

	"busbar.dev/finding"
)

// h200 is what NVML said of an H200 on 2026-11-16: at work, with its clocks locked to 900 MHz, and with a limit of 250
// W.
const (
	h200Locked  = `{"index":0,"name":"NVIDIA H200","sm_mhz":900,"sm_max_mhz":1980,"power_W":170.7,"power_limit_W":700,"power_default_W":700,"temperature_C":44,"slowdown_C":89,"ecc":true,"ecc_uncorrected":0,"remap_pending":false,"remap_failed":false,"pcie_generation":5,"pcie_max_generation":5,"pcie_width":16,"pcie_max_width":16,"fabric":"not supported","persistence":true,"utilization_percent":100}`
	h200Limited = `{"index":0,"name":"NVIDIA H200","sm_mhz":555,"sm_max_mhz":1980,"throttle":["software power cap"],"power_W":250.1,"power_limit_W":250,"power_default_W":700,"temperature_C":42,"slowdown_C":89,"ecc":true,"persistence":true,"utilization_percent":100}`
	h200Idle    = `{"index":0,"name":"NVIDIA H200","sm_mhz":345,"sm_max_mhz":1980,"power_W":80.3,"power_limit_W":700,"power_default_W":700,"temperature_C":35,"slowdown_C":89,"ecc":true,"ecc_uncorrected":0,"remap_pending":false,"remap_failed":false,"pcie_generation":5,"pcie_max_generation":5,"pcie_width":16,"pcie_max_width":16,"pcie_replays":1,"fabric":"not supported","persistence":true,"utilization_percent":0}`
	h200Capped  = `{"index":0,"name":"NVIDIA H200","sm_mhz":1500,"sm_max_mhz":1980,"throttle":["software power cap"],"power_W":557,"power_limit_W":700,"power_default_W":700,"utilization_percent":100}`
)

func TestFindings(t *testing.T) {
	for _, tt := range []struct {
		name, state string
		want        string // of the only finding; "" for none
		severity    finding.Severity
	}{
		{"idle", h200Idle, "", 0},
		{"at its own power limit", h200Capped, "", 0}, // as every one is that multiplies large matrices
		{"clocks locked", h200Locked, "900 of 1980 MHz under load", finding.Warn},
		{
			"power limited", h200Limited, "may take 250 W only; 700 W is its default, and it runs at 555 of 1980 MHz",
			finding.Warn,
		},
		{"lost", `{"index":3,"lost":"GPU is lost"}`, "GPU 3 of n1 does not answer: GPU is lost", finding.Error},
		{"ecc", `{"ecc_uncorrected":2}`, "2 uncorrectable memory errors", finding.Error},
		{"remap", `{"remap_pending":true}`, "at its next reset", finding.Warn},
		{"remap failed", `{"remap_failed":true}`, "no spare rows", finding.Error},
		{"pages", `{"pages_retired":60,"retire_pending":false}`, "60 retired pages", finding.Error},
		{"few pages", `{"pages_retired":59}`, "", 0},
		{"page pending", `{"retire_pending":true}`, "until its driver is loaded anew", finding.Warn},
		{
			"thermal", `{"throttle":["hardware thermal slowdown"],"temperature_C":91}`, "hardware thermal slowdown (91 °C)",
			finding.Error,
		},
		{"hot", `{"temperature_C":87,"slowdown_C":89}`, "87 °C; it slows down at 89 °C", finding.Warn},
		{"lanes", `{"pcie_width":8,"pcie_max_width":16}`, "8 PCIe lanes of 16", finding.Error},
		{"generation, idle", `{"pcie_generation":1,"pcie_max_generation":5,"utilization_percent":0}`, "", 0},
		{
			"generation", `{"pcie_generation":3,"pcie_max_generation":5,"utilization_percent":99}`, "generation 3 under load",
			finding.Warn,
		},
		{"nvlink", `{"nvlinks":[{"link":0,"active":true},{"link":1,"active":false}]}`, "1 NVLink down: 1", finding.Error},
		{"no nvlink wired", `{"nvlinks":[{"link":0,"active":false}]}`, "", 0},
		{"nvlink errors", `{"nvlinks":[{"link":0,"active":true,"errors":7}]}`, "counted 7 errors", finding.Note},
		{"fabric", `{"fabric":"in progress"}`, "not part of the NVLink fabric: in progress", finding.Error},
		{"persistence", `{"persistence":false}`, "persistence mode is off", finding.Note},
		{"ecc off", `{"ecc":false}`, "ECC is off", finding.Note},
	} {
		var s State
		if err := json.Unmarshal([]byte(tt.state), &s); err != nil {
			t.Fatal(tt.name, err)
		}
		list := Findings("n1", []State{s})
		switch {
		case tt.want == "" && len(list) > 0:
			t.Errorf("%s: %+v", tt.name, list)
		case tt.want != "" && (len(list) != 1 || !strings.Contains(list[0].Text, tt.want) ||
			list[0].Severity != tt.severity || list[0].Fix == "" || list[0].Nodes[0] != "n1"):
			t.Errorf("%s: %+v", tt.name, list)
		}
	}
}
