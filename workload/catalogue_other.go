package workload

// Sources of models that are no plain transformers.
const (
	resnetPaper = "He et al. 2015, Deep Residual Learning for Image Recognition (arXiv 1512.03385), table 1; the stride in the middle convolution, as torchvision and NVIDIA's v1.5 have it"
	resnetCount = "torchvision's documentation of %s_Weights.IMAGENET1K_V1, num_params"
	vggPaper    = "Simonyan and Zisserman 2014, Very Deep Convolutional Networks (arXiv 1409.1556), table 1, configuration D"
	xlFrom      = "NVIDIA DeepLearningExamples, PyTorch/LanguageModeling/Transformer-XL, README and wt103_%s.yaml"
)

// Why a model's steps are not priced.
const (
	noTransformer = "it is no transformer, and the speed of its convolutions is not modelled"
	noMemory      = "relative positions and the memory of segments are not modelled"
)

// convolutionModels are networks of pictures that clusters are measured with; their gradients are exact.
func convolutionModels() []Model {
	var list []Model
	for _, x := range []struct {
		name, title string
		stages      [4]int64
		params      int64
	}{
		{"resnet50", "ResNet50", [4]int64{3, 4, 6, 3}, 25_557_032},
		{"resnet101", "ResNet101", [4]int64{3, 4, 23, 3}, 44_549_160},
		{"resnet152", "ResNet152", [4]int64{3, 8, 36, 3}, 60_192_808},
	} {
		list = append(list, Model{
			Name: x.name, Title: x.title + " v1.5", Seq: 1, Blocks: ResNet(x.stages), Source: resnetPaper, Published: x.params, PublishedSource: named(resnetCount, x.title),
			Note: "pictures of 224 × 224 points, 1000 classes", Unpriced: noTransformer,
		})
	}
	return append(list, Model{
		Name: "vgg16", Title: "VGG-16", Seq: 1, Blocks: VGG16(), Source: vggPaper, Published: 138_357_544, PublishedSource: named(resnetCount, "VGG16"),
		Note: "pictures of 224 × 224 points, 1000 classes", Unpriced: noTransformer,
	})
}

func xlModels() []Model {
	base := Dims{Layers: 16, Hidden: 512, Heads: 8, FFN: 2048, Vocab: 267735, Context: 192}.filled()
	large := Dims{Layers: 18, Hidden: 1024, Heads: 16, FFN: 4096, Vocab: 267735, Context: 384}.filled()
	return []Model{
		{
			Name: "transformer-xl-base", Title: "Transformer-XL base", Dims: base, Seq: 192, Blocks: TransformerXL(base, false), Source: named(xlFrom, "base"), Published: 192_000_000, Rounded: rounding(192_000_000, 1_000_000),
			PublishedSource: "published runs of it (NVIDIA DeepLearningExamples): 192M, in round figures", Note: "as NVIDIA trains it, wider than the paper's", Unpriced: noMemory,
		},
		{
			Name: "transformer-xl-large", Title: "Transformer-XL large", Dims: large, Seq: 384, Blocks: TransformerXL(large, true), Source: named(xlFrom, "large"), Published: 257_000_000, Rounded: 0.12,
			PublishedSource: "Dai et al. 2019, Transformer-XL (arXiv 1901.02860), table 1: 257M", Note: "the tensors that its code registers are 285.2M; the paper does not say what its 257M leave out", Unpriced: noMemory,
		},
	}
}

// rounding is how far a number stated to a multiple of a unit may be off, as a share of it.
func rounding(stated, unit int64) float64 { return float64(unit) / 2 / float64(stated) }
