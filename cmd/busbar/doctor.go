package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"busbar.dev/doctor"
	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
	"busbar.dev/internal/failure"
)

// doctorCmd says why a job is slow, broken or hung.
type doctorCmd struct {
	Examine doctorRunCmd     `cmd:"" name:"run" default:"withargs" hidden:"" help:"Say why a job is slow, broken or hung, from logs and outputs of tools."`
	Explain doctorExplainCmd `cmd:"" help:"Draw the rings, trees and channels of a run from its NCCL log, and what passes each NIC."`
	Bench   doctorBenchCmd   `cmd:"" help:"Hold a measured sweep against what this hardware should give at each size."`
}

type doctorRunCmd struct {
	common
	Sources []string `arg:"" optional:"" name:"path" help:"Logs, outputs of tools, environments, scripts, notes; folders and archives of them; - for standard input."`
	Output  string   `short:"o" name:"output" aliases:"format" placeholder:"FORMAT" default:"text" help:"text, json, markdown, sarif or junit; FORMAT=FILE writes to a file."`
	Live    bool     `help:"Read this machine too: its topology, limits, modules and settings. Nothing is changed."`
	Mask    string   `placeholder:"WHAT" help:"addresses: also hide addresses of hosts and people. Secrets are always hidden."`
	FailOn  string   `name:"fail-on" placeholder:"SEVERITY" default:"warn" help:"The least severity that makes the exit code 1: note, warn, error or never."`
	Width   int      `default:"0" hidden:""`
}

// Help says what can be read and ends with examples.
func (doctorRunCmd) Help() string {
	return "Reads NCCL and RCCL logs (any release, inside logs of Slurm, torchrun, mpirun, Kubernetes or Docker), outputs of nccl-tests, nvidia-smi, lspci, ibstat, ethtool, perfquery, show_gids, dmesg, lsmod, ulimit and df, " +
		"topology XML, environments, launch scripts and manifests, Python tracebacks, and sentences about what was seen. Everything that is given is taken for one job.\n\n" +
		"Findings come with the cause, the fix, how sure it is and the lines it rests on; roots first, their consequences after. docs/doctor.md lists all rules. " +
		"Exit code 1: something above a note was found. Secrets in quoted lines are hidden.\n\n" +
		"Examples:\n" +
		"  busbar doctor docs/examples/job.log\n" +
		"  busbar doctor docs/examples/job.log docs/examples/topo.txt --mask addresses -o markdown\n" +
		"  busbar doctor docs/examples/ -o sarif=findings.sarif\n" +
		"  busbar doctor --live --fail-on error\n" +
		"  ssh head busbar nodes --json | busbar doctor docs/examples/job.log -\n" +
		"  srun ./train.sh 2>&1 | busbar doctor -"
}

// reports maps a format's name to its writer.
var reports = map[string]func(io.Writer, *doctor.Report) error{
	"json": doctor.JSON, "markdown": doctor.Markdown, "md": doctor.Markdown, "sarif": doctor.SARIF, "junit": doctor.JUnit, "text": nil,
}

// Run reads, examines, reports.
func (c *doctorRunCmd) Run(e *env) error {
	format, file, err := c.target()
	if err != nil {
		return err
	}
	set, err := c.read(e)
	if err != nil {
		return err
	}
	r := doctor.Examine(set)
	r.Mask(c.Mask == "addresses")
	write := func(w io.Writer) error {
		if f := reports[format]; f != nil {
			return f(w, r)
		}
		o := e.text(w, c.common)
		return doctor.Text{Width: max(o.Width, 0), Paint: o.Color, All: c.Verbose}.Write(w, r)
	}
	err = e.writeOut(file, write)
	if err == nil && c.failed(r) {
		return errWrong
	}
	return err
}

// target checks the flags and says in which format to write, and where.
func (c *doctorRunCmd) target() (format, file string, err error) {
	format, file, _ = strings.Cut(c.Output, "=")
	if _, ok := reports[format]; !ok {
		return "", "", fmt.Errorf("-o %s: expected text, json, markdown, sarif or junit (FORMAT=FILE writes to a file)", c.Output)
	}
	switch {
	case c.JSON && format == "text" && file == "":
		format = "json"
	case c.JSON && format != "json":
		return "", "", fmt.Errorf("--json and -o %s are two formats; give one", c.Output)
	case c.Mask != "" && c.Mask != "addresses":
		return "", "", fmt.Errorf("--mask %s: expected addresses; secrets are always hidden", c.Mask)
	case len(c.Sources) == 0 && !c.Live:
		return "", "", errors.New("nothing to read: give files, folders, archives or - for standard input; --live reads this machine")
	}
	switch c.FailOn {
	case "note", "warn", "error", "never":
	default:
		return "", "", fmt.Errorf("--fail-on %s: expected note, warn, error or never", c.FailOn)
	}
	return format, file, nil
}

