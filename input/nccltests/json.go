package nccltests

import (
	"encoding/json"
	"fmt"

	"busbar.dev/result"
	"busbar.dev/unit"
)

// document is the file that option -J writes, as far as it is used here.
type document struct {
	Args    json.RawMessage `json:"args"`
	Library json.Number     `json:"nccl_version"` // 22907
	Config  struct {
		Devices []struct {
			Rank *int   `json:"rank"`
			Host string `json:"hostname"`
			Name string `json:"device_info"`
		} `json:"devices"`
	} `json:"config"`
	Results []struct {
		Size int64         `json:"size"`
		Type string        `json:"type"`
		Out  *documentHalf `json:"out_of_place"`
		In   *documentHalf `json:"in_place"`
	} `json:"results"`
}

type documentHalf struct {
	Time  float64 `json:"time"` // µs
	Wrong float64 `json:"nwrong"`
}

func (h *documentHalf) timing() *result.Timing {
	if h == nil {
		return nil
	}
	wrong := int64(h.Wrong)
	return timing(h.Time, 0, 0, &wrong)
}

// ReadJSON reads the file that option -J writes: one table. A document without results has no
// tables.
func ReadJSON(name string, data []byte) (*Output, error) {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out := &Output{}
	if len(d.Results) == 0 {
		return out, nil
	}
	t := Table{Test: programIn(string(d.Args)), OpFrom: "header", Library: d.Library.String(), Params: noParams}
	t.Op = opOf(t.Test)
	for i, v := range d.Config.Devices {
		r := Rank{Rank: i, Host: v.Host, Model: v.Name}
		if v.Rank != nil && *v.Rank >= 0 && *v.Rank < maxRanks {
			r.Rank = *v.Rank
		}
		t.Ranks = append(t.Ranks, r)
	}
	for _, r := range d.Results {
		p := result.Point{Size: unit.Bytes(r.Size), Out: r.Out.timing(), In: r.In.timing()}
		if r.Out != nil && p.Out == nil || r.In != nil && p.In == nil {
			out.Untimed++
		}
		t.addRow(p, r.Type, "", -1)
	}
	t.describe(name)
	out.Tables = append(out.Tables, t)
	return out, nil
}
