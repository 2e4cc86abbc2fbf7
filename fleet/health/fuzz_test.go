package health

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

// FuzzObserve feeds lines of observations: nothing panics, answers are in bounds, and what
// was decoded is written and read back alike.
func FuzzObserve(f *testing.F) {
	f.Add([]byte(`{"sample":{"sweep":"1","time":"2026-03-01T12:00:00Z","from":"a","to":"b","rate_GBps":12,"latency_s":0.00002}}
{"sample":{"sweep":"1","time":"2026-03-01T12:00:00Z","from":"b","to":"a","rail":"mlx5_0","error":"timed out"}}
{"sample":{"sweep":"2","time":"2026-03-01T11:00:00Z","from":"a","to":"c","rate_GBps":-5}}
{"beat":{"node":"a","time":"2026-03-01T12:00:00Z"}}
{"node":{"name":"a","place":{"leaf":"l0","type":"t"}}}`))
	f.Add([]byte(`{"link":{"node":"a","port":"p","up":true,"time":"2026-03-01T12:00:00Z"}}
{"link":{"node":"a","port":"p","up":false,"time":"2026-03-01T12:01:00Z"}}
{"count":{"node":"a","port":"p","name":"symbol_error","value":18446744073709551615,"time":"2026-03-01T12:00:00Z"}}
{"count":{"node":"a","port":"p","name":"symbol_error","value":0,"time":"2026-03-01T12:01:00Z"}}
{"node":{"name":"a","gone":true}}`))
	f.Add([]byte(`{"sample":{"sweep":"1","time":"0001-01-01T00:00:00Z","from":"a","to":"a"}}` + "\n{}\nnull\n[]\n{\"beat\":{}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h := New(0)
		h.most.sweeps, h.most.nodes = 4, 8
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			o, err := Decode(line)
			if err != nil {
				continue
			}
			h.Observe(o)
			text, err := json.Marshal(o)
			if err != nil {
				continue // a year that JSON cannot write
			}
			if len(text) > mostLine {
				continue
			}
			again, err := Decode(text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if second, _ := json.Marshal(again); !bytes.Equal(text, second) {
				t.Fatalf("%s became %s", text, second)
			}
		}
		for _, now := range []time.Time{began, began.Add(time.Hour), {}} {
			for _, x := range h.Findings(now) {
				if !(x.Confidence >= 0 && x.Confidence <= 1) || !(x.Factor >= 0 && x.Factor <= 1) || x.ID == "" || x.Text == "" ||
					x.Fix == "" || len(x.Evidence) == 0 {
					t.Fatalf("%+v", x)
				}
			}
			h.Unhealthy(now)
		}
		h.Sweeps()
		h.Pair("a", "b", Way{})
		h.Size()
	})
}
