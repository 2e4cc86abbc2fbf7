// Package flightrec reads the dumps of PyTorch's flight recorder: what collectives a rank launched, on which process
// group, in what order and how far each came. Both forms are read, the pickle that the watchdog writes and the JSON
// that the worker server returns, of recorder versions 2.4 to 2.10.
//
// Dumps of all ranks of a job go into one [Set], which keeps one copy of every name and signature: thousands of dumps
// are little more than their entries. A dump does not say whose it is; its file name usually does, see [RankOf].
package flightrec

import (
	"path"
	"strings"

	"busbar.dev/input/internal/num"
	"busbar.dev/internal/lazyre"
)

// A rank's number stands behind its word, or before the endings of a file that no other word has a number of.
var (
	rankWord = lazyre.New(`(?i)^.*rank[_\-.=]*(\d{1,8})`)
	numbered = lazyre.New(`(?i)^.*?(pid|node|host)?[_\-.=]*(\d+)(?:\.[^.]*[^.\d][^.]*)*$`)
)

// RankOf is the rank that a file's name gives: nccl_trace_rank_12, rank12.json, stderr.12.log, 12/stderr.log; -1 for
// names that give none. A number behind "pid" is a process.
func RankOf(name string) int {
	name = strings.ReplaceAll(name, "\\", "/")
	base := path.Base(name)
	digits := path.Base(path.Dir(name)) // torchrun keeps one folder a rank
	if m := rankWord.FindStringSubmatch(base); m != nil {
		digits = m[1]
	} else if m := numbered.FindStringSubmatch(base); m != nil {
		if m[1] != "" {
			return -1
		}
		digits = m[2]
	}
	return num.Or(digits, 0, maxRanks-1, -1)
}
