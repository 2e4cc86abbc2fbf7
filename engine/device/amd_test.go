package device

import (
	"strings"
	"testing"
	"testing/fstest"
)

// amdFiles is a machine with two GPUs of AMD as amdgpu shows them, of which the second has edits; written by us, not
// copied from one.
func amdFiles(edit map[string]string) fstest.MapFS {
	files := fstest.MapFS{
		"sys/class/drm/card0-DP-1/device/vendor": {Data: []byte("0x1002\n")},
		"sys/class/drm/card9/device/vendor":      {Data: []byte("0x1a03\n")},
	}
	for _, card := range []string{"card1", "card2"} {
		dir := "sys/class/drm/" + card + "/device/"
		for name, text := range map[string]string{
			"vendor": "0x1002", "device": "0x74a1", "product_name": "AMD Instinct MI300X OAM", "unique_id": "a1b2",
			"uevent":           "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:05:00.0",
			"gpu_busy_percent": "97", "mem_info_vram_used": "1000", "mem_info_vram_total": "206141652992",
			"current_link_width": "16", "max_link_width": "16",
			"current_link_speed": "32.0 GT/s PCIe", "max_link_speed": "32.0 GT/s PCIe", "pcie_replay_count": "0",
			"pp_dpm_sclk": "0: 132Mhz\n1: 2100Mhz *", "pp_dpm_mclk": "0: 900Mhz\n1: 1300Mhz *",
			"ras/umc_err_count": "ue: 0\nce: 3", "ras/xgmi_wafl_err_count": "ue: 0\nce: 0",
			"ras/features":                "feature mask: 0x7fff",
			"hwmon/hwmon5/power1_average": "610000000", "hwmon/hwmon5/power1_cap": "750000000",
			"hwmon/hwmon5/power1_cap_default": "750000000", "hwmon/hwmon5/temp2_input": "71000",
			"hwmon/hwmon5/temp2_crit": "100000",
		} {
			if v, ok := edit[name]; ok && card == "card2" {
				text = v
			}
			files[dir+name] = &fstest.MapFile{Data: []byte(text + "\n")}
		}
	}
	return files
}

// TestReadAMD: what the driver has in /sys is read, and what is wrong is named at its GPU alone.
func TestReadAMD(t *testing.T) {
	list := ReadAMD(amdFiles(nil))
	if len(list) != 2 || len(Findings("n1", list)) > 0 {
		t.Fatalf("%+v %+v", list, Findings("n1", list))
	}
	if s := list[0]; s.Name != "AMD Instinct MI300X OAM" || s.PCI != "0000:05:00.0" || *s.SM != 2100 || *s.MaxSM != 2100 ||
		*s.Power != 610 || *s.PowerLimit != 750 || *s.Temperature != 71 || *s.SlowAt != 100 ||
		*s.Corrected != 3 || *s.Uncorrected != 0 || *s.PCIeGen != 5 || *s.PCIeWidth != 16 || *s.Utilization != 97 ||
		*s.Total != 206141652992 || !*s.ECC {
		t.Errorf("%+v", s)
	}
	for name, tt := range map[string]struct {
		edit map[string]string
		want string
	}{
		"memory": {map[string]string{"ras/umc_err_count": "ue: 2\nce: 9"}, "had 2 uncorrectable errors"},
		"XGMI":   {map[string]string{"ras/xgmi_wafl_err_count": "ue: 1\nce: 0"}, "had 1 uncorrectable error (of memory"},
		"power": {
			map[string]string{"hwmon/hwmon5/power1_cap": "400000000"}, "may take 400 W only; 750 W is its default",
		},
		"width":       {map[string]string{"current_link_width": "8"}, "has 8 PCIe lanes of 16"},
		"temperature": {map[string]string{"hwmon/hwmon5/temp2_input": "104000"}, "is at 104 °C"},
	} {
		found := Findings("n1", ReadAMD(amdFiles(tt.edit)))
		if len(found) == 0 {
			t.Errorf("%s: nothing is found", name)
		}
		for _, f := range found {
			if f.Where != "n1/gpu1" || !strings.Contains(f.Text, tt.want) || strings.Contains(f.Fix, "nvidia-smi") {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
	if list := ReadAMD(fstest.MapFS{}); len(list) > 0 {
		t.Errorf("%+v", list)
	}
}

func FuzzReadAMD(f *testing.F) {
	f.Add("pp_dpm_sclk", "0: 132Mhz\n1: 2100Mhz *")
	f.Add("ras/umc_err_count", "ue: 9223372036854775807\nce: -1")
	f.Add("current_link_speed", "32.0 GT/s")
	f.Add("hwmon/hwmon5/power1_cap", "99999999999999999999")
	f.Fuzz(func(t *testing.T, name, text string) {
		for _, x := range Findings("n1", ReadAMD(amdFiles(map[string]string{name: text}))) {
			if len(x.Text) > 1024 {
				t.Errorf("%d bytes", len(x.Text))
			}
		}
	})
}
