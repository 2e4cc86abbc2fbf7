//go:build linux

// Package native works GPUs through the vendor's libraries, which it loads at run time: the driver (libcuda,
// libamdhip64), NCCL or RCCL, NVML and cuBLASLt. Nothing of them is linked, so that a program with this package starts
// everywhere and says what is missing. It needs a dynamic linker, which is why only busbar-gpu imports it.
//
// Calls go through integers: none of the functions used has a floating-point argument. All calls of a worker come from
// one thread, to which the driver binds its context.
//
// A call that fails ends the request: it panics with a *device.Failure, which Worker.Answer makes the answer.
package native

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"

	"busbar.dev/engine/device"
)

// library is a shared library that was loaded.
type library struct {
	handle uintptr
	path   string
	name   string                // before the names of calls that failed
	words  func(code int) string // what a code that its functions return means
}

// load opens the first of names that can be opened, in the folders given and where the dynamic linker looks. Explicit,
// where it is not empty, is the file or its folder and nothing else is tried.
func load(what, explicit string, names, folders []string) (*library, error) {
	var tried []string
	if explicit != "" {
		tried = []string{explicit}
		if info, err := os.Stat(explicit); err == nil && info.IsDir() {
			tried = nil
			for _, n := range names {
				tried = append(tried, filepath.Join(explicit, n))
			}
		}
	} else {
		tried = append(tried, names...)
		for _, pattern := range folders {
			for _, n := range names {
				found, _ := filepath.Glob(filepath.Join(pattern, n))
				tried = append(tried, found...)
			}
		}
	}
	var last error
	for _, path := range tried {
		h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err == nil {
			return &library{handle: h, path: path}, nil
		}
		if last == nil || !strings.Contains(err.Error(), "No such file") { // a file that is there says most
			last = err
		}
	}
	text := "no such file"
	if last != nil {
		text = last.Error()
	}
	if explicit == "" {
		tried = append(tried, folders...)
	}
	return nil, &device.Failure{Library: what, Text: text, Tried: tried}
}

// symbols fills the fields of a struct of function addresses; tag says under which key a field has its name. A name
// that begins with ? may be missing.
func (l *library) symbols(into any, tag string) error {
	v := reflect.ValueOf(into).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get(tag)
		optional := strings.HasPrefix(name, "?")
		name = strings.TrimPrefix(name, "?")
		if name == "" {
			continue
		}
		f, err := purego.Dlsym(l.handle, name)
		if err != nil {
			if optional {
				continue
			}
			return &device.Failure{Library: l.path, Text: "it has no function " + name + ": another release is needed"}
		}
		v.Field(i).SetUint(uint64(f))
	}
	return nil
}

// call calls a function with numbers; its result is a C int.
func call(f uintptr, args ...uintptr) int {
	if f == 0 {
		return missing
	}
	r, _, _ := purego.SyscallN(f, args...)
	return int(int32(r))
}

// missing is what a function that the library does not have returns.
const missing = -1

// pass calls a function with numbers, and pointers to what it reads or writes, which stay where they are until it
// returns.
func pass(f uintptr, args ...any) int {
	list := make([]uintptr, len(args))
	for i, a := range args {
		switch v := reflect.ValueOf(a); {
		case v.Kind() == reflect.Pointer:
			list[i] = v.Pointer()
		case v.CanInt():
			list[i] = uintptr(v.Int())
		default:
			list[i] = uintptr(v.Uint())
		}
	}
	code := call(f, list...)
	runtime.KeepAlive(args)
	return code
}

// do passes a function what it needs, and ends the request where it fails.
func (l *library) do(what string, f uintptr, args ...any) { l.must(what, pass(f, args...)) }

// must ends the request where a call failed.
func (l *library) must(what string, code int) {
	if code != 0 {
		panic(l.failure(what, code))
	}
}

// failure is why a call failed.
func (l *library) failure(what string, code int) *device.Failure {
	text := "the library has no such function"
	if code != missing {
		text = l.words(code)
	}
	if text == "" {
		text = fmt.Sprintf("error %d", code)
	}
	return &device.Failure{Call: l.name + what, Code: code, Text: text}
}

// refuse ends the request.
func refuse(format string, args ...any) { panic(&device.Failure{Text: fmt.Sprintf(format, args...)}) }

// check ends the request where something failed.
func check(err error) {
	if err != nil {
		panic(failed(err))
	}
}

// text is a C string.
func text(p uintptr) string {
	if p == 0 {
		return ""
	}
	at := *(*unsafe.Pointer)(unsafe.Pointer(&p))
	const most = 4096
	for n := range most {
		if *(*byte)(unsafe.Add(at, n)) == 0 {
			return string(unsafe.Slice((*byte)(at), n))
		}
	}
	return ""
}

// chars is a buffer for a C string, and what is in it.
func chars(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}

// Folders in which Python environments and packages have libraries of NVIDIA and AMD.
func pythonFolders() []string {
	var roots []string
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if dir := os.Getenv(name); dir != "" {
			roots = append(roots, filepath.Join(dir, "lib"))
		}
	}
	for _, name := range []string{"python3", "python"} {
		if path := inPath(name); path != "" {
			roots = append(roots, filepath.Join(filepath.Dir(path), "..", "lib")) // that of an environment is a link elsewhere
			if real, err := filepath.EvalSymlinks(path); err == nil {
				roots = append(roots, filepath.Join(filepath.Dir(real), "..", "lib"))
			}
		}
	}
	roots = append(roots, "/opt/*/.venv/lib", "/opt/venv/lib", "/usr/lib", "/usr/local/lib")
	var list []string
	seen := map[string]bool{}
	for _, r := range roots {
		for _, part := range []string{"site-packages", "dist-packages"} {
			dir := filepath.Join(r, "python3*", part, "nvidia")
			for _, sub := range []string{"nccl/lib", "cu1?/lib", "cublas/lib"} {
				if d := filepath.Join(dir, sub); !seen[d] {
					seen[d] = true
					list = append(list, d)
				}
			}
		}
	}
	return list
}

// inPath is where a program is, "" nowhere.
func inPath(name string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// failed is the failure that an error is.
func failed(err error) *device.Failure {
	var f *device.Failure
	if errors.As(err, &f) {
		return f
	}
	return &device.Failure{Text: err.Error()}
}

// returned is the C string that a function returns.
func returned(f uintptr, args ...uintptr) string {
	if f == 0 {
		return ""
	}
	r, _, _ := purego.SyscallN(f, args...)
	return text(r)
}
