package evidence

import "strconv"

// What frameworks warn of themselves, and temperatures.
const (
	FP32Matmul    Kind = "fp32-matmul"     // products in 32 bits without TF32
	UnusedFlag    Kind = "unused-flag"     // find_unused_parameters without need
	LoaderWorkers Kind = "loader-workers"  // few, many: workers of a data loader
	PinWithoutGPU Kind = "pin-without-gpu" // pin_memory without a GPU
	HotGPU        Kind = "gpu-hot"         // temperature in °C
	HotAmongEqual Kind = "gpu-hot-apart"   // GPU, its temperature and power, the greatest temperature and least power of its equals
)

// seenWarned are warnings of PyTorch and Lightning about speed, in their own words, and temperatures that tools print.
func seenWarned() []seen {
	return []seen{
		{kind: FP32Matmul, words: "set_float32_matmul_precision", pattern: `(?i)(?:TensorFloat32 tensor cores for float32 matrix multiplication available but not enabled|that has Tensor Cores\. To properly utilize them, you should set .?torch\.set_float32_matmul_precision)`, take: none},
		{kind: UnusedFlag, words: "did not find any unused parameters", pattern: `find_unused_parameters=True was specified in DDP constructor, but did not find any unused parameters`, take: none},
		{kind: LoaderWorkers, words: "does not have many workers which may be a bottleneck", take: fewWorkers},
		{kind: LoaderWorkers, words: "suggested max number of worker in current system", take: manyWorkers},
		{kind: PinWithoutGPU, words: "'pin_memory' argument is set as true but no accelerator", take: none},
		{kind: HotGPU, words: "gpu current temp", pattern: `^\s*GPU Current Temp\s*: (\d{2,3}) C\b`, take: hot},
		{kind: HotGPU, words: "c    p", pattern: `^\|\s*(?:N/A|ERR!|\d+%)\s+(\d{2,3})C\s+P\d+\s`, take: hot},
	}
}

func fewWorkers([]string) ([]string, bool)  { return []string{"few"}, true }
func manyWorkers([]string) ([]string, bool) { return []string{"many"}, true }

// hot keeps temperatures at which GPUs lower their clocks or soon will: data sheets give 87 to 98 °C.
func hot(g []string) ([]string, bool) {
	n, err := strconv.Atoi(g[0])
	return g, err == nil && n >= 90 && n <= 125
}