// failed reports whether a finding is grave enough for exit code 1.
func (c *doctorRunCmd) failed(r *doctor.Report) bool {
	least, err := finding.ParseSeverity(c.FailOn)
	return err == nil && finding.AtLeast(r.Findings, least) // the other word is never
}

// read takes in all sources.
func (c *doctorRunCmd) read(e *env) (*evidence.Set, error) {
	r := evidence.NewReader()
	for _, name := range c.Sources {
		if err := e.evidence(r, name, c.common); err != nil {
			return nil, err
		}
	}
	if c.Live {
		if err := e.liveEvidence(r, c.common); err != nil {
			return nil, err
		}
	}
	return r.Set()
}

// maxFiles bounds a folder.
const maxFiles = 100000

// evidence reads a file, a folder or standard input.
func (e *env) evidence(r *evidence.Reader, name string, o common) error {
	if name == "-" {
		return e.evidenceFrom(r, "standard input", e.stdin)
	}
	info, err := e.stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no such file or folder", name)
	case err != nil:
		return failure.Cannot(err)
	case !info.IsDir():
		defer e.progress(o, "reading "+name)()
		return e.evidenceFile(r, name)
	}
	defer e.progress(o, "reading "+name)()
	return e.evidenceFolder(r, name, o)
}

// evidenceFolder reads the texts of a folder. Links to files elsewhere count, as in
// the folders of containers' logs; those to folders do not, for they may go round.
// What may not be read is named and passed over.
func (e *env) evidenceFolder(r *evidence.Reader, name string, o common) error {
	files, read := 0, 0
	root := name
	if to, err := filepath.EvalSymlinks(name); err == nil {
		root = to
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		path = filepath.Join(name, strings.TrimPrefix(path, root))
		switch {
		case errors.Is(err, fs.ErrPermission):
			e.passOver(path, o)
			return nil
		case err != nil:
			return err
		case d.Type()&fs.ModeSymlink != 0:
			if !fileElsewhere(path, root) {
				return nil
			}
		case !d.Type().IsRegular():
			return nil
		}
		if files++; files > maxFiles {
			return fmt.Errorf("%s: more than %d files; give the folder of the logs", name, maxFiles)
		}
		switch err := e.evidenceFile(r, path); {
		case errors.Is(err, fs.ErrPermission):
			e.passOver(path, o)
		case errors.Is(err, failure.ErrCannot):
			return err
		case err != nil: // a picture or a core dump among the logs
			if o.Verbose {
				fmt.Fprintln(e.stderr, "note:", err)
			}
		default:
			read++
		}
		return e.ctx.Err()
	})
	if err == nil && read == 0 {
		return fmt.Errorf("%s: no text in this folder that can be read", name)
	}
	return err
}

// fileElsewhere reports a link to a file that the walk through root does not meet
// by itself.
func fileElsewhere(link, root string) bool {
	to, err := filepath.EvalSymlinks(link)
	if err != nil {
		return false
	}
	if info, err := os.Stat(to); err != nil || !info.Mode().IsRegular() {
		return false
	}
	rel, err := filepath.Rel(root, to)
	return err != nil || rel == ".." || strings.HasPrefix(rel, "../")
}

// passOver says what was left out of a folder.
func (e *env) passOver(path string, o common) {
	if !o.Quiet {
		fmt.Fprintf(e.stderr, "note: %s: may not be read; left out\n", path)
	}
}

func (e *env) evidenceFile(r *evidence.Reader, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return failure.Cannot(err)
	}
	defer f.Close()
	return e.evidenceFrom(r, name, f)
}

// evidenceFrom reads a stream. One that breaks off is not the input's fault.
func (e *env) evidenceFrom(r *evidence.Reader, name string, in io.Reader) error {
	s := &stream{r: in}
	err := r.Read(name, s)
	if s.err != nil {
		return failure.Cannot(fmt.Errorf("%s: %w", name, s.err))
	}
	return err
}
