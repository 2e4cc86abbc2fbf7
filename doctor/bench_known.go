package doctor

import (
	"fmt"
	"math"
	"slices"

	"busbar.dev/coll"
	"busbar.dev/finding"
	"busbar.dev/unit"
)

// Threshold is what an operator asks of a machine before it is let into service.
type Threshold struct {
	Title    string    `json:"title"`
	Presets  []string  `json:"presets"` // busbar's names of the machine
	Op       coll.Kind `json:"op"`
	Nodes    int       `json:"nodes"`
	Min      unit.Bytes
	Max      unit.Bytes
	GBps     float64 `json:"busbw_GBps"`
	InPlace  bool    `json:"in_place,omitempty"` // that half alone; else the mean of both
	Measured string  `json:"how"`
	Source   string  `json:"source"`
}

const (
	azureNHC = "https://github.com/Azure/azurehpc-health-checks/blob/0e0a1ac26a64b32ac4dd7632a529638505d3314a/conf/"
	gcpCHS   = "https://github.com/GoogleCloudPlatform/cluster-health-scanner/blob/81c525d897f4e85a4f69dd1e389379de6f1e07c2/deploy/helm/health_checks/nccl_healthcheck/"
	ociScout = "https://github.com/oracle-quickstart/oci-hpc/blob/b5285a68fa0a3b39ebf9e7ffdcb4987018bbf3cf/scripts/ncclscout.py"
)

// Thresholds are those that operators publish, read in the files named, November
// 2026. AWS's checks print figures above what a node's NVLink carries and are
// left out.
func Thresholds() []Threshold {
	azure := func(title string, presets []string, gbps float64, size unit.Bytes, file string) Threshold {
		return Threshold{title, presets, coll.AllReduce, 1, size, size, gbps, false, "average bus bandwidth of one node at that size", azureNHC + file}
	}
	gcp := func(title string, presets []string, gbps float64, file string) Threshold {
		return Threshold{title, presets, coll.AllGather, 2, 2 * unit.GiB, 8 * unit.GiB, gbps, false, "average bus bandwidth of two nodes, 2 to 8 GiB", gcpCHS + file}
	}
	oci := func(title string, presets []string, gbps float64) Threshold {
		return Threshold{title, presets, coll.AllReduce, 2, 10 * unit.GiB, 10 * unit.GiB, gbps, true, "in-place bus bandwidth of two nodes at 10 GiB", ociScout}
	}
	return []Threshold{
		azure("Azure ND40rs_v2", []string{"azure-ndv2"}, 110, 8*unit.GiB, "nd40rs_v2.conf"),
		azure("Azure ND96asr_v4", []string{"azure-ndv4"}, 228, 8*unit.GiB, "nd96asr_v4.conf"),
		azure("Azure ND96amsr_A100_v4", []string{"azure-ndmv4"}, 228, 16*unit.GiB, "nd96amsr_a100_v4.conf"),
		azure("Azure ND96isr_H100_v5", []string{"azure-ndv5"}, 460, 16*unit.GiB, "nd96isr_h100_v5.conf"),
		azure("Azure ND96isr_H200_v5", []string{"azure-ndv5-h200"}, 431, 16*unit.GiB, "nd96isr_h200_v5.conf"),
		gcp("GCP a3-highgpu-8g", []string{"gcp-a3-high"}, 60, "a3.yaml"),
		gcp("GCP a3-megagpu-8g", []string{"gcp-a3-mega"}, 150, "a3plus.yaml"),
		gcp("GCP a3-ultragpu-8g", []string{"gcp-a3-ultra"}, 250, "a3ultra.yaml"),
		gcp("GCP a4-highgpu-8g", []string{"gcp-a4"}, 250, "a4.yaml"),
		oci("OCI BM.GPU.B4.8 and A100-v2.8", []string{"oci-bm-gpu-b4.8", "oci-bm-gpu-a100-v2.8"}, 185),
		oci("OCI BM.GPU.H100.8", []string{"oci-bm-gpu-h100.8"}, 440),
		oci("OCI BM.GPU.H200.8", []string{"oci-bm-gpu-h200.8"}, 440),
		oci("OCI BM.GPU.MI300X.8", []string{"oci-bm-gpu-mi300x.8"}, 350),
	}
}

// Against is a curve held against a threshold.
type Against struct {
	Threshold
	Got    float64
	points []*CurvePoint
}

// Against finds the thresholds that a curve can be held against: those of its
// machine, its collective and its sizes. Sizes from half the smallest on count,
// for the curve is flat there.
func (s *Curve) Against() []Against {
	var list []Against
	for _, t := range Thresholds() {
		if t.Op != s.Sweep.Op || t.Nodes != s.Sweep.Nodes || !slices.Contains(t.Presets, s.Preset) {
			continue
		}
		a := Against{Threshold: t}
		sum := 0.0
		for i := range s.Points {
			p := &s.Points[i]
			if p.Size < t.Min/2 || p.Size > 2*t.Max {
				continue
			}
			both := p.BusBW
			if in := s.busBW(p.Size, p.InPlace); in > 0 {
				both = (both + in) / 2
				if t.InPlace {
					both = in
				}
			}
			sum += both
			a.points = append(a.points, p)
		}
		if n := len(a.points); n > 0 {
			a.Got = math.Round(100*sum/float64(n)) / 100
			list = append(list, a)
		}
	}
	return list
}

// below finds a curve that an operator would not let pass.
func (s *Curve) below() *finding.Finding {
	for _, a := range s.Against() {
		if a.Got >= a.GBps {
			continue
		}
		f := &finding.Finding{
			ID: "bench-below-threshold", Severity: finding.Warn, Confidence: repeats(a.GBps / a.Got), Reference: a.Source, Evidence: quotesOf(a.points),
			Title: fmt.Sprintf("Below what %s must give: %.4g GB/s, %.4g are asked for", a.Title, a.Got, a.GBps),
			Cause: fmt.Sprintf("The operator's own check of such a machine (%s) fails it below %.4g GB/s.", a.Measured, a.GBps),
			Fix:   "Repeat on other hosts; a host that fails alone goes back to the operator with this output.",
		}
		if f.Evidence == nil {
			f.Evidence = []finding.Quote{}
		}
		return f
	}
	return nil
}
