//go:build linux

package native

import (
	"path/filepath"
	"strings"

	"busbar.dev/coll"
)

// cublas is cuBLAS, through which frameworks multiply matrices of 16 and 32 bits: its choice of a kernel is another
// than cuBLASLt's for some shapes.
type cublas struct {
	Create    uintptr `cublas:"cublasCreate_v2"`
	Stream    uintptr `cublas:"cublasSetStream_v2"`
	Workspace uintptr `cublas:"cublasSetWorkspace_v2"`
	Mode      uintptr `cublas:"cublasSetMathMode"`
	Product   uintptr `cublas:"cublasGemmEx"`

	handle uintptr
}

// The numbers of cuBLAS's types that are used.
const (
	mathDefault, mathTF32 = 0, 3
	algoDefault           = 99 // CUBLAS_GEMM_DEFAULT_TENSOR_OP
)

// openCUBLAS loads the cuBLAS that lies beside cuBLASLt. Without it products go through cuBLASLt alone.
func openCUBLAS(lt string) *cublas {
	path := filepath.Join(filepath.Dir(lt), strings.Replace(filepath.Base(lt), "cublasLt", "cublas", 1))
	l, err := load("libcublas.so (cuBLAS)", path, nil, nil)
	if err != nil {
		return nil
	}
	c := &cublas{}
	if l.symbols(c, "cublas") != nil || pass(c.Create, &c.handle) != 0 {
		return nil
	}
	return c
}

// framework says whether frameworks multiply matrices of a type through cuBLAS.
func framework(t coll.Dtype) bool {
	return t == coll.BFloat16 || t == coll.Half || t == coll.Float
}

// byCUBLAS makes a product ready for cuBLAS, with the settings of PyTorch: the same workspace, sums in float32.
func (w *Worker) byCUBLAS(m *matmul) {
	c := w.cublas
	m.c = c
	mode := mathDefault
	if m.compute == computeTF32 {
		mode = mathTF32
	}
	m.do("cublasSetStream", c.Stream, c.handle, w.driver.stream)
	m.do("cublasSetWorkspace", c.Workspace, c.handle, m.scratch, workspaceBytes)
	m.do("cublasSetMathMode", c.Mode, c.handle, mode)
}

// gemm starts the product through cuBLAS. Its matrices have columns in a row, as those of cuBLASLt.
func (m *matmul) gemm() {
	c := m.c
	m.do("cublasGemmEx", c.Product, c.handle, transpose, 0, m.N, m.M, m.K, &m.one, m.b, realOf[m.in], m.K,
		m.a, realOf[m.in], m.K, &m.zero, m.d, realOf[m.out], m.N, m.compute, algoDefault)
}
