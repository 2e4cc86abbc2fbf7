package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"busbar.dev/doctor/traffic"
	"busbar.dev/input/nccllog"
	"busbar.dev/internal/failure"
	"busbar.dev/report"
	"busbar.dev/unit"
)

// doctorExplainCmd draws what a run of NCCL set up.
type doctorExplainCmd struct {
	common
	Logs   []string `arg:"" name:"log" help:"Logs of one job with NCCL_DEBUG=INFO, of all ranks or of some; a folder of them; - for standard input."`
	Comm   string   `placeholder:"ID" help:"The communicator: its id, or its number in the log from 0. Without it: the largest."`
	Size   string   `default:"1G" placeholder:"SIZE" help:"The all-reduce that bytes are given for."`
	Output []string `short:"o" placeholder:"FILE" sep:"none" help:"Also write a file: .svg is a picture, .json the document of --json, .txt the text; FORMAT=FILE says svg, json or text itself, and FORMAT=- writes to standard output instead of the text. Repeatable."`
}

// Help ends with examples.
func (doctorExplainCmd) Help() string {
	return "Shows what NCCL set up, from its log: rings, trees and channels on hosts, GPUs and NICs, who talks to whom through which NIC, how much of an all-reduce passes each NIC in and out, " +
		"how GPUs are connected (P2P, SHM, NET, with GPUDirect RDMA or not), and what is odd: a NIC with two channels while another idles, a pair through host memory where others talk directly. " +
		"Logs of a part of the ranks give a part of it. NCCL prints these lines while it sets up, at NCCL_DEBUG=INFO (subsystem INIT; GRAPH adds the links of long rings).\n\n" +
		"Examples:\n" +
		"  busbar doctor explain docs/examples/rings.log\n" +
		"  busbar doctor explain docs/examples/rings.log -o traffic.svg\n" +
		"  busbar doctor explain docs/examples/rings.log --comm 0 --size 256M --json"
}

// Run reads the logs and writes what was asked for.
func (c *doctorExplainCmd) Run(e *env) error {
	size, err := unit.ParseBytes(c.Size)
	if err != nil {
		return fmt.Errorf("--size: %w", err)
	}
	var outs []explainOut
	for _, o := range c.Output {
		out, err := explainTarget(o)
		if err != nil {
			return err
		}
		if out.file != "-" {
			if err := e.writable(out.file); err != nil {
				return err
			}
		}
		outs = append(outs, out)
	}
	l, err := e.ncclLogs(c.Logs)
	if err != nil {
		return err
	}
	r, err := traffic.From(l, c.Comm)
	if err != nil {
		return err
	}
	forms := map[string]func(io.Writer) error{
		"svg":  func(w io.Writer) error { return report.Traffic(w, r) },
		"json": func(w io.Writer) error { return writeIndented(w, r) },
		"text": func(w io.Writer) error { return report.TrafficText(w, r, size, e.text(w, c.common)) },
	}
	for _, o := range outs {
		if o.file == "-" {
			return forms[o.form](e.stdout)
		}
	}
	for _, o := range outs {
		if err := e.writeFile(o.file, forms[o.form]); err != nil {
			return err
		}
	}
	if c.JSON {
		return forms["json"](e.stdout)
	}
	return forms["text"](e.stdout)
}

type explainOut struct{ form, file string }

// explainTarget reads a word of -o.
func explainTarget(word string) (explainOut, error) {
	if form, file, ok := strings.Cut(word, "="); ok && slices.Contains([]string{"svg", "json", "text"}, form) && file != "" {
		return explainOut{form, file}, nil
	}
	switch word {
	case "svg", "json", "text":
		return explainOut{word, "-"}, nil
	}
	switch strings.ToLower(filepath.Ext(word)) {
	case ".svg":
		return explainOut{"svg", word}, nil
	case ".json":
		return explainOut{"json", word}, nil
	case ".txt":
		return explainOut{"text", word}, nil
	}
	return explainOut{}, fmt.Errorf("-o %s: expected a file name that ends in .svg, .json or .txt, or FORMAT=FILE (svg, json, text)", word)
}

// ncclLogs reads the logs of one job.
func (e *env) ncclLogs(names []string) (*nccllog.Log, error) {
	r := nccllog.NewReader()
	for _, name := range names {
		if name == "-" {
			if err := r.Add("standard input", e.stdin); err != nil {
				return nil, failure.Cannot(err)
			}
			continue
		}
		files, err := e.logFiles(name)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			f, err := os.Open(file)
			if err != nil {
				return nil, failure.Cannot(err)
			}
			err = r.Add(file, f)
			f.Close()
			if err != nil {
				return nil, failure.Cannot(err)
			}
		}
	}
	if r.Empty() {
		return nil, fmt.Errorf("%s: no record of NCCL; expected lines such as \"host:12:34 [0] NCCL INFO …\"; run with NCCL_DEBUG=INFO", strings.Join(names, ", "))
	}
	return r.Log(), nil
}

// logFiles is a file, or the files of a folder.
func (e *env) logFiles(name string) ([]string, error) {
	info, err := e.stat(name)
	if os.IsNotExist(err) {
		return nil, fmt.Errorf("%s: no such file or folder", name)
	}
	if err != nil {
		return nil, failure.Cannot(err)
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, failure.Cannot(err)
	}
	var files []string
	for _, d := range entries {
		if d.Type().IsRegular() && len(files) < maxFiles {
			files = append(files, filepath.Join(name, d.Name()))
		}
	}
	return files, nil
}
