package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// component is a module in the form of CycloneDX.
type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
}

func module(kind, path, version string) component {
	purl := "pkg:golang/" + path + "@" + version
	return component{Type: kind, Ref: purl, Name: path, Version: version, PURL: purl}
}

// billOfMaterials writes what a binary says it was built from, as CycloneDX 1.6. It is read from the binary itself.
func (r *release) billOfMaterials(t target, command, path string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	main := module("application", info.Main.Path, "v"+r.version)
	std := module("library", "stdlib", strings.TrimPrefix(info.GoVersion, "go"))
	parts, refs := []component{std}, []string{std.Ref}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := module("library", m.Path, m.Version)
		parts, refs = append(parts, c), append(refs, c.Ref)
	}
	var settings []map[string]string
	for _, s := range info.Settings {
		settings = append(settings, map[string]string{"name": "go:build:" + s.Key, "value": s.Value})
	}
	text, err := json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata":   map[string]any{"timestamp": r.time.Format(time.RFC3339), "component": main, "properties": settings},
		"components": parts, "dependencies": []any{map[string]any{"ref": main.Ref, "dependsOn": refs}},
	}, "", " ")
	if err != nil {
		return err
	}
	return r.create(fmt.Sprintf("%s-%s-%v.cdx.json", command, r.version, t), func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

// licences are the licences of all modules that the programs link, which most of them ask to be passed on, of Go itself
// and of what the page has of others.
func (r *release) licences(t target) ([]byte, error) {
	args := []string{
		"list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}",
	}
	for _, command := range t.commands() {
		args = append(args, "./cmd/"+command)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = r.root, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch)
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	lines := slices.Compact(slices.Sorted(strings.SplitSeq(strings.TrimSpace(string(out)), "\n")))
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	lines = append(lines, "busbar\t"+r.root, "Go\t"+strings.TrimSpace(string(goroot)),
		"uPlot, in the page\t"+filepath.Join(r.root, "web/page/vendor/uplot"))
	var b bytes.Buffer
	for _, line := range lines {
		name, dir, ok := strings.Cut(line, "\t")
		if !ok {
			continue
		}
		found := 0
		for _, pattern := range []string{"LICEN[SC]E*", "COPYING*", "NOTICE*"} {
			names, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				return nil, err
			}
			for _, n := range names {
				if info, err := os.Stat(n); err != nil || info.IsDir() {
					continue
				}
				text, err := os.ReadFile(n)
				if err != nil {
					return nil, err
				}
				fmt.Fprintf(&b, "==== %s: %s ====\n\n%s\n\n", name, filepath.Base(n), bytes.TrimSpace(text))
				found++
			}
		}
		if found == 0 && name != "Go" { // distributions put Go's elsewhere
			return nil, fmt.Errorf("%s: no licence in %s", name, dir)
		}
	}
	return b.Bytes(), nil
}
