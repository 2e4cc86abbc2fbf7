package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

// units are what a package has of packaging/systemd: the services, and their settings, which upgrades leave as they
// are.
var units = []struct{ source, at, kind string }{
	{"busbar-agent.service", "/usr/lib/systemd/system/busbar-agent.service", files.TypeFile},
	{"busbar-serve.service", "/usr/lib/systemd/system/busbar-serve.service", files.TypeFile},
	{"agent.env", "/etc/busbar/agent.env", files.TypeConfigNoReplace},
	{"serve.env", "/etc/busbar/serve.env", files.TypeConfigNoReplace},
}

// packages writes the deb and the rpm. The services are installed and not started: an agent needs credentials first.
func (r *release) packages(t target, programs []file, licences []byte) error {
	dir := filepath.Join(r.work, t.String(), "package")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	var contents files.Contents
	add := func(at, kind string, mode os.FileMode, data []byte) error {
		source := filepath.Join(dir, fmt.Sprint(len(contents)))
		contents = append(contents, &files.Content{
			Source: source, Destination: at, Type: kind, FileInfo: &files.ContentFileInfo{Mode: mode, MTime: r.time},
		})
		return os.WriteFile(source, data, 0o666)
	}
	for _, p := range programs {
		if err := add("/usr/bin/"+p.name, files.TypeFile, p.mode, p.data); err != nil {
			return err
		}
	}
	if err := add("/usr/share/doc/busbar/copyright", files.TypeFile, 0o644, licences); err != nil {
		return err
	}
	for _, p := range r.pages {
		var z bytes.Buffer
		w, err := gzip.NewWriterLevel(&z, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := w.Write(p.data); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		if err := add("/usr/share/man/"+p.name+".gz", files.TypeFile, 0o644, z.Bytes()); err != nil {
			return err
		}
	}
	for _, s := range r.shells {
		at := map[string]string{
			"completions/busbar.bash": "/usr/share/bash-completion/completions/busbar",
			"completions/_busbar":     "/usr/share/zsh/vendor-completions/_busbar",
			"completions/busbar.fish": "/usr/share/fish/vendor_completions.d/busbar.fish",
		}[s.name]
		if err := add(at, files.TypeFile, 0o644, s.data); err != nil {
			return err
		}
	}
	for _, u := range units {
		data, err := os.ReadFile(filepath.Join(r.root, "packaging", "systemd", u.source))
		if err != nil {
			return err
		}
		if err := add(u.at, u.kind, 0o644, data); err != nil {
			return err
		}
	}
	for end, format := range map[string]nfpm.Packager{"deb": deb.Default, "rpm": rpm.DefaultRPM} {
		if err := r.onePackage(t, end, format, contents); err != nil {
			return fmt.Errorf("%s: %w", end, err)
		}
	}
	return nil
}

// onePackage writes a package in one format.
func (r *release) onePackage(t target, end string, format nfpm.Packager, contents files.Contents) error {
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "busbar", Arch: t.arch, Platform: "linux", Version: r.version, Release: "1", Section: "admin",
		Priority:   "optional",
		Maintainer: "busbar authors <busbar@busbar.dev>", Homepage: "https://busbar.dev", License: "Apache-2.0",
		MTime:           r.time,
		DisableGlobbing: true,
		Description: "predict, plan and diagnose distributed GPU training\n" +
			"Says before a job starts how fast it will go, what limits it and which settings\nto launch it with, and " +
			"afterwards why it is slow or hung.",
		Overridables: nfpm.Overridables{Contents: contents},
	})
	if err := nfpm.PrepareForPackager(info, end); err != nil {
		return err
	}
	return r.create(format.ConventionalFileName(info), func(w io.Writer) error { return format.Package(info, w) })
}
