package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// tar writes NAME.tar.gz with all files below a folder NAME.
func (r *release) tar(name string, list []file) error {
	below := make([]file, len(list))
	for i, f := range list {
		below[i] = file{name + "/" + f.name, f.mode, f.data}
	}
	return r.tarAs(name+".tar.gz", below)
}

// tarAs writes a compressed archive.
func (r *release) tarAs(name string, list []file) error {
	return r.create(name, func(w io.Writer) error {
		z := gzip.NewWriter(w)
		t := tar.NewWriter(z)
		for _, f := range list {
			if err := r.tarFile(t, f); err != nil {
				return err
			}
		}
		return errors.Join(t.Close(), z.Close())
	})
}

func (r *release) tarFile(t *tar.Writer, f file) error {
	h := &tar.Header{
		Name: f.name, Mode: int64(f.mode.Perm()), Size: int64(len(f.data)), ModTime: r.time, Typeflag: tar.TypeReg,
		Format: tar.FormatPAX,
	}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err := t.Write(f.data)
	return err
}

// zip writes NAME.zip, which Windows opens by itself.
func (r *release) zip(name string, list []file) error {
	return r.create(name+".zip", func(w io.Writer) error {
		z := zip.NewWriter(w)
		for _, f := range list {
			h := &zip.FileHeader{Name: name + "/" + f.name, Method: zip.Deflate, Modified: r.time}
			h.SetMode(f.mode)
			part, err := z.CreateHeader(h)
			if err != nil {
				return err
			}
			if _, err := part.Write(f.data); err != nil {
				return err
			}
		}
		return z.Close()
	})
}

// create writes one file of the release.
func (r *release) create(name string, write func(io.Writer) error) error {
	f, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
