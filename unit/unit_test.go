package unit

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestParseBytes(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want Bytes
	}{
		{"8", 8},
		{"64K", 64 << 10},
		{"64k", 64 << 10},
		{"1M", 1 << 20},
		{"1G", 1 << 30},
		{"1.32GB", 1_320_000_000},
		{"1GiB", 1 << 30},
		{"80 GB", 80_000_000_000},
		{"1e9", 1_000_000_000},
		{"1_048_576", 1 << 20},
		{"0", 0},
	} {
		got, err := ParseBytes(tt.in)
		if err != nil || got != tt.want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", tt.in, got, err, tt.want)
		}
	}
	for _, in := range []string{"", "x", "-1", "1Gb", "1X", "9e30", "1 2", "NaN", "Inf", "0x10"} {
		if v, err := ParseBytes(in); err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", in, v)
		}
	}
}

func TestParseRate(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want float64
	}{
		{"50GB/s", 50e9},
		{"50 GBps", 50e9},
		{"400Gb/s", 50e9},
		{"400Gbps", 50e9},
		{"400 Gbit/s", 50e9},
		{"25000Mb/s", 3.125e9},
		{"12.5GiB/s", 12.5 * (1 << 30)},
		{"900GB/s duplex", 450e9},
		{"600 GB/s bidirectional", 300e9},
		{"3.2Tb/s", 400e9},
		{"1.8TB/s duplex", 900e9},
	} {
		got, err := ParseRate(tt.in)
		if err != nil || math.Abs(float64(got)-tt.want) > 1 {
			t.Errorf("ParseRate(%q) = %g, %v; want %g", tt.in, float64(got), err, tt.want)
		}
	}
	for _, tt := range []struct{ in, say string }{
		{"400", "no unit"},
		{"400G", "not a rate"},
		{"400Gps", "neither bits nor bytes"},
		{"-1GB/s", "negative"},
		{"GB/s", "number"},
		{"1ZB/s", "unknown unit"},
		{"1e30GB/s", "out of range"},
	} {
		if _, err := ParseRate(tt.in); err == nil || !strings.Contains(err.Error(), tt.say) {
			t.Errorf("ParseRate(%q): error %v, want %q", tt.in, err, tt.say)
		}
	}
}

func TestPrint(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Rate(50e9).String(), "50 GB/s"},
		{Rate(50e9).Bits(), "400 Gb/s"},
		{Rate(31.508e9).String(), "31.5 GB/s"},
		{Rate(6.25e9).String(), "6.25 GB/s"},
		{Rate(999.9e9).String(), "1 TB/s"},
		{Rate(1.25e8).Bits(), "1 Gb/s"},
		{Bytes(1 << 20).String(), "1 MiB"},
		{Bytes(1_320_000_000).String(), "1.32 GB"},
		{Bytes(80e9).String(), "80 GB"},
		{Bytes(8).String(), "8 B"},
		{Micros(101.9).String(), "102 µs"},
		{Micros(0.6).String(), "600 ns"},
		{Seconds(135.42).String(), "135 s"},
		{FLOPS(989e12).String(), "989 TFLOPS"},
		{FLOPS(19.5e12).String(), "19.5 TFLOPS"},
	} {
		if tt.got != tt.want {
			t.Errorf("printed %q, want %q", tt.got, tt.want)
		}
	}
}

func TestJSONFieldsAreInTheirNamedUnit(t *testing.T) {
	v := struct {
		Rate    Rate  `json:"rate_GBps"`
		Size    Bytes `json:"size_bytes"`
		Latency Time  `json:"latency_s"`
		Peak    FLOPS `json:"peak_TFLOPS"`
	}{Rate(25e9), 1 << 20, Micros(1.5), 312 * TFLOPS}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"rate_GBps":25,"size_bytes":1048576,"latency_s":0.0000015,"peak_TFLOPS":312}`
	if string(data) != want {
		t.Errorf("%s, want %s", data, want)
	}
	back := v
	back.Rate, back.Latency = 0, 0
	if err := json.Unmarshal(data, &back); err != nil || back != v {
		t.Errorf("%+v, %v; want %+v", back, err, v)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"64K", "1.32GB", "400Gb/s", "900GB/s duplex", "1.5us", "989TFLOPS", "1e9", "--", "1e+"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := ParseBytes(s); err == nil {
			text, _ := v.MarshalText()
			if back, err := ParseBytes(string(text)); err != nil || back != v {
				t.Errorf("%q is %d bytes; %q reads back %d, %v", s, v, text, back, err)
			}
		}
		if v, err := ParseRate(s); err == nil {
			text, _ := v.MarshalText()
			back, err := ParseRate(string(text))
			if err != nil || math.Abs(float64(back-v)) > 1e-6*float64(v)+1 {
				t.Errorf("%q is %g; %q reads back %g, %v", s, float64(v), text, float64(back), err)
			}
		}
		if v, err := ParseTime(s); err == nil && v < 0 && !strings.Contains(s, "-") {
			t.Errorf("%q is %d ps", s, v)
		}
	})
}

// A number in JSON is held to the same bounds as a text.
func TestOutOfRange(t *testing.T) {
	for _, data := range []string{`1e308`, `1e300`, `-1`, `1e-320`, `"1e308GB/s"`, `"-1GB/s"`, `"1e-320GB/s"`} {
		var r Rate
		if err := json.Unmarshal([]byte(data), &r); err == nil {
			t.Errorf("rate %s is read as %v", data, r)
		}
	}
	for _, data := range []string{`1e308`, `1e20`, `"1e308us"`} {
		var v Time
		if err := json.Unmarshal([]byte(data), &v); err == nil {
			t.Errorf("time %s is read as %v", data, v)
		}
	}
	for _, data := range []string{`1e308`, `-1`} {
		var v FLOPS
		if err := json.Unmarshal([]byte(data), &v); err == nil {
			t.Errorf("speed %s is read as %v", data, v)
		}
	}
	if err := new(FLOPS).UnmarshalText([]byte("1e308TFLOPS")); err == nil {
		t.Error("1e308TFLOPS is read")
	}
}

// Sizes are of whole bytes; what has a unit may have digits behind the point.
func TestPartsOfBytes(t *testing.T) {
	for _, s := range []string{"0.1", "0.5B", "1.5", "0.0001K", "8.25 B"} {
		if b, err := ParseBytes(s); err == nil {
			t.Errorf("%q is %d bytes", s, b)
		}
	}
	for s, want := range map[string]Bytes{"0": 0, "8.0": 8, "1.5K": 1536, "1.32GB": 1_320_000_000, "0K": 0} {
		if b, err := ParseBytes(s); err != nil || b != want {
			t.Errorf("%q: %d, %v; expected %d", s, b, err, want)
		}
	}
}
