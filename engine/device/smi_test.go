package device

import (
	"fmt"
	"strings"
	"testing"
)

// smi is a sample of our own, with the elements that nvidia-smi -q -x of drivers 535 to 580 prints, for one GPU and a
// second one.
func smi(edit ...string) string {
	gpu := `<gpu id="00000000:00:06.0"><product_name>NVIDIA H200</product_name><persistence_mode>Enabled</persistence_mode><uuid>GPU-1</uuid>
<pci><pci_bus_id>00000000:00:06.0</pci_bus_id><pci_gpu_link_info><pcie_gen><max_link_gen>5</max_link_gen><current_link_gen>5</current_link_gen></pcie_gen>
<link_widths><max_link_width>16x</max_link_width><current_link_width>16x</current_link_width></link_widths></pci_gpu_link_info><replay_counter>1</replay_counter></pci>
<clocks_event_reasons><clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle><clocks_event_reason_hw_thermal_slowdown>Not Active</clocks_event_reason_hw_thermal_slowdown></clocks_event_reasons>
<fb_memory_usage><total>143771 MiB</total><used>0 MiB</used></fb_memory_usage><utilization><gpu_util>0 %</gpu_util></utilization>
<ecc_mode><current_ecc>Enabled</current_ecc></ecc_mode>
<ecc_errors><volatile><sram_correctable>0</sram_correctable><sram_uncorrectable_parity>0</sram_uncorrectable_parity><dram_uncorrectable>0</dram_uncorrectable></volatile><aggregate><dram_uncorrectable>7</dram_uncorrectable></aggregate></ecc_errors>
<remapped_rows><remapped_row_corr>0</remapped_row_corr><remapped_row_unc>0</remapped_row_unc><remapped_row_pending>No</remapped_row_pending><remapped_row_failure>No</remapped_row_failure></remapped_rows>
<temperature><gpu_temp>35 C</gpu_temp><gpu_temp_slow_threshold>89 C</gpu_temp_slow_threshold></temperature>
<gpu_power_readings><instant_power_draw>80.30 W</instant_power_draw><current_power_limit>700.00 W</current_power_limit><default_power_limit>700.00 W</default_power_limit></gpu_power_readings>
<clocks><sm_clock>345 MHz</sm_clock></clocks><max_clocks><sm_clock>1980 MHz</sm_clock></max_clocks><fabric><state>Completed</state><status>Success</status></fabric></gpu>`
	for i := 0; i+1 < len(edit); i += 2 {
		if !strings.Contains(gpu, edit[i]) {
			panic(edit[i])
		}
		gpu = strings.ReplaceAll(gpu, edit[i], edit[i+1])
	}
	return `<?xml version="1.0" ?><!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd"><nvidia_smi_log><driver_version>580.1</driver_version>` + gpu + `<gpu id="00000000:00:07.0"><product_name>NVIDIA H200</product_name><temperature><gpu_temp>N/A</gpu_temp></temperature></gpu></nvidia_smi_log>`
}

func TestReadSMI(t *testing.T) {
	list, err := ReadSMI([]byte(smi()))
	if err != nil || len(list) != 2 || len(Findings("n1", list)) > 0 {
		t.Fatalf("%+v %v %v", list, err, Findings("n1", list))
	}
	s := list[0]
	if s.Name != "NVIDIA H200" || s.PCI != "00000000:00:06.0" || *s.SM != 345 || *s.MaxSM != 1980 || *s.Power != 80.3 ||
		*s.PCIeWidth != 16 || *s.Uncorrected != 0 || *s.RemapPending || *s.Total != 143771<<20 || s.Fabric != "completed" ||
		!*s.Persistent || *s.Replays != 1 {
		t.Errorf("%+v", s)
	}
	if o := list[1]; o.Index != 1 || o.Temperature != nil || o.ECC != nil || o.SM != nil {
		t.Errorf("what is not told: %+v", o)
	}
	for edit, want := range map[[2]string]string{
		{
			"<dram_uncorrectable>0<", "<dram_uncorrectable>2<",
		}: "2 uncorrectable memory errors",
		{
			"<remapped_row_pending>No<", "<remapped_row_pending>Yes<",
		}: "at its next reset",
		{
			"<remapped_rows>", "<retired_pages><multiple_single_bit_retirement><retired_count>20</retired_count>" +
				"</multiple_single_bit_retirement><double_bit_retirement><retired_count>41</retired_count>" +
				"</double_bit_retirement><pending_blacklist>No</pending_blacklist></retired_pages><remapped_rows>",
		}: "61 retired pages",
		{
			"<current_link_width>16x<", "<current_link_width>8x<",
		}: "8 PCIe lanes of 16",
		{
			"hw_thermal_slowdown>Not Active<", "hw_thermal_slowdown>Active<",
		}: "hardware thermal slowdown (35 °C)",
		{
			"<current_power_limit>700.00 W<", "<current_power_limit>300.00 W<",
		}: "may take 300 W only",
		{
			"<state>Completed</state>", "<state>In Progress</state>",
		}: "not part of the NVLink fabric: in progress",
		{
			"<product_name>NVIDIA H200<", "<product_name>GPU is lost<",
		}: "does not answer: GPU is lost",
		{"clocks_event_reason", "clocks_throttle_reason"}:                                                      "",
		{"<gpu_power_readings><instant_power_draw>80.30 W<", "<gpu_power_readings><instant_power_draw>[N/A]<"}: "",
		{
			"<persistence_mode>Enabled<", "<persistence_mode>Disabled<",
		}: "persistence mode is off",
		{"<gpu_temp>35 C<", "<gpu_temp>88 C<"}: "is at 88 °C; it slows down at 89 °C",
		{
			"<state>Completed</state><status>Success</status>", "<state>Completed</state><status>Unrecognized</status>",
		}: "completed: Unrecognized",
	} {
		pair := []string{edit[0], edit[1]}
		if edit[0] == "<product_name>NVIDIA H200<" {
			pair = append(pair, "<uuid>GPU-1<", "<uuid>GPU is lost<")
		}
		edited := smi(pair...)
		list, err := ReadSMI([]byte(edited))
		got := fmt.Sprint(Findings("n1", list))
		if err != nil || want == "" && len(Findings("n1", list)) > 0 || want != "" && !strings.Contains(got, want) {
			t.Errorf("%v: %v %v", edit, err, got)
		}
	}
	for _, bad := range []string{
		"", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
		"<nvidia_smi_log></nvidia_smi_log>", strings.Repeat("<a>", 100), "<nvidia_smi_log><gpu>",
	} {
		if _, err := ReadSMI([]byte(bad)); err == nil {
			t.Errorf("%.40q is read", bad)
		}
	}
}

func FuzzReadSMI(f *testing.F) {
	f.Add([]byte(smi()))
	f.Add([]byte("<nvidia_smi_log><gpu id='x'><a>1</a></gpu></nvidia_smi_log>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, _ := ReadSMI(data)
		Findings("n", list)
	})
}
