//go:build linux

package native

import (
	"math"
	"math/rand/v2"

	"busbar.dev/coll"
	"busbar.dev/engine/device"
	"busbar.dev/internal/reduce"
)

// blas is cuBLASLt.
type blas struct {
	Create       uintptr `blas:"cublasLtCreate"`
	DescCreate   uintptr `blas:"cublasLtMatmulDescCreate"`
	DescSet      uintptr `blas:"cublasLtMatmulDescSetAttribute"`
	DescDestroy  uintptr `blas:"cublasLtMatmulDescDestroy"`
	Layout       uintptr `blas:"cublasLtMatrixLayoutCreate"`
	LayoutEnd    uintptr `blas:"cublasLtMatrixLayoutDestroy"`
	Preference   uintptr `blas:"cublasLtMatmulPreferenceCreate"`
	PreferSet    uintptr `blas:"cublasLtMatmulPreferenceSetAttribute"`
	PreferEnd    uintptr `blas:"cublasLtMatmulPreferenceDestroy"`
	Heuristic    uintptr `blas:"cublasLtMatmulAlgoGetHeuristic"`
	Matmul       uintptr `blas:"cublasLtMatmul"`
	StatusString uintptr `blas:"?cublasLtGetStatusString"`

	*library
	handle uintptr
}

func openBLAS() *blas {
	names := []string{"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", "libcublasLt.so"}
	l, err := load("libcublasLt.so (cuBLASLt)", setting("CUBLASLT"), names,
		append(pythonFolders(), "/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64"))
	if err != nil {
		f := failed(err)
		f.Text += "; BUSBAR_CUBLASLT=FILE names it"
		panic(f)
	}
	b := &blas{library: l}
	l.words = func(code int) string { return returned(b.StatusString, uintptr(code)) }
	check(l.symbols(b, "blas"))
	b.do("cublasLtCreate", b.Create, &b.handle)
	return b
}

// The numbers of cuBLASLt's types that are used.
const (
	descTransA, descTransB       = 3, 4
	descScaleA, descScaleB       = 17, 18
	descFast                     = 25
	preferWorkspace              = 1
	transpose                    = 1
	compute32, computeTF32       = 68, 77
	compute64                    = 70
	workspaceBytes         int64 = 32 << 20
)

// realOf are cuBLASLt's numbers of types.
var realOf = map[coll.Dtype]int{coll.Float: 0, coll.Double: 1, coll.Half: 2, coll.BFloat16: 14, coll.F8E4M3: 28}

// matmul is a product made ready.
type matmul struct {
	*blas
	device.Request
	in, out          coll.Dtype // of the factors, and of the result
	compute          int
	desc, pref       uintptr
	layout           [3]uintptr
	algo             [12]uint64 // cublasLtMatmulHeuristicResult_t: 96 bytes, of which the first 64 are the algorithm
	a, b, d, scratch uintptr
	one, zero        [8]byte
	c                *cublas // that computes it; nil is cuBLASLt
}

// newMatmul finds what a product is computed in. A float is TF32 where tf32 is asked for.
func newMatmul(b *blas, q device.Request) *matmul {
	m := &matmul{blas: b, Request: q, compute: compute32}
	var err error
	if q.Dtype == "tf32" {
		m.in, m.compute = coll.Float, computeTF32
	} else {
		m.in, err = coll.ParseDtype(q.Dtype)
		check(err)
	}
	if _, ok := realOf[m.in]; !ok {
		refuse("products of %s are not measured; expected float, tf32, half, bfloat16, double or f8e4m3", q.Dtype)
	}
	m.out = m.in
	reduce.Put(m.one[:], coll.Float, 1)
	switch m.in {
	case coll.Double:
		m.compute = compute64
		reduce.Put(m.one[:], coll.Double, 1)
	case coll.F8E4M3:
		m.out = coll.BFloat16
	}
	return m
}

func (m *matmul) close() {
	for _, l := range m.layout {
		if l != 0 {
			call(m.LayoutEnd, l)
		}
	}
	if m.pref != 0 {
		call(m.PreferEnd, m.pref)
	}
	if m.desc != 0 {
		call(m.DescDestroy, m.desc)
	}
}

// set sets an attribute of the product, of so many bytes.
func (m *matmul) set(attribute int, value any, size int) {
	m.do("cublasLtMatmulDescSetAttribute", m.DescSet, m.desc, attribute, value, size)
}

