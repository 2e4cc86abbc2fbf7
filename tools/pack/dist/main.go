// Dist writes everything of a release into a folder: archives with manual pages and completions, deb and rpm packages,
// container images, the Helm chart, a bill of materials for each binary, and their checksums. It runs in the root of a
// checkout:
//
//	go run -C tools/pack ./dist -root ../.. -o dist
//
// The version is that of the commit's tag: v1.2.3, and 1.2.3+5.gabc1234 five commits later. Times in archives are those
// of the commit, so that two runs on one commit give equal files.
package main

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// target is a system that a release is built for.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "-" + t.arch }

// commands are the programs of a release. busbar-gpu loads the GPUs' libraries, which only Linux has.
func (t target) commands() []string {
	if t.os == "linux" {
		return []string{"busbar", "busbar-gpu"}
	}
	return []string{"busbar"}
}

// file is what a program is called on the system.
func (t target) file(command string) string {
	if t.os == "windows" {
		return command + ".exe"
	}
	return command
}

var targets = []target{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"},
}

// release is what all parts share.
type release struct {
	root, out string
	work      string // for what is not released by itself
	version   string // without v
	time      time.Time
	pages     []file // manual pages
	shells    []file // completions
}

// file is one file of an archive, a package or an image.
type file struct {
	name string // with slashes, relative
	mode os.FileMode
	data []byte
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("dist: ")
	root := flag.String("root", ".", "root of the checkout")
	out := flag.String("o", "dist", "folder to write to, relative to the root unless it is absolute; it is emptied")
	only := flag.String("only", "", "one target, such as linux-amd64 (default: all)")
	flag.Parse()
	if err := run(*root, *out, *only); err != nil {
		log.Fatal(err)
	}
}

func run(root, out, only string) error {
	if !filepath.IsAbs(out) {
		out = filepath.Join(root, out)
	}
	r := &release{root: root, out: out}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	r.work = filepath.Join(r.out, "build")
	chosen := targets
	if only != "" {
		chosen = slices.DeleteFunc(slices.Clone(targets), func(t target) bool { return t.String() != only })
		if len(chosen) == 0 {
			return fmt.Errorf("-only %s: expected one of %v", only, targets)
		}
	}
	if err := r.describe(target{runtime.GOOS, runtime.GOARCH}); err != nil {
		return err
	}
	for _, t := range chosen {
		if err := r.target(t); err != nil {
			return fmt.Errorf("%v: %w", t, err)
		}
	}
	if err := r.chart(); err != nil {
		return err
	}
	if err := os.RemoveAll(r.work); err != nil {
		return err
	}
	return r.sums()
}

// build compiles a program and returns its path.
func (r *release) build(t target, command string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(r.work, t.String()))
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, t.file(command))
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w -X busbar.dev/query.version=v"+r.version, "-o", path,
		"./cmd/"+command)
	cmd.Dir, cmd.Stderr = r.root, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch)
	return path, cmd.Run()
}

// describe asks the program of this machine for the version and for the texts that it writes about itself.
func (r *release) describe(host target) error {
	stamp, err := r.git("log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return err
	}
	r.time = time.Unix(seconds, 0).UTC()
	described, err := r.git("describe", "--tags", "--match", "v[0-9]*", "--long", "--always", "--dirty", "--abbrev=8")
	if err != nil {
		return err
	}
	r.version = version(described, r.time)
	path, err := r.build(host, "busbar")
	if err != nil {
		return err
	}
	log.Printf("busbar %s", r.version)
	pages := filepath.Join(r.work, "man1")
	if err := os.MkdirAll(pages, 0o777); err != nil {
		return err
	}
	if out, err := exec.Command(path, "man", "--dir", pages).CombinedOutput(); err != nil {
		return fmt.Errorf("busbar man: %w: %s", err, out)
	}
	if r.pages, err = folder(pages, "man1/"); err != nil {
		return err
	}
	for shell, name := range map[string]string{"bash": "busbar.bash", "zsh": "_busbar", "fish": "busbar.fish"} {
		text, err := exec.Command(path, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("busbar completion %s: %w", shell, err)
		}
		r.shells = append(r.shells, file{"completions/" + name, 0o644, text})
	}
	slices.SortFunc(r.shells, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return nil
}

func (r *release) git(args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-C", r.root}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w; a release is made in a checkout with its history", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// version is what git describe --long says as a version that packages sort: behind its tag, 1.2.3+5.gabc1234.
func version(described string, at time.Time) string {
	rest, dirty := strings.CutSuffix(described, "-dirty")
	build := ""
	if parts := strings.Split(rest, "-"); len(parts) >= 3 {
		n := len(parts)
		rest = strings.TrimPrefix(strings.Join(parts[:n-2], "-"), "v")
		if parts[n-2] != "0" {
			build = "+" + parts[n-2] + "." + parts[n-1]
		}
	} else {
		rest, build = "0.0.0", "+"+at.Format("20060102.150405")+".g"+rest
	}
	switch {
	case dirty && build == "":
		build = "+dirty"
	case dirty:
		build += ".dirty"
	}
	return rest + build
}

// programs compiles all programs for a system, and writes the bill of materials of each.
func (r *release) programs(t target) ([]file, error) {
	var list []file
	for _, command := range t.commands() {
		path, err := r.build(t, command)
		if err != nil {
			return nil, err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := r.billOfMaterials(t, command, path); err != nil {
			return nil, err
		}
		list = append(list, file{t.file(command), 0o755, data})
	}
	return list, nil
}

// target writes all that is made for one system.
func (r *release) target(t target) error {
	programs, err := r.programs(t)
	if err != nil {
		return err
	}
	licences, err := r.licences(t)
	if err != nil {
		return err
	}
	list := append(slices.Clone(programs), file{"LICENCES.txt", 0o644, licences})
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md", "docs/grafana-busbar.json"} {
		data, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return err
		}
		list = append(list, file{filepath.Base(name), 0o644, data})
	}
	if t.os != "windows" {
		list = append(append(list, r.pages...), r.shells...)
	}
	name := fmt.Sprintf("busbar-%s-%v", r.version, t)
	if t.os == "windows" {
		err = r.zip(name, list)
	} else {
		err = r.tar(name, list)
	}
	if err != nil || t.os != "linux" {
		return err
	}
	if err := r.packages(t, programs, licences); err != nil {
		return err
	}
	if err := r.node(t, programs, licences); err != nil {
		return err
	}
	return r.image(t, programs[0].data, licences) // its file system has no C library, which busbar-gpu needs
}

// chart writes the Helm chart with the version of the release.
func (r *release) chart() error {
	list, err := folder(filepath.Join(r.root, "packaging", "chart"), "busbar/")
	if err != nil {
		return err
	}
	for i, f := range list {
		if f.name == "busbar/Chart.yaml" {
			list[i].data = bytes.ReplaceAll(f.data, []byte("0.0.0"), []byte(r.version))
		}
	}
	return r.tarAs("busbar-chart-"+r.version+".tgz", list)
}

// folder reads all files below a folder, in order.
func folder(dir, prefix string) ([]file, error) {
	var list []file
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		list = append(list, file{prefix + filepath.ToSlash(name), 0o644, data})
		return err
	})
	return list, err
}

// sums writes the checksums of all files, as sha256sum does.
func (r *release) sums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	fmt.Print(b.String())
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(b.String()), 0o666)
}
