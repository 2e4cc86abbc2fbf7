package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/internal/failure"
	"busbar.dev/result"
)

// keepFlag is where measured results are kept.
type keepFlag struct {
	Output string `short:"o" placeholder:"FILE" help:"Add the results to FILE, a JSON object a line, for bench diff (those of GPUs also for calibrate and validate); - for standard output instead of the table."`
}

// refused says before the work that its results could not be kept.
func (f *keepFlag) refused(e *env, json bool) error {
	switch {
	case f.Output == "-" && json:
		return errors.New("-o - and --json both want standard output; take one of them")
	case f.Output == "" || f.Output == "-":
		return nil
	}
	if err := e.writable(f.Output); err != nil {
		return err
	}
	_, err := e.kept(f.Output)
	return err
}

// toStdout says that records go to standard output instead of a table.
func (f *keepFlag) toStdout() bool { return f.Output == "-" }

// keep adds results to the file.
func (f *keepFlag) keep(e *env, list result.Sweeps) error {
	switch f.Output {
	case "":
		return nil
	case "-":
		return result.Write(e.stdout, list...)
	}
	var b bytes.Buffer
	if err := result.Write(&b, list...); err != nil {
		return err
	}
	if e.deliverTo != nil {
		return e.deliverTo(b.Bytes())
	}
	return e.addTo(f.Output, b.Bytes())
}

// kept is what a file of records holds already; nothing where there is none yet.
func (e *env) kept(name string) ([]byte, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, nil // a device or a pipe holds nothing to be kept
	}
	data, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0:
		return nil, nil
	case err != nil:
		return nil, failure.Cannot(err)
	case !result.Match(data):
		return nil, fmt.Errorf("-o %s: the file is there and holds no results of busbar; give another name", name)
	}
	if data[len(data)-1] != '\n' {
		data = append(data, '\n')
	}
	return data, nil
}

// addTo adds to a file of records: afterwards it holds all of them or is as it was.
func (e *env) addTo(name string, more []byte) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return e.writeFile(name, bytesOf(more))
	}
	old, err := e.kept(name)
	if err != nil {
		return err
	}
	return e.writeFile(name, func(w io.Writer) error {
		_, err := w.Write(append(old, more...))
		return err
	})
}

// measuredHere is what all sweeps of a measurement on a group have in common.
func measuredHere(g team) result.Sweep {
	s := result.Sweep{
		Source: result.Measured, Transport: string(g.Transport()), When: time.Now().UTC().Truncate(time.Second),
		Session: newSession(), Tool: "busbar " + ownVersion(), Machine: thisMachine(), Hosts: cluster.FormatHosts(g.Hosts()),
	}
	per := map[string]int{}
	for _, m := range g.Members() {
		per[m.Host]++
	}
	s.Nodes, s.PerNode = result.Evenly(per, g.Size())
	return s
}

func newSession() string {
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// ownVersion is this build's.
func ownVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// thisMachine is what a result depends on of the machine that this process runs on.
func thisMachine() *result.Machine {
	m := &result.Machine{OS: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU()}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(b))
	}
	processors := 0
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			k, v, _ := strings.Cut(line, ":")
			switch strings.TrimSpace(k) {
			case "processor":
				processors++
			case "model name":
				m.CPU = strings.TrimSpace(v)
			}
		}
	}
	m.CPUs = max(m.CPUs, processors) // a rank that is kept on one processor sees only that
	return m
}
