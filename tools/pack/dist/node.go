package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// nodePackages are Debian's packages of the image for nodes, besides what they need: a shell for check --emit kube,
// perftest with its providers, and certificates to trust.
var nodePackages = []string{"dash", "perftest", "ibverbs-providers", "ca-certificates"}

// merged are folders that Debian has in /usr since 12, with links in their old places; packages of 12 still name the
// old.
var merged = []string{"bin", "sbin", "lib", "lib64"}

// node writes the image for nodes, where apt is here to fetch Debian's packages. Their scripts are not run.
func (r *release) node(t target, programs []file, licences []byte) error {
	for _, tool := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			log.Printf("no image for nodes: %v; it is made on Debian", err)
			return nil
		}
	}
	debs, err := r.fetch(t.arch)
	if err != nil {
		return err
	}
	return r.nodeImage(t, debs, programs, licences)
}

// fetch downloads the packages and all that they depend on, as apt checks them by the keys of this machine. Nothing of
// this machine's own state is used or changed.
func (r *release) fetch(arch string) ([]string, error) {
	dir, err := filepath.Abs(filepath.Join(r.work, "debian-"+arch))
	if err != nil {
		return nil, err
	}
	for _, d := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o777); err != nil {
			return nil, err
		}
	}
	status := filepath.Join(dir, "status")
	if err := os.WriteFile(status, nil, 0o666); err != nil {
		return nil, err
	}
	options := []string{
		"-qq", "-o", "APT::Architecture=" + arch, "-o", "APT::Architectures=" + arch, "-o", "Dir::State=" + dir + "/state",
		"-o",
		"Dir::State::status=" + status, "-o", "Dir::Cache=" + dir + "/cache", "-o", "APT::Sandbox::User=root",
	}
	for _, words := range [][]string{
		{"update"}, append([]string{"install", "-y", "--download-only", "--no-install-recommends"}, nodePackages...),
	} {
		if out, err := exec.Command("apt-get", append(slices.Clone(options), words...)...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("apt-get %s: %w: %s", words[0], err, out)
		}
	}
	return filepath.Glob(filepath.Join(dir, "cache/archives/*.deb"))
}

// nodeImage writes an image of packages and programs: one layer for each of both, so that an upgrade fetches the
// second.
func (r *release) nodeImage(t target, debs []string, programs []file, licences []byte) error {
	base, err := r.debian(debs)
	if err != nil {
		return err
	}
	var own bytes.Buffer
	w := tar.NewWriter(&own)
	for _, p := range append(slices.Clone(programs), file{"LICENCES.txt", 0o644, licences}) {
		if p.mode&0o100 != 0 {
			p.name = "usr/bin/" + p.name
		}
		if err := r.tarFile(w, p); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return r.writeImage(t, "busbar-node", "/usr/bin/busbar", "/usr/sbin:/usr/bin", base, own.Bytes())
}

// debian is the file system that packages unpack to, without what people read.
func (r *release) debian(debs []string) ([]byte, error) {
	var b, trusted bytes.Buffer
	w := tar.NewWriter(&b)
	seen := map[string]bool{}
	put := func(h *tar.Header, data io.Reader) error {
		if h.Name = strings.TrimSuffix(h.Name, "/"); seen[h.Name] {
			return nil
		}
		seen[h.Name] = true
		h.Format, h.ModTime = tar.FormatPAX, r.time
		if err := w.WriteHeader(h); err != nil || h.Typeflag != tar.TypeReg {
			return err
		}
		_, err := io.Copy(w, data)
		return err
	}
	for _, d := range []string{
		"etc", "etc/ssl", "etc/ssl/certs", "usr", "var", "var/lib", "var/lib/dpkg", "var/lib/dpkg/status.d",
	} {
		if err := put(&tar.Header{Name: d, Mode: 0o755, Typeflag: tar.TypeDir}, nil); err != nil {
			return nil, err
		}
	}
	for _, d := range merged {
		if err := put(&tar.Header{Name: d, Linkname: "usr/" + d, Mode: 0o777, Typeflag: tar.TypeSymlink}, nil); err != nil {
			return nil, err
		}
	}
	text := func(name string, data []byte) error {
		return put(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), Typeflag: tar.TypeReg}, bytes.NewReader(data))
	}
	for _, deb := range debs {
		control, err := exec.Command("dpkg-deb", "--field", deb).Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", deb, err)
		}
		name, _, _ := strings.Cut(filepath.Base(deb), "_")
		if err := text("var/lib/dpkg/status.d/"+name, control); err != nil { // where scanners of images look
			return nil, err
		}
		data, err := exec.Command("dpkg-deb", "--fsys-tarfile", deb).Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", deb, err)
		}
		for in := tar.NewReader(bytes.NewReader(data)); ; {
			h, err := in.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", deb, err)
			}
			h.Name = usrMerged(h.Name)
			if h.Name == "." || unread(h.Name) {
				continue
			}
			if h.Typeflag == tar.TypeLink {
				h.Linkname = usrMerged(h.Linkname)
			}
			var body io.Reader = in
			if strings.HasPrefix(h.Name, "usr/share/ca-certificates/") && strings.HasSuffix(h.Name, ".crt") {
				body = io.TeeReader(in, &trusted)
			}
			if err := put(h, body); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", deb, h.Name, err)
			}
		}
	}
	user := fmt.Sprint(nobody)
	for name, data := range map[string]string{
		"etc/ssl/certs/ca-certificates.crt": trusted.String(), // as the package's own script makes it
		"etc/passwd": "root:x:0:0:root:/:/bin/sh\nbusbar:x:" + user + ":" + user +
			":busbar:/data:/bin/sh\n",
		"etc/group": "root:x:0:\nbusbar:x:" + user + ":\n",
	} {
		if err := text(name, []byte(data)); err != nil {
			return nil, err
		}
	}
	for _, h := range []*tar.Header{
		{Name: "data", Mode: 0o700, Uid: nobody, Gid: nobody, Typeflag: tar.TypeDir},
		{Name: "tmp", Mode: 0o1777, Typeflag: tar.TypeDir},
	} {
		if err := put(h, nil); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), w.Close()
}

// usrMerged is where a file of a package is, relative to the root.
func usrMerged(name string) string {
	name = path.Clean(strings.TrimPrefix(name, "./"))
	if first, _, _ := strings.Cut(name, "/"); slices.Contains(merged, first) {
		name = "usr/" + name
	}
	return name
}

// unread tells what nobody reads in a container; licences stay.
func unread(name string) bool {
	for _, dir := range []string{"man", "locale", "info", "lintian", "bash-completion", "doc-base"} {
		if strings.HasPrefix(name, "usr/share/"+dir+"/") {
			return true
		}
	}
	doc, ok := strings.CutPrefix(name, "usr/share/doc/")
	_, inside, deep := strings.Cut(doc, "/")
	return ok && deep && inside != "copyright"
}
