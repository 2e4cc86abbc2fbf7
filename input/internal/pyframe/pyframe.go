// Package pyframe tells a program's own calls from those of libraries in stacks of Python. Who reads a stack wants the
// line of the program that waits, not the line of PyTorch that it waits in.
package pyframe

import (
	"slices"
	"strings"
)

// Origin is whose code a frame is; the greater one tells a reader more.
type Origin uint8

// Whose code a frame is.
const (
	Library Origin = iota // PyTorch and Python's own modules
	Package               // anything else that is installed
	Own                   // the program
)

// folders of PyTorch's and Python's own.
var folders = strings.Fields("/torch/distributed/ /torch/_ /torch/nn/ /torch/autograd/ /torch/utils/ /lib/python")

// modules of Python that programs wait in. py-spy prints them without a folder.
var modules = strings.Fields("torch/ threading.py selectors.py socket.py queue.py subprocess.py ssl.py runpy.py " +
	"contextlib.py multiprocessing/ concurrent/ asyncio/ importlib/ <frozen")

// Of is whose code a file is.
func Of(file string) Origin {
	file = strings.ReplaceAll(file, "\\", "/")
	_, installed, ok := strings.Cut(file, "-packages/")
	switch {
	case ok && !strings.HasPrefix(installed, "torch/"):
		return Package
	case ok, file == "", slices.ContainsFunc(folders, func(f string) bool { return strings.Contains(file, f) }),
		slices.ContainsFunc(modules, func(m string) bool { return strings.HasPrefix(file, m) }):
		return Library
	}
	return Own
}

// Telling is which of n frames, the innermost first, tells most about where a program is: the first of its own, else of
// an installed package, else of a library. It is -1 of none.
func Telling(n int, file func(i int) string) int {
	best, origin := -1, Library
	for i := 0; i < n && origin < Own; i++ {
		if o := Of(file(i)); best < 0 || o > origin {
			best, origin = i, o
		}
	}
	return best
}
