package nccl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/internal/failure"
)

// envInt reads a number from the settings, as NCCL does: base by its prefix.
func envInt(env map[string]string, key string) (int, bool) {
	s, ok := env[key]
	if !ok || strings.TrimSpace(s) == "" {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(s), 0, 32)
	return int(n), err == nil
}

// auto marks LL128 before anybody asked for it: the model decides.
const auto = 2

// enabled is what settings allow, by collective: 0 no, 1 yes, auto.
type enabled struct {
	algo  [nOps][nAlgos]int
	proto [nOps][nProtos]int
}

// parseSettings reads NCCL_ALGO and NCCL_PROTO (NCCL 2.28 src/graph/tuning.cc,
// parseList).
func parseSettings(r *rules, env map[string]string) (enabled, error) {
	var e enabled
	for op := range e.algo {
		for a := range r.Algos {
			e.algo[op][a] = 1
		}
		e.proto[op] = [nProtos]int{LL: 1, LL128: auto, Simple: 1}
	}
	parse := parseListOld
	if r.CallLists {
		parse = parseList
	}
	if s, ok := env["NCCL_PROTO"]; ok {
		err := parse("NCCL_PROTO", s, ncclNames(protoNames), func(op, i, on int) { e.proto[op][i] = on })
		if err != nil {
			return e, err
		}
	}
	if s, ok := env["NCCL_ALGO"]; ok {
		err := parse("NCCL_ALGO", s, ncclNames(algoNames[:r.Algos]), func(op, i, on int) { e.algo[op][i] = on })
		if err != nil {
			return e, err
		}
	}
	return e, nil
}

// splitAt splits at a mark and leaves empty words out, as NCCL's parser does.
func splitAt(s, mark string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(mark, r) })
}

// parseListOld reads "Ring,Tree" or "^Tree" for all collectives; words it does not
// know are passed over (up to 2.23).
func parseListOld(_, s string, names []string, set func(op, i, on int)) error {
	rest, not := strings.CutPrefix(s, "^")
	for op := range nOps {
		for i := range names {
			set(op, i, bit(not))
		}
		for _, w := range splitAt(rest, ",") {
			if i := index(names, w); i >= 0 {
				set(op, i, bit(!not))
			}
		}
	}
	return nil
}

// parseList reads "[list];func:list;…" (2.24 and later).
func parseList(key, s string, names []string, set func(op, i, on int)) error {
	for n, entry := range splitAt(s, ";") {
		parts := splitAt(entry, ":")
		list, fn := entry, ""
		switch {
		case len(parts) >= 2:
			fn, list = parts[0], parts[1]
		case n > 0:
			return failure.In("env",
				fmt.Errorf("%s=%s: %q has no collective before it; only the first entry may go without", key, s, entry))
		}
		rest, not := strings.CutPrefix(list, "^")
		found := false
		for op := range nOps {
			if fn != "" && !strings.EqualFold(fn, opNames[op].nccl) {
				continue
			}
			found = true
			for i := range names {
				set(op, i, bit(not))
			}
			for _, w := range splitAt(rest, ",") {
				i := index(names, w)
				if i < 0 {
					return failure.In("env", fmt.Errorf("%s=%s: %q is none of %s", key, s, w, strings.Join(names, ", ")))
				}
				set(op, i, bit(!not))
			}
		}
		if !found {
			return failure.In("env", fmt.Errorf("%s=%s: %q is none of %s", key, s, fn, strings.Join(ncclNames(opNames), ", ")))
		}
	}
	return nil
}

func bit(on bool) int {
	if on {
		return 1
	}
	return 0
}

func index(names []string, s string) int {
	return slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, s) })
}

// gate takes out of the table what the system or the user forbids.
func (t *Table) gate(c *Comm, g *Graphs) error {
	e, err := parseSettings(c.rules, c.Env)
	if err != nil {
		return err
	}
	r := c.rules
	full := t.Est
	for op := range Op(nOps) {
		e.available(c, op)
		any := false
		for a := range Algo(r.Algos) {
			for p := range Proto(nProtos) {
				on := e.proto[op][p]
				if on == auto {
					on = bit(c.ll128(g.graphOf(a), op, a))
				}
				keepRing := r.KeepsRing && a == Ring && op != AllReduce // 2.18: Ring always stays for these
				if on == 0 || e.algo[op][a] == 0 && !keepRing {
					t.Est[op][a][p].BW = 0
				}
				any = any || t.Est[op][a][p].BW != 0
				if r.RingBackProto && a == Ring && on == 0 {
					full[op][Ring][p].BW = 0
				}
			}
		}
		if !any && r.RingBack { // Ring comes back when nothing is left
			for p := range Proto(nProtos) {
				t.Est[op][Ring][p].BW = full[op][Ring][p].BW
			}
		}
	}
	return nil
}

// available forbids algorithms that the system does not have.
func (e *enabled) available(c *Comm, op Op) {
	on := &e.algo[op]
	if c.NNodes == 1 {
		on[NVLSTree] = 0
	}
	if !c.CollNet {
		on[CollNetDirect], on[CollNetChain] = 0, 0
		if c.NNodes > 1 {
			on[NVLS] = 0
		}
		if !c.rules.CallLists && on[Ring]+on[Tree]+on[NVLS]+on[NVLSTree] == 0 {
			on[Ring], on[Tree] = 1, 1
		}
	}
	if !c.NVSwitch {
		on[CollNetDirect] = 0
	}
}

// ll128 is NCCL's own gate for LL128, which needs links that keep 128 bytes
// together (NCCL 2.28 src/graph/tuning.cc, ncclTopoTuneModel).
func (c *Comm) ll128(g *Graph, op Op, a Algo) bool {
	if c.RCCL != nil {
		return c.ll128RCCL(g)
	}
	r := c.rules
	far := PathPXB
	if n, ok := envInt(c.Env, "NCCL_LL128_C2C"); c.MinCC >= 90 && !(r.LL128Any && ok && n == 0) {
		far = PathPXN
	}
	near := PathNVB
	if !r.LL128NVB {
		near = PathNVL
	}
	if g.TypeInter > far || g.TypeIntra > near {
		return false
	}
	if c.MinCC != c.MaxCC && !(r.LL128Mixed && c.MinCC >= 90) {
		return false
	}
	if c.MinCC == 90 && c.CUDA118 && op == AllReduce && a == Ring && c.NRanks == 2 {
		return false
	}
	return r.LL128Any && c.MinCC >= 70 || slices.Contains(r.LL128CC, c.MinCC)
}
