package cluster

import (
	"fmt"
	"strings"
)

// matrixLacksLinks reports whether the base's tool and the further one both printed a
// matrix, and the base's has none of the links that the further one has: then the
// base's word stands, and compareSaid tells of the other.
func (m *merging) matrixLacksLinks(t *NodeType) bool {
	if m.base.Said == nil || t.Said == nil {
		return false
	}
	pairs := 0
	for i, row := range m.base.Said.Class {
		for k, text := range row {
			c, ok := ParseClass(text)
			if i == k || !ok {
				continue
			}
			if pairs++; c.Type.fast() {
				return false
			}
		}
	}
	return pairs > 0
}

// fast reports a class that links between GPUs give, and PCIe does not.
func (t ClassType) fast() bool { return t == NV || t == XG || t == LK }

// compareMatrices holds the merged graph against the matrix another tool printed.
func compareMatrices(base *NodeType, source string, ty typed, to []int) []Warning {
	have := base.Matrix()
	at := make(map[string]int, len(have.Names))
	for i, n := range have.Names {
		at[n] = i
	}
	pos := make([]int, len(ty.t.Said.Names))
	for i, n := range ty.t.Said.Names {
		pos[i] = -1
		if d := ty.t.ByName(n); d >= 0 && d < len(to) && to[d] >= 0 {
			if k, ok := at[base.Devices[to[d]].Name]; ok {
				pos[i] = k
			}
		}
	}
	var differ []string
	for i := range ty.t.Said.Class {
		for k := i + 1; k < len(ty.t.Said.Class[i]) && k < len(pos); k++ {
			if pos[i] < 0 || pos[k] < 0 {
				continue
			}
			said, is := ty.t.Said.Class[i][k], have.Class[pos[i]][pos[k]]
			if c, ok := ParseClass(said); ok && is != "?" && c.String() != is && !sameClass(c.String(), is) {
				differ = append(differ, fmt.Sprintf("%s–%s is %s there, %s here", ty.t.Said.Names[i], ty.t.Said.Names[k], c, is))
			}
		}
	}
	if len(differ) == 0 {
		return nil
	}
	more := ""
	if len(differ) > 3 {
		more = fmt.Sprintf("; and %d more", len(differ)-3)
		differ = differ[:3]
	}
	return []Warning{{Text: fmt.Sprintf("%s contradicts %s, which is kept: %s%s", ty.source, source, strings.Join(differ, "; "), more)}}
}

// sameClass forgives PHB against NODE: NCCL's XML does not tell host bridges apart.
func sameClass(a, b string) bool {
	return (a == "PHB" || a == "NODE") && (b == "PHB" || b == "NODE")
}
