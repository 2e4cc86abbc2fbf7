//go:build linux

package native

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"unsafe"

	"busbar.dev/coll"
	"busbar.dev/engine/device"
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

	handle uintptr
	path   string
}

func openBLAS() (*blas, error) {
	names := []string{"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", "libcublasLt.so"}
	l, err := load("libcublasLt.so (cuBLASLt)", setting("CUBLASLT"), names,
		append(pythonFolders(), "/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64"))
	if err != nil {
		f := failed(err)
		f.Text += "; BUSBAR_CUBLASLT=FILE names it"
		return nil, f
	}
	b := &blas{path: l.path}
	if err := l.symbols(b, "blas"); err != nil {
		return nil, err
	}
	return b, b.must("cublasLtCreate", call(b.Create, uintptr(unsafe.Pointer(&b.handle))))
}

func (b *blas) must(what string, code int) error {
	if code == 0 {
		return nil
	}
	words := ""
	if p, ok := address(b.StatusString, uintptr(code)); ok {
		words = text(p)
	}
	return failure(what, code, words)
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
	realFloat, realDouble        = 0, 1
	realHalf, realBF16           = 2, 14
	realF8E4M3, realF8E5M2       = 28, 29
	workspaceBytes         int64 = 32 << 20
)

// kindOf is the type of the factors and of the result, and what it is computed in. A float is TF32 where tf32 is asked
// for.
func kindOf(name string) (t coll.Dtype, in, out, compute, scale uintptr, err error) {
	if name == "tf32" {
		return coll.Float, realFloat, realFloat, computeTF32, realFloat, nil
	}
	if t, err = coll.ParseDtype(name); err != nil {
		return
	}
	compute = compute32
	switch t {
	case coll.Float:
		in, out = realFloat, realFloat
	case coll.Half:
		in, out = realHalf, realHalf
	case coll.BFloat16:
		in, out = realBF16, realBF16
	case coll.Double:
		in, out, compute, scale = realDouble, realDouble, compute64, realDouble
	case coll.F8E4M3:
		in, out = realF8E4M3, realBF16
	default:
		err = &device.Failure{Text: fmt.Sprintf("products of %s are not measured; expected float, tf32, half, bfloat16, "+
			"double or f8e4m3", name)}
	}
	return
}

// matmul is a product made ready.
type matmul struct {
	b                  *blas
	desc, pref         uintptr
	layout             [3]uintptr
	algo               [12]uint64 // cublasLtMatmulHeuristicResult_t: 96 bytes, of which the first 64 are the algorithm
	a, bb, d, scratch  uintptr
	one, zero          [8]byte
	elementA, elementD int
	c                  *cublas // that computes it; nil is cuBLASLt
	shape              struct{ trans, m, n, k, ld, in, out, compute uintptr }
}

func (m *matmul) close() {
	for _, l := range m.layout {
		if l != 0 {
			call(m.b.LayoutEnd, l)
		}
	}
	if m.pref != 0 {
		call(m.b.PreferEnd, m.pref)
	}
	if m.desc != 0 {
		call(m.b.DescDestroy, m.desc)
	}
}

// prepare describes D = A·Bᵀ to a library whose matrices have columns in a row: Dᵀ = B·Aᵀ, so that B comes
// first.
func (w *Worker) prepare(q device.Request) (*matmul, error) {
	t, in, out, compute, scale, err := kindOf(q.Dtype)
	if err != nil {
		return nil, err
	}
	b := w.blas
	m := &matmul{b: b, elementA: t.Size(), elementD: t.Size()}
	if t == coll.F8E4M3 {
		m.elementD = 2
	}
	binary.LittleEndian.PutUint32(m.one[:], math.Float32bits(1))
	if t == coll.Double {
		binary.LittleEndian.PutUint64(m.one[:], math.Float64bits(1))
	}
	if err := b.must("cublasLtMatmulDescCreate",
		call(b.DescCreate, uintptr(unsafe.Pointer(&m.desc)), compute, scale)); err != nil {
		return m, err
	}
	set := func(attribute int, value int32) error {
		return b.must("cublasLtMatmulDescSetAttribute",
			call(b.DescSet, m.desc, uintptr(attribute), uintptr(unsafe.Pointer(&value)), 4))
	}
	var plain int32 = transpose
	rows, cols := q.K, q.N
	if q.Plain {
		plain, rows, cols = 0, q.N, q.K
	}
	s := &m.shape
	s.trans, s.m, s.n, s.k, s.ld, s.in, s.out, s.compute = uintptr(plain), uintptr(q.M), uintptr(q.N), uintptr(q.K),
		uintptr(rows), in, out, compute
	if err := set(descTransA, plain); err != nil {
		return m, err
	}
	if err := set(descTransB, 0); err != nil {
		return m, err
	}
	shapes := [3][3]int{{rows, cols, rows}, {q.K, q.M, q.K}, {q.N, q.M, q.N}}
	for i, kind := range []uintptr{in, in, out} {
		s := shapes[i]
		if err := b.must("cublasLtMatrixLayoutCreate", call(b.Layout, uintptr(unsafe.Pointer(&m.layout[i])), kind,
			uintptr(s[0]), uintptr(s[1]), uintptr(s[2]))); err != nil {
			return m, err
		}
	}
	return m, w.choose(m, t)
}