// prepare describes D = A·Bᵀ to a library whose matrices have columns in a row: Dᵀ = B·Aᵀ, so that B comes
// first; and asks for the library's own choice of algorithm.
func (w *Worker) prepare(m *matmul) {
	scale := coll.Float
	if m.in == coll.Double {
		scale = coll.Double
	}
	m.do("cublasLtMatmulDescCreate", m.DescCreate, &m.desc, m.compute, realOf[scale])
	m.set(descTransA, new(int32(transpose)), 4)
	m.set(descTransB, new(int32), 4)
	for i, x := range []struct {
		t          coll.Dtype
		rows, cols int
	}{{m.in, m.K, m.N}, {m.in, m.K, m.M}, {m.out, m.N, m.M}} {
		m.do("cublasLtMatrixLayoutCreate", m.Layout, &m.layout[i], realOf[x.t], x.rows, x.cols, x.rows)
	}
	m.do("cublasLtMatmulPreferenceCreate", m.Preference, &m.pref)
	m.do("cublasLtMatmulPreferenceSetAttribute", m.PreferSet, m.pref, preferWorkspace, new(workspaceBytes), 8)
	// its factors have scales, in the GPU's memory; sums are kept as frameworks have them in the forward pass
	if m.in == coll.F8E4M3 {
		m.set(descFast, new(int8(1)), 1)
		w.driver.grow(&w.flag, 8)
		w.driver.repeat(w.flag.at, 4, m.one[:4])
		m.set(descScaleA, &w.flag.at, 8)
		m.set(descScaleB, &w.flag.at, 8)
	}
	var found int32
	m.do("cublasLtMatmulAlgoGetHeuristic", m.Heuristic, m.handle, m.desc, m.layout[0], m.layout[1], m.layout[2],
		m.layout[2], m.pref, 1, &m.algo, &found)
	if found == 0 {
		refuse("cuBLASLt has no algorithm for this product")
	}
}

func (m *matmul) start(stream uintptr) {
	if m.c != nil {
		m.gemm()
		return
	}
	m.do("cublasLtMatmul", m.Matmul, m.handle, m.desc, &m.one, m.b, m.layout[0], m.a, m.layout[1], &m.zero, m.d,
		m.layout[2], m.d, m.layout[2], &m.algo, m.scratch, workspaceBytes, stream)
}

// product times a matrix product on random values, samples clocks and power while it runs, and computes some elements
// again.
func (w *Worker) product(q device.Request) *device.Result {
	if w.driver.amd {
		refuse("products are measured through cuBLASLt, on NVIDIA's GPUs only")
	}
	const most = 1 << 20
	if min(q.M, q.N, q.K) < 1 || max(q.M, q.N, q.K) > most {
		refuse("a product of %d×%d×%d; expected sides from 1 to %d", q.M, q.N, q.K, most)
	}
	if w.blas == nil {
		w.blas = openBLAS()
		w.cublas = openCUBLAS(w.blas.path)
	}
	m := newMatmul(w.blas, q)
	defer m.close()
	w.prepare(m)
	w.factors(m)
	r := &device.Result{By: "cuBLASLt"}
	if w.cublas != nil && framework(m.in) {
		r.By = "cuBLAS"
		w.byCUBLAS(m)
	}
	var seen func(*device.Result)
	t := w.time(q, func() { w.driver.sync(); seen = w.watch() }, func(int) { m.start(w.driver.stream) })
	seen(r)
	if r.Micros = t.GPU; r.Micros > 0 {
		r.TFLOPS = 2 * float64(q.M) * float64(q.N) * float64(q.K) / r.Micros / 1e6
	}
	if q.Check {
		w.again(m, r)
	}
	return r
}

// factors lays out A, B, D and the workspace, and fills A and B with random values: the power that a GPU needs, and so
// its clock, depends on them.
func (w *Worker) factors(m *matmul) {
	size := int64(m.in.Size())
	a, b, d := int64(m.M)*int64(m.K)*size, int64(m.N)*int64(m.K)*size, int64(m.M)*int64(m.N)*int64(m.out.Size())
	pad := func(n int64) int64 { return (n + 255) &^ 255 }
	m.a, m.d = w.both(pad(a)+pad(b), pad(d)+workspaceBytes)
	m.b, m.scratch = m.a+uintptr(pad(a)), m.d+uintptr(pad(d))
	w.driver.repeat(m.a, a, randoms(m.in, 4<<20, 4))
	w.driver.repeat(m.b, b, randoms(m.in, 4<<20, 5))
}

// again computes some elements on the host.
func (w *Worker) again(m *matmul, r *device.Result) {
	size, result := m.in.Size(), m.out.Size()
	row, column, got := make([]byte, m.K*size), make([]byte, m.K*size), make([]byte, result)
	rng := rand.New(rand.NewPCG(uint64(m.M), uint64(m.N)))
	for range 6 {
		i, j := rng.IntN(m.M), rng.IntN(m.N)
		w.driver.fetch(row, m.a+uintptr(i*len(row)))
		w.driver.fetch(column, m.b+uintptr(j*len(column)))
		w.driver.fetch(got, m.d+uintptr((i*m.N+j)*result))
		sum, scale := 0.0, 0.0
		for k := 0; k < len(row); k += size {
			x := reduce.Element(row[k:], m.in) * reduce.Element(column[k:], m.in)
			sum, scale = sum+x, scale+math.Abs(x)
		}
		r.Tested++
		if tolerance := math.Abs(sum)/100 + scale*1e-3; math.Abs(reduce.Element(got, m.out)-sum) > tolerance {
			r.Wrong++
		}
	}
}
