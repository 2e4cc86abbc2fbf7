package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// blob is a part of an image, named by its checksum.
type blob struct {
	MediaType string    `json:"mediaType"`
	Digest    string    `json:"digest"`
	Size      int       `json:"size"`
	Platform  *platform `json:"platform,omitempty"`

	data []byte
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

func newBlob(kind string, data []byte) *blob {
	return &blob{MediaType: kind, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(data)), Size: len(data), data: data}
}

func (b *blob) path() string { return "blobs/sha256/" + b.Digest[len("sha256:"):] }

// nobody is the user that containers run as.
const nobody = 65532

// layer is the file system of the image: the program, its licences, a user, and folders to write to.
func (r *release) layer(program, licences []byte) ([]byte, error) {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	for _, d := range []struct {
		name string
		mode int64
		user int
	}{{"etc/", 0o755, 0}, {"data/", 0o700, nobody}, {"tmp/", 0o1777, 0}} {
		h := &tar.Header{
			Name: d.name, Mode: d.mode, Uid: d.user, Gid: d.user, ModTime: r.time, Typeflag: tar.TypeDir, Format: tar.FormatPAX,
		}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
	}
	user := fmt.Sprintf("%d", nobody)
	for _, f := range []file{
		{"busbar", 0o755, program},
		{"LICENCES.txt", 0o644, licences},
		{"etc/passwd", 0o644, []byte("root:x:0:0:root:/:/none\nbusbar:x:" + user + ":" + user + ":busbar:/data:/none\n")},
		{"etc/group", 0o644, []byte("root:x:0:\nbusbar:x:" + user + ":\n")},
	} {
		if err := r.tarFile(t, f); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), t.Close()
}

// image writes the image of the server: the program alone.
func (r *release) image(t target, program, licences []byte) error {
	plain, err := r.layer(program, licences)
	if err != nil {
		return err
	}
	return r.writeImage(t, "busbar", "/busbar", "/", plain)
}

// writeImage writes an image of layers, as an archive that docker load, podman load, skopeo and crane take: an OCI
// layout with the list that Docker reads beside it.
func (r *release) writeImage(t target, name, program, path string, plain ...[]byte) error {
	var layers []*blob
	var sums, places []string
	for _, p := range plain {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		if _, err := z.Write(p); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		l := newBlob("application/vnd.oci.image.layer.v1.tar+gzip", packed.Bytes())
		layers, places = append(layers, l), append(places, l.path())
		sums = append(sums, fmt.Sprintf("sha256:%x", sha256.Sum256(p)))
	}
	config, err := json.Marshal(map[string]any{
		"architecture": t.arch, "os": t.os, "created": r.time.Format(time.RFC3339),
		"config": map[string]any{
			"Entrypoint": []string{program}, "Cmd": []string{"--help"}, "User": fmt.Sprint(nobody), "WorkingDir": "/data",
			"Env": []string{"PATH=" + path, "HOME=/data"},
			"Labels": map[string]string{
				"org.opencontainers.image.version": r.version, "org.opencontainers.image.licenses": "Apache-2.0",
				"org.opencontainers.image.title": name,
			},
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": sums},
		"history": slices.Repeat([]any{map[string]any{"created": r.time.Format(time.RFC3339), "created_by": "make dist"}},
			len(sums)),
	})
	if err != nil {
		return err
	}
	settings := newBlob("application/vnd.oci.image.config.v1+json", config)
	text, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": settings,
		"layers": layers,
	})
	if err != nil {
		return err
	}
	manifest := newBlob("application/vnd.oci.image.manifest.v1+json", text)
	manifest.Platform = &platform{t.arch, t.os}
	index, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []*blob{manifest},
		"annotations": map[string]string{"org.opencontainers.image.ref.name": r.version},
	})
	if err != nil {
		return err
	}
	docker, err := json.Marshal([]any{map[string]any{
		"Config": settings.path(), "RepoTags": []string{name + ":" + tag(r.version)}, "Layers": places,
	}})
	if err != nil {
		return err
	}
	list := []file{{"oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {"index.json", 0o644, index}, {"manifest.json", 0o644, docker}}
	for _, b := range append(layers, settings, manifest) {
		list = append(list, file{b.path(), 0o644, b.data})
	}
	return r.create(fmt.Sprintf("%s-%s-%v-image.tar", name, r.version, t), func(w io.Writer) error {
		a := tar.NewWriter(w)
		for _, f := range list {
			if err := r.tarFile(a, f); err != nil {
				return err
			}
		}
		return errors.Join(a.Close())
	})
}

// tag is a version as the tag of an image, which has no plus sign.
func tag(version string) string {
	out := []byte(version)
	for i, c := range out {
		if c == '+' {
			out[i] = '-'
		}
	}
	return string(out)
}