// choose asks for the library's own choice of algorithm.
func (w *Worker) choose(m *matmul, t coll.Dtype) error {
	b := m.b
	if err := b.must("cublasLtMatmulPreferenceCreate", call(b.Preference, uintptr(unsafe.Pointer(&m.pref)))); err != nil {
		return err
	}
	room := workspaceBytes
	if err := b.must("cublasLtMatmulPreferenceSetAttribute",
		call(b.PreferSet, m.pref, preferWorkspace, uintptr(unsafe.Pointer(&room)), 8)); err != nil {
		return err
	}
	// its factors have scales, in the GPU's memory; sums are kept as frameworks have them in the forward pass
	if t == coll.F8E4M3 {
		var fast int8 = 1
		if err := b.must("cublasLtMatmulDescSetAttribute",
			call(b.DescSet, m.desc, descFast, uintptr(unsafe.Pointer(&fast)), 1)); err != nil {
			return err
		}
		if err := w.driver.grow(&w.flag, 8); err != nil {
			return err
		}
		if err := w.driver.repeat(w.flag, 0, 4, m.one[:4]); err != nil {
			return err
		}
		for _, a := range []int{descScaleA, descScaleB} {
			if err := b.must("cublasLtMatmulDescSetAttribute",
				call(b.DescSet, m.desc, uintptr(a), uintptr(unsafe.Pointer(&w.flag.at)), 8)); err != nil {
				return err
			}
		}
	}
	var found int32
	err := b.must("cublasLtMatmulAlgoGetHeuristic", call(b.Heuristic, b.handle, m.desc, m.layout[0], m.layout[1],
		m.layout[2], m.layout[2], m.pref, 1, uintptr(unsafe.Pointer(&m.algo[0])), uintptr(unsafe.Pointer(&found))))
	if err == nil && found == 0 {
		err = &device.Failure{Text: "cuBLASLt has no algorithm for this product"}
	}
	return err
}

func (m *matmul) start(stream uintptr) error {
	if m.c != nil {
		return m.gemm()
	}
	b := m.b
	return b.must("cublasLtMatmul", call(b.Matmul, b.handle, m.desc, uintptr(unsafe.Pointer(&m.one[0])), m.bb, m.layout[0],
		m.a, m.layout[1], uintptr(unsafe.Pointer(&m.zero[0])),
		m.d, m.layout[2], m.d, m.layout[2], uintptr(unsafe.Pointer(&m.algo[0])), m.scratch, uintptr(workspaceBytes), stream))
}

