package nccltests

import (
	"strconv"
	"strings"

	"busbar.dev/internal/lazyre"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// Benchmarks that run on torch.distributed print tables of their own. IBM's counts sizes in 1e6 bytes, and its rate is
// the bus bandwidth:
//
//	size(MB)   tavg(usec)    tmin(usec)    tmax(usec)  avgbw(GB/sec)  maxbw(GB/sec)  minbw(GB/sec)
//	  100.00       480.2         470.0         510.3         364.4          372.3          342.9
//
// Those of PARAM name collective and type in every row; its time is the median over ranks:
//
//	COMMS-RES         size (B)  nElementsPerRank  Latency(us):p50  p75  p95  Min  Max  AlgBW(GB/s)  BusBW(GB/s)
//	COMMS-RES-all_reduce-float32  1048576  262144  58.1  58.3  60.2  57.0  61.0  18.048  31.584
const (
	ibmTable   = "avgbw(GB/sec)"
	paramTable = "COMMS-RES"
)

var (
	ibmRow   = lazyre.New(`^([\d.]+)\s+([\d.]+)\s+[\d.]+\s+[\d.]+\s+([\d.]+)\s+[\d.]+\s+[\d.]+$`)
	paramRow = lazyre.New(
		`COMMS-RES-(\w+?)(?:_base|_single|_into_tensor|_tensor)?-(\w+)\s+(\d+)\s+\d+\s+([\d.]+)\s+[\d.]+\s+[\d.]+\s+[\d.]+\s+[\d.]+\s+([\d.]+)\s+([\d.]+)`)
	worldSize = lazyre.New(`(?i)^world size\s*[:=]\s*(\d{1,7})\b`)
)

// torchTables reads a line of such a table; false when it is none.
func (p *parser) torchTables(num int, body string) bool {
	if m := worldSize.FindStringSubmatch(body); m != nil {
		p.world, _ = strconv.Atoi(m[1])
		return false
	}
	if strings.Contains(body, ibmTable) && strings.Contains(body, "tavg(usec)") {
		if t := p.fresh(num, (*Table).done); t != nil {
			t.torch, t.world = true, p.world
		}
		return true
	}
	if m := paramRow.FindStringSubmatch(body); m != nil {
		program := strings.ReplaceAll(m[1], "all_to_all", "alltoall") + "_perf"
		if t := p.fresh(num, func(t *Table) bool { return t.done() && t.Test != program }); t != nil {
			t.Test, t.OpFrom, t.world = program, "header", p.world
			p.torchPoint(t, num, strings.TrimSuffix(m[2], "32"), figureOf(m[3]), m[4], m[6])
		}
		return true
	}
	if t := p.lastTable(); t != nil && t.torch {
		if m := ibmRow.FindStringSubmatch(body); m != nil {
			p.torchPoint(t, num, "float", 1e6*figureOf(m[1]), m[2], m[3])
			return true
		}
	}
	return strings.Contains(body, paramTable) && strings.Contains(body, "nElementsPerRank")
}

// torchPoint files a row that has the bus bandwidth alone.
func (p *parser) torchPoint(t *Table, num int, dtype string, size float64, micros, bus string) {
	us := figureOf(micros)
	p.addPoint(t, num, dtype, size, us, size/us/1e3, figureOf(bus))
}

// figureOf reads a number that an expression found; 0 where it is none.
func figureOf(text string) float64 {
	v, _ := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	return v
}

// addPoint files a row: bytes, microseconds, and rates in GB/s.
func (p *parser) addPoint(t *Table, num int, dtype string, size, micros, alg, bus float64) {
	if !(size >= 1 && size <= 1e15 && micros > 0 && micros < 1e12) || p.rows >= maxRows {
		p.out.Unused++
		return
	}
	p.rows++
	t.addRow(result.Point{Size: unit.Bytes(size), Out: timing(micros, rate(alg), rate(bus), nil), Line: num}, dtype, "sum",
		-1)
}
