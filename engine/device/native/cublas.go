//go:build linux

package native

import (
	"path/filepath"
	"strings"
	"unsafe"

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
	if l.symbols(c, "cublas") != nil || call(c.Create, uintptr(unsafe.Pointer(&c.handle))) != 0 {
		return nil
	}
	return c
}

// framework says whether frameworks multiply matrices of a type through cuBLAS.
func framework(t coll.Dtype) bool {
	return t == coll.BFloat16 || t == coll.Half || t == coll.Float
}

// byCUBLAS makes a product ready for cuBLAS, with the settings of PyTorch: the same workspace, sums in float32.
func (w *Worker) byCUBLAS(m *matmul, tf32 bool) error {
	c := w.cublas
	m.c = c
	mode := uintptr(mathDefault)
	if tf32 {
		mode = mathTF32
	}
	for _, x := range []struct {
		what string
		code int
	}{
		{"cublasSetStream", call(c.Stream, c.handle, w.driver.stream)},
		{"cublasSetWorkspace", call(c.Workspace, c.handle, m.scratch, uintptr(workspaceBytes))},
		{"cublasSetMathMode", call(c.Mode, c.handle, mode)},
	} {
		if err := m.b.must(x.what, x.code); err != nil {
			return err
		}
	}
	return nil
}

// gemm starts the product through cuBLAS. Its matrices have columns in a row, as those of cuBLASLt.
func (m *matmul) gemm() error {
	c := m.c
	s := &m.shape
	return m.b.must("cublasGemmEx", call(c.Product, c.handle, s.trans, 0, s.n, s.m, s.k,
		uintptr(unsafe.Pointer(&m.one[0])), m.bb, s.in, s.ld, m.a, s.in, s.k,
		uintptr(unsafe.Pointer(&m.zero[0])), m.d, s.out, s.n, s.compute, algoDefault))
}
