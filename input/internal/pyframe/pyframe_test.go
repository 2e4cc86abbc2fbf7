package pyframe

import "testing"

func TestOf(t *testing.T) {
	for file, want := range map[string]Origin{
		"/home/me/ft/train.py": Own, "train.py": Own, "/data/torch/train.py": Own, "src/model/torchlayers.py": Own,
		"/opt/conda/lib/python3.11/site-packages/torch/autograd/graph.py": Library, "torch/autograd/graph.py": Library,
		"/src/pytorch/torch/distributed/distributed_c10d.py": Library, "/usr/lib/python3.12/threading.py": Library,
		"threading.py": Library,
		`C:\venv\Lib\site-packages\torch\nn\modules\module.py`: Library, "": Library, "<frozen runpy>": Library,
		"/usr/lib/python3/dist-packages/megatron/training.py":            Package,
		"/opt/venv/lib/python3.11/site-packages/transformers/trainer.py": Package,
	} {
		if got := Of(file); got != want {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
}
