package nccltests

import (
	"bytes"
	"strconv"
	"strings"

	"busbar.dev/internal/lazyre"
	"busbar.dev/unit"
)

// People print nccl-tests' rows in fewer columns, and scripts print tables of their own. In the ml-engineering book:
//
//	size (B)  time (us)  algbw (GB/s)  busbw (GB/s)
//	32_768    43.83      0.75          1.31
//
// Its all_reduce_latency_comp.py compares one payload with many small ones; the launcher's line tells how many ranks
// there were:
//
//	----------- 1000x 0.004GB ----------------
//	busbw: 374.391 Gbps
//
// EleutherAI's cookbook and DeepSpeed:
//
//	---- Performance of all_reduce on 16 devices ----
//	Size (Bytes)  Description  Duration    Throughput (Gbps)  BusBW (Gbps)
//	131.07 KB     65536x2      105.74 us   19.835             18.595
var (
	shortHead  = lazyre.New(`(?i)^size ?\(B\)\s+time ?\(us\)\s+algbw ?\(GB/s\)\s+busbw ?\(GB/s\)$`)
	shortRow   = lazyre.New(`^([\d_]{1,20})\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)$`)
	manyHead   = lazyre.New(`^-{3,} (\d{1,7})x ([\d.]+)GB -{3,}$`)
	manyRate   = lazyre.New(`^(algbw|busbw): ([\d.]+) Gbps$`)
	perNode    = lazyre.New(`--nproc[-_]per[-_]node[= ](\d{1,4})`)
	deviceHead = lazyre.New(`^-{3,} Performance of (\w+) on (\d{1,7}) devices -{3,}`)
	deviceRow  = lazyre.New(`^[\d.]+(?: [KMGT]?B)?\s+(\d{1,13})x(\d{1,2})\s+([\d.]+)( us| ms)?\s+[\d.]+\s+([\d.]+)$`)
)

// isScript reports whether a text has such a table.
func isScript(data []byte) bool {
	for line := range bytes.Lines(data[:min(len(data), 1<<20)]) {
		text := strings.TrimSpace(string(line))
		if len(text) < 200 && (shortHead.MatchString(text) || manyHead.MatchString(text) || deviceHead.MatchString(text)) {
			return true
		}
	}
	return false
}

// script is the table of a script that is being read.
type script struct {
	form  byte       // 's'hort columns, 'm'any payloads, 'd'evices
	size  unit.Bytes // of the payload whose rate comes next; 0: none does
	local int        // ranks of a node, as a launcher's line says
	bits  bool       // rates are in Gb/s
}

// scripts reads a line of such a table; false when it is none.
func (p *parser) scripts(num int, body string) bool {
	s := &p.script
	if m := perNode.FindStringSubmatch(body); m != nil {
		s.local, _ = strconv.Atoi(m[1])
	}
	if m := deviceHead.FindStringSubmatch(body); m != nil {
		p.scriptTable(num, 'd', m[1], m[2])
		return true
	}
	if m := manyHead.FindStringSubmatch(body); m != nil {
		if s.form != 'm' {
			p.scriptTable(num, 'm', "all_reduce", strconv.Itoa(s.local))
		}
		s.size = unit.Bytes(min(figureOf(m[2])*1e9, 1e15))
		return true
	}
	if shortHead.MatchString(body) {
		p.scriptTable(num, 's', "", strconv.Itoa(p.serial))
		return true
	}
	t := p.lastTable()
	if t == nil || s.form == 0 {
		return false
	}
	return p.scriptRow(t, num, body)
}

// scriptTable begins a table.
func (p *parser) scriptTable(num int, form byte, op, ranks string) {
	p.script.form = form
	t := p.fresh(num, func(t *Table) bool { return t.done() || t.world > 0 })
	if t == nil {
		p.script.form = 0
		return
	}
	if op != "" {
		t.Test, t.OpFrom = strings.NewReplacer("all_to_all", "alltoall", "pt2pt", "sendrecv").Replace(op)+"_perf", "header"
	}
	t.world, _ = strconv.Atoi(ranks)
	t.torch = form != 's'
}

// scriptRow reads a row of the table at hand.
func (p *parser) scriptRow(t *Table, num int, body string) bool {
	s := &p.script
	switch s.form {
	case 's':
		if m := shortRow.FindStringSubmatch(body); m != nil {
			p.addPoint(t, num, "float", figureOf(m[1]), figureOf(m[2]), figureOf(m[3]), figureOf(m[4]))
			return true
		}
	case 'm':
		if m := manyRate.FindStringSubmatch(body); m != nil && s.size > 0 && t.world > 1 {
			factor, size := 2*float64(t.world-1)/float64(t.world), float64(s.size)
			alg := figureOf(m[2]) / 8
			if m[1] == "busbw" {
				alg /= factor
			}
			s.size = 0 // every rank prints the same
			p.addPoint(t, num, "float", size, size/alg/1e3, alg, alg*factor)
			return true
		}
	case 'd':
		if strings.HasPrefix(body, "Size (Bytes)") {
			s.bits = strings.Contains(body, "(Gbps)")
			return true
		}
		if m := deviceRow.FindStringSubmatch(body); m != nil {
			size, micros, bus := figureOf(m[1])*figureOf(m[2]), figureOf(m[3]), figureOf(m[5])
			if m[4] == " ms" {
				micros *= 1e3
			}
			if s.bits {
				bus /= 8
			}
			if t.Test == "all_gather_perf" {
				size *= float64(t.world) // it counts what a rank gives
			}
			p.addPoint(t, num, "float", size, micros, size/micros/1e3, bus)
			return true
		}
	}
	return false
}
