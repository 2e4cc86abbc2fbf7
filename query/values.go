package query

import (
	"fmt"

	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/schedule"
	"busbar.dev/workload"
)

// Values are the words that a parameter of a command can be, for whoever completes what people type: cluster, op, algo, dtype,
// nccl, model and proto have some. A cluster or a model can also be a file.
func Values(command, parameter string) []string {
	var list []string
	switch parameter {
	case "cluster":
		for _, p := range hardware.Presets() {
			list = append(list, p.Name)
		}
	case "op":
		for _, k := range coll.Kinds() {
			list = append(list, k.String())
		}
	case "algo":
		return algoValues(command)
	case "dtype":
		for d := range coll.Dtype(255) {
			if d.String() == fmt.Sprintf("type(%d)", d) {
				break
			}
			list = append(list, d.String())
		}
	case "nccl": // the newest first
		for minor := nccl.Newest.Minor; minor >= nccl.Oldest.Minor; minor-- {
			list = append(list, fmt.Sprintf("%d.%d", nccl.Newest.Major, minor))
		}
	case "model":
		return workload.Names()
	case "proto":
		return []string{"auto", "ll", "ll128", "simple"}
	}
	return list
}

// algoValues are algorithms, after what a command takes instead of one.
func algoValues(command string) []string {
	var list []string
	switch command {
	case "predict":
		list = []string{predict.Auto, predict.Best, predict.Each, predict.All}
	case "bench":
		list = []string{predict.Auto}
	}
	for _, b := range schedule.Builders() {
		list = append(list, b.Name)
	}
	return list
}