// product times a matrix product on random values, samples clocks and power while it runs, and computes some elements
// again.
func (w *Worker) product(q device.Request) (*device.Result, error) {
	if w.driver.amd {
		return nil, &device.Failure{Text: "products are measured through cuBLASLt, on NVIDIA's GPUs only"}
	}
	const most = 1 << 20
	if min(q.M, q.N, q.K) < 1 || max(q.M, q.N, q.K) > most {
		return nil,
			&device.Failure{Text: fmt.Sprintf("a product of %d×%d×%d; expected sides from 1 to %d", q.M, q.N, q.K, most)}
	}
	if w.blas == nil {
		var err error
		if w.blas, err = openBLAS(); err != nil {
			return nil, err
		}
		w.cublas = openCUBLAS(w.blas.path)
	}
	m, err := w.prepare(q)
	if m != nil {
		defer m.close()
	}
	if err != nil {
		return nil, err
	}
	if err := w.factors(m, q); err != nil {
		return nil, err
	}
	r := &device.Result{By: "cuBLASLt"}
	if t, _, _, _, _, _ := kindOf(q.Dtype); w.cublas != nil && framework(t) {
		r.By = "cuBLAS"
		if err := w.byCUBLAS(m, q.Dtype == "tf32"); err != nil {
			return nil, err
		}
	}
	for range max(q.Warm, 1) {
		if err := m.start(w.driver.stream); err != nil {
			return nil, err
		}
	}
	if err := w.driver.sync(); err != nil {
		return nil, err
	}
	seen := w.watch()
	w.driver.mark(0)
	for range max(q.Iters, 1) {
		if err := m.start(w.driver.stream); err != nil {
			return nil, err
		}
	}
	w.driver.mark(1)
	if err := w.driver.sync(); err != nil {
		return nil, err
	}
	seen(r)
	if r.Micros = w.driver.elapsed() / float64(max(q.Iters, 1)); r.Micros > 0 {
		r.TFLOPS = 2 * float64(q.M) * float64(q.N) * float64(q.K) / r.Micros / 1e6
	}
	if q.Check {
		return r, w.again(m, q, r)
	}
	return r, nil
}

// factors lays out A, B, D and the workspace, and fills A and B with random values: the power that a GPU needs, and so
// its clock, depends on them.
func (w *Worker) factors(m *matmul, q device.Request) error {
	d := w.driver
	a, b := int64(q.M)*int64(q.K)*int64(m.elementA), int64(q.N)*int64(q.K)*int64(m.elementA)
	pad := func(n int64) int64 { return (n + 255) &^ 255 }
	if err := d.grow(&w.send, pad(a)+pad(b)); err != nil {
		return err
	}
	if err := d.grow(&w.recv, pad(int64(q.M)*int64(q.N)*int64(m.elementD))+workspaceBytes); err != nil {
		return err
	}
	t, _, _, _, _, _ := kindOf(q.Dtype)
	if err := d.repeat(w.send, 0, a, randoms(t, 4<<20, 4)); err != nil {
		return err
	}
	if err := d.repeat(w.send, pad(a), b, randoms(t, 4<<20, 5)); err != nil {
		return err
	}
	m.a, m.bb = w.send.at, w.send.at+uintptr(pad(a))
	m.d, m.scratch = w.recv.at, w.recv.at+uintptr(pad(int64(q.M)*int64(q.N)*int64(m.elementD)))
	return nil
}

// again computes some elements on the host.
func (w *Worker) again(m *matmul, q device.Request, r *device.Result) error {
	t, _, _, _, _, _ := kindOf(q.Dtype)
	size := int64(m.elementA)
	fetch := func(at uintptr, n int64) ([]byte, error) {
		buf := make([]byte, n)
		return buf,
			w.driver.must("copy from the GPU", call(w.driver.f.FromGPU, uintptr(unsafe.Pointer(&buf[0])), at, uintptr(n)))
	}
	rng := rand.New(rand.NewPCG(uint64(q.M), uint64(q.N)))
	for range 6 {
		i, j := rng.IntN(q.M), rng.IntN(q.N)
		row, err := fetch(m.a+uintptr(int64(i)*int64(q.K)*size), int64(q.K)*size)
		if err != nil {
			return err
		}
		column := make([]byte, 0, int64(q.K)*size)
		if !q.Plain {
			if column, err = fetch(m.bb+uintptr(int64(j)*int64(q.K)*size), int64(q.K)*size); err != nil {
				return err
			}
		}
		for k := 0; q.Plain && k < q.K; k++ {
			one, err := fetch(m.bb+uintptr((int64(k)*int64(q.N)+int64(j))*size), size)
			if err != nil {
				return err
			}
			column = append(column, one...)
		}
		got, err := fetch(m.d+uintptr((int64(i)*int64(q.N)+int64(j))*int64(m.elementD)), int64(m.elementD))
		if err != nil {
			return err
		}
		sum, scale := 0.0, 0.0
		for k := range q.K {
			x := decode(row[k*int(size):], t) * decode(column[k*int(size):], t)
			sum, scale = sum+x, scale+math.Abs(x)
		}
		out := t
		if t == coll.F8E4M3 {
			out = coll.BFloat16
		}
		r.Tested++
		if tolerance := math.Abs(sum)/100 + scale*1e-3; math.Abs(decode(got, out)-sum) > tolerance {
			r.Wrong++
		}
	}
	return nil
}
