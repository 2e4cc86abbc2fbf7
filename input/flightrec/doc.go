// Package flightrec reads the dumps of PyTorch's flight recorder: what collectives a rank launched, on which process
// group, in what order and how far each came. Both forms are read, the pickle that the watchdog writes and the JSON
// that the worker server returns, of recorder versions 2.4 to 2.10.
//
// Dumps of all ranks of a job go into one [Set], which keeps one copy of every name and signature: thousands of dumps
// are little more than their entries. A dump does not say whose it is; its file name usually does, see [RankOf].
package flightrec

import (
	"path"
	"strconv"
	"strings"
)

// RankOf is the rank that a file's name gives: nccl_trace_rank_12, rank12.json, stderr.12.log, 12/stderr.log; -1 for
// names that give none. A number behind "pid" is a process.
func RankOf(name string) int {
	name = strings.ReplaceAll(name, "\\", "/")
	base := path.Base(name)
	lower := strings.ToLower(base)
	if i := strings.LastIndex(lower, "rank"); i >= 0 {
		if n, ok := leadingNumber(strings.TrimLeft(lower[i+4:], "_-.=")); ok {
			return n
		}
	}
	for {
		ext := path.Ext(base)
		if ext == "" || ext == base || isNumber(ext[1:]) {
			break
		}
		base = strings.TrimSuffix(base, ext)
	}
	end := len(base)
	start := end
	for start > 0 && base[start-1] >= '0' && base[start-1] <= '9' {
		start--
	}
	if start < end {
		before := strings.ToLower(strings.TrimRight(base[:start], "_-.="))
		n, err := strconv.Atoi(base[start:end])
		if err == nil && n < 1<<20 && !strings.HasSuffix(before, "pid") &&
			!(strings.HasSuffix(before, "node") || strings.HasSuffix(before, "host")) {
			return n
		}
		return -1
	}
	if n, err := strconv.Atoi(path.Base(path.Dir(name))); err == nil && n >= 0 && n < 1<<20 {
		return n // torchrun keeps one folder a rank
	}
	return -1
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil
}

func leadingNumber(s string) (int, bool) {
	end := 0
	for end < len(s) && end < 8 && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(s[:end])
	return n, err == nil
}
