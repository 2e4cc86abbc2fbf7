package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestImage reads an image back as a registry does: every blob has the checksum that it is named by, and the layer has
// the program.
func TestImage(t *testing.T) {
	r := &release{out: t.TempDir(), version: "1.2.3+x", time: time.Unix(1e9, 0).UTC()}
	if err := r.image(target{"linux", "amd64"}, []byte("program"), []byte("licences")); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	layers, c := unpackImage(t, filepath.Join(r.out, "busbar-1.2.3+x-linux-amd64-image.tar"), root)
	if data, err := os.ReadFile(filepath.Join(root, "busbar")); string(data) != "program" || layers != 1 {
		t.Errorf("%q, %v, %d layers", data, err, layers)
	}
	checkConfig(t, c, "/busbar", "busbar")
}

// checkConfig holds an image to its program, a user who is not root, and its labels.
func checkConfig(t *testing.T, c imageConfig, program, title string) {
	t.Helper()
	if len(c.Entrypoint) != 1 || c.Entrypoint[0] != program || c.User != "65532" || c.WorkingDir != "/data" ||
		c.Labels["org.opencontainers.image.title"] != title || c.Labels["org.opencontainers.image.version"] != "1.2.3+x" {
		t.Errorf("%+v", c)
	}
}

// TestNodeImage makes the image for nodes from a package of our own and reads it back.
func TestNodeImage(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"DEBIAN/control": "Package: tool\nVersion: 1:2-3\nArchitecture: all\nMaintainer: a <a@b.c>\nDescription: x\n",
		"bin/tool":       "in the old place", "usr/lib/libtool.so.1": "library", "usr/share/man/man1/tool.1": "page",
		"usr/share/doc/tool/copyright": "licence", "usr/share/doc/tool/changelog.gz": "changes",
		"usr/share/ca-certificates/a/one.crt": "-----BEGIN ONE\n", "usr/share/ca-certificates/a/two.crt": "-----BEGIN TWO\n",
	} {
		path := filepath.Join(dir, "tree", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(dir, "tree/bin/tool"), filepath.Join(dir, "tree/bin/tool2")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("tool", filepath.Join(dir, "tree/bin/sh")); err != nil {
		t.Fatal(err)
	}
	deb := filepath.Join(dir, "tool_1%3a2-3_all.deb")
	if out, err := exec.Command("dpkg-deb", "--root-owner-group", "--build", filepath.Join(dir, "tree"),
		deb).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := &release{out: t.TempDir(), version: "1.2.3+x", time: time.Unix(1e9, 0).UTC()}
	programs := []file{{"busbar", 0o755, []byte("program")}, {"busbar-gpu", 0o755, []byte("gpu")}}
	if err := r.nodeImage(target{"linux", "amd64"}, []string{deb}, programs, []byte("licences")); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	layers, c := unpackImage(t, filepath.Join(r.out, "busbar-node-1.2.3+x-linux-amd64-image.tar"), root)
	if layers != 2 {
		t.Errorf("%d layers", layers)
	}
	checkConfig(t, c, "/usr/bin/busbar", "busbar-node")
	for name, want := range map[string]string{
		"usr/bin/busbar": "program", "usr/bin/busbar-gpu": "gpu", "usr/bin/tool": "in the old place",
		"bin/sh":        "in the old place",
		"usr/bin/tool2": "in the old place", "lib/libtool.so.1": "library", "LICENCES.txt": "licences",
		"usr/share/doc/tool/copyright": "licence", "etc/ssl/certs/ca-certificates.crt": "-----BEGIN ONE\n-----BEGIN TWO\n",
	} {
		if data, err := os.ReadFile(filepath.Join(root, name)); string(data) != want {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(root, "var/lib/dpkg/status.d/tool")); !strings.Contains(string(data),
		"Version: 1:2-3") {
		t.Errorf("%s, %v", data, err)
	}
	for _, name := range []string{"usr/share/man/man1/tool.1", "usr/share/doc/tool/changelog.gz", "DEBIAN"} {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
}

func TestVersion(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for described, want := range map[string]string{
		"v1.2.3-0-gabc12345":            "1.2.3",
		"v1.2.3-0-gabc12345-dirty":      "1.2.3+dirty",
		"v1.2.3-5-gabc12345":            "1.2.3+5.gabc12345",
		"v1.2.3-rc.1-0-gabc12345":       "1.2.3-rc.1",
		"v1.2.3-rc-1-2-gabc12345-dirty": "1.2.3-rc-1+2.gabc12345.dirty",
		"abc12345":                      "0.0.0+20260102.030405.gabc12345",
		"abc12345-dirty":                "0.0.0+20260102.030405.gabc12345.dirty",
	} {
		if got := version(described, at); got != want {
			t.Errorf("%s: %s, want %s", described, got, want)
		}
	}
}

// unpackImage checks an image and unpacks its layers.
func unpackImage(t *testing.T, name, root string) (layers int, settings imageConfig) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string][]byte{}
	for tr := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if parts[h.Name], err = io.ReadAll(tr); err != nil {
			t.Fatal(err)
		}
		if sum, ok := strings.CutPrefix(h.Name, "blobs/sha256/"); ok &&
			sum != fmt.Sprintf("%x", sha256.Sum256(parts[h.Name])) {
			t.Errorf("%s has another checksum", h.Name)
		}
	}
	var docker []struct {
		Config           string
		RepoTags, Layers []string
	}
	var index struct{ Manifests []blob }
	var manifest struct{ Layers []blob }
	for name, into := range map[string]any{"manifest.json": &docker, "index.json": &index} {
		if err := json.Unmarshal(parts[name], into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if err := json.Unmarshal(parts[index.Manifests[0].path()], &manifest); err != nil {
		t.Fatal(err)
	}
	layers = len(manifest.Layers)
	if layers != len(docker[0].Layers) || strings.Contains(docker[0].RepoTags[0], "+") {
		t.Fatalf("layers %+v, for Docker %+v", manifest.Layers, docker)
	}
	var config struct {
		Config imageConfig
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	if err := json.Unmarshal(parts[docker[0].Config], &config); err != nil || len(config.RootFS.DiffIDs) != layers {
		t.Fatalf("%v, diff_ids %v", err, config.RootFS.DiffIDs)
	}
	for i, place := range docker[0].Layers {
		z, err := gzip.NewReader(bytes.NewReader(parts[place]))
		if err != nil {
			t.Fatal(err)
		}
		layer, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("sha256:%x", sha256.Sum256(layer)); config.RootFS.DiffIDs[i] != got ||
			manifest.Layers[i].path() != place {
			t.Errorf("diff_ids %v, want %s at %d", config.RootFS.DiffIDs, got, i)
		}
		unpack(t, tar.NewReader(bytes.NewReader(layer)), root)
	}
	return layers, config.Config
}

// imageConfig is what a runtime reads of an image.
type imageConfig struct {
	Entrypoint, Cmd, Env []string
	User, WorkingDir     string
	Labels               map[string]string
}

// unpack writes what an archive of ours holds.
func unpack(t *testing.T, tr *tar.Reader, root string) {
	t.Helper()
	for {
		h, err := tr.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, filepath.FromSlash(h.Name))
		switch h.Typeflag {
		case tar.TypeSymlink:
			if err := os.Symlink(h.Linkname, path); err != nil {
				t.Fatal(err)
			}
			continue
		case tar.TypeLink:
			err = os.Link(filepath.Join(root, h.Linkname), path)
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o777)
		default:
			var data []byte
			if data, err = io.ReadAll(tr); err == nil {
				err = os.WriteFile(path, data, 0o666)
			}
		}
		if err == nil {
			err = os.Chmod(path, os.FileMode(h.Mode).Perm())
		}
		if err == nil && os.Getuid() == 0 {
			err = os.Chown(path, h.Uid, h.Gid)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestRelease installs and runs what make dist has written into BUSBAR_DIST.
func TestRelease(t *testing.T) {
	dir := os.Getenv("BUSBAR_DIST")
	if dir == "" {
		t.Skip("BUSBAR_DIST is not set; make dist sets it")
	}
	one := func(pattern string) string {
		list, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %v, %v", pattern, list, err)
		}
		return list[0]
	}
	t.Run("sums", func(t *testing.T) {
		if out, err := command(dir, "sha256sum", "-c", "--quiet", "SHA256SUMS"); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("deb", func(t *testing.T) { checkDeb(t, one("busbar_*_amd64.deb")) })
	t.Run("rpm", func(t *testing.T) { checkRPM(t, one("busbar-*.x86_64.rpm")) })
	t.Run("image", func(t *testing.T) { checkContainer(t, one("busbar-*-linux-amd64-image.tar")) })
	t.Run("bill", func(t *testing.T) { checkBill(t, one("busbar-[0-9]*-linux-amd64.cdx.json")) })
	t.Run("windows", func(t *testing.T) { checkWindows(t, one("busbar-*-windows-amd64.zip")) })
}

func command(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// within runs a program in another root with /sys and /proc, as container runtimes do, as the image's user.
func within(root string, args ...string) (string, error) {
	const script = `root=$1; shift; mkdir -p $root/sys $root/proc && mount --rbind /sys $root/sys && mount --rbind /proc $root/proc &&
exec chroot --userspec=65532:65532 $root "$@"`
	cmd := exec.Command("unshare", append([]string{"-m", "sh", "-c", script, "sh", root}, args...)...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/data"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func needRoot(t *testing.T, programs ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root for another root folder")
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("needs %s", p)
		}
	}
}

// remains lists what lies below a folder, but for the package manager's own files.
func remains(t *testing.T, root, own string) string {
	t.Helper()
	var left []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasPrefix(path, filepath.Join(root, own)) {
			left = append(left, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(left, "\n")
}

// checkDeb installs into an empty root, runs there, removes and purges.
func checkDeb(t *testing.T, deb string) {
	needRoot(t, "dpkg", "unshare")
	root := t.TempDir()
	for _, d := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dpkg := func(args ...string) {
		if out, err := command("", "dpkg", append([]string{"--root=" + root, "--log=/dev/null"}, args...)...); err != nil {
			t.Fatalf("dpkg %v: %v\n%s", args, err, out)
		}
	}
	dpkg("-i", deb)
	if _, err := os.Stat(filepath.Join(root, "usr/bin/busbar-gpu")); err != nil {
		t.Error(err)
	}
	out, err := within(root, "/usr/bin/busbar", "version")
	if err != nil || !strings.HasPrefix(out, "busbar v") {
		t.Errorf("%v: %s", err, out)
	}
	for _, name := range []string{
		"usr/share/man/man1/busbar-map.1.gz", "usr/share/bash-completion/completions/busbar",
		"usr/lib/systemd/system/busbar-agent.service", "etc/busbar/agent.env",
	} {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Error(err)
		}
	}
	dpkg("-r", "busbar")
	if left := remains(t, root, "var/lib/dpkg"); strings.Count(left, "\n") != 1 ||
		!strings.Contains(left, "etc/busbar/agent.env") {
		t.Errorf("removed, but for settings; left: %s", left)
	}
	dpkg("-P", "busbar")
	if left := remains(t, root, "var/lib/dpkg"); left != "" {
		t.Errorf("purged; left: %s", left)
	}
}

// checkRPM does the same with rpm where there is one, in a root of its own.
func checkRPM(t *testing.T, rpm string) {
	needRoot(t, "rpm", "unshare")
	root := t.TempDir()
	run := func(args ...string) string {
		out, err := command("", "rpm", append([]string{"--root", root, "--nosignature"}, args...)...)
		if err != nil {
			t.Fatalf("rpm %v: %v\n%s", args, err, out)
		}
		return out
	}
	run("--initdb")
	run("-i", "--ignorearch", rpm)
	if _, err := os.Stat(filepath.Join(root, "usr/bin/busbar-gpu")); err != nil {
		t.Error(err)
	}
	out, err := within(root, "/usr/bin/busbar", "version")
	if err != nil || !strings.HasPrefix(out, "busbar v") {
		t.Errorf("%v: %s", err, out)
	}
	if list := run("-qc", "busbar"); strings.Count(list, ".env") != 2 {
		t.Errorf("configuration: %s", list)
	}
	run("-e", "busbar")
	if _, err := os.Stat(filepath.Join(root, "usr/bin/busbar")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after removal: %v", err)
	}
}

// checkContainer runs a prediction and a collective in the file system of the image, as its user.
func checkContainer(t *testing.T, image string) {
	needRoot(t, "unshare")
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	unpackImage(t, image, root)
	out, err := within(root, "/busbar", "predict", "-c", "baskerville", "--compare", "1x4,2x2")
	if err != nil || !strings.Contains(out, "baskerville") || !strings.Contains(out, "2x2") {
		t.Errorf("predict: %v\n%s", err, out)
	}
	out, err = within(root, "/busbar", "bench", "--check")
	if err != nil || !strings.Contains(out, "all_reduce") {
		t.Errorf("bench: %v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// checkBill: the bill names what is linked.
func checkBill(t *testing.T, name string) {
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		BOMFormat, SpecVersion string
		Components             []component
	}
	if err := json.Unmarshal(data, &bill); err != nil || bill.BOMFormat != "CycloneDX" || len(bill.Components) < 10 {
		t.Errorf("%v: %s %s, %d components", err, bill.BOMFormat, bill.SpecVersion, len(bill.Components))
	}
	for _, c := range bill.Components {
		if c.Version == "" || !strings.HasPrefix(c.PURL, "pkg:golang/") {
			t.Errorf("%+v", c)
		}
	}
}

// checkWindows runs the program under Wine where there is one.
func checkWindows(t *testing.T, archive string) {
	wine, err := exec.LookPath("wine")
	if err != nil {
		t.Skip("needs wine")
	}
	dir := t.TempDir()
	if out, err := command(dir, "unzip", "-q", archive); err != nil {
		t.Skipf("needs unzip: %v %s", err, out)
	}
	list, _ := filepath.Glob(filepath.Join(dir, "*", "busbar.exe"))
	if len(list) != 1 {
		t.Fatalf("%v", list)
	}
	prefix := filepath.Join(dir, "prefix")
	program := func(args ...string) *exec.Cmd {
		cmd := exec.Command(wine, append(list, args...)...)
		cmd.Env = append(os.Environ(), "WINEPREFIX="+prefix, "WINEDEBUG=-all", "HOME="+dir)
		return cmd
	}
	run := func() (string, error) {
		out, err := program("bench", "--check").CombinedOutput()
		return string(out), err
	}
	out, err := run()
	if strings.Contains(out, "bcryptprimitives.dll not found") { // which Go needs, and Wine has since 9.0
		addRandom(t, filepath.Join(prefix, "drive_c/windows/system32/bcryptprimitives.dll"))
		out, err = run()
	}
	if err != nil || !strings.Contains(out, "all_reduce") {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	checkPage(t, program("serve", "--listen", "127.0.0.1:0", "--data", `C:\busbar`))
}

// checkPage starts a server and asks it for its page and for a prediction.
func checkPage(t *testing.T, serve *exec.Cmd) {
	t.Helper()
	out, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	serve.Stderr = &said
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = serve.Process.Kill()
		_ = serve.Wait()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	url, token, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "open ")), "/login#")
	if err != nil || !ok {
		t.Fatalf("%v %q\n%s", err, line, &said)
	}
	client := http.Client{}
	client.Jar, _ = cookiejar.New(nil)
	if res, err := client.PostForm(url+"/login", neturl.Values{"token": {token}}); err != nil || res.StatusCode != 200 {
		t.Fatalf("logging in: %v %v", res, err)
	}
	for _, path := range []string{"/", "/api/predict?c=dgx-h100:2&size=1G"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		t.Logf("GET %s: %s", path, res.Status)
		if res.StatusCode != http.StatusOK {
			t.Errorf("GET %s: %s", path, res.Status)
		}
	}
}

// addRandom builds the library that old releases of Wine lack, from the function that they have under another name.
func addRandom(t *testing.T, library string) {
	t.Helper()
	const source = `#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T n) { return SystemFunction036(data, (ULONG)n); }
`
	cc, err := exec.LookPath("x86_64-w64-mingw32-gcc")
	if err != nil {
		t.Skip("needs a newer Wine, or gcc-mingw-w64-x86-64")
	}
	file := filepath.Join(t.TempDir(), "random.c")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := command("", cc, "-shared", "-o", library, file, "-ladvapi32"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
