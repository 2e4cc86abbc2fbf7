package query

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/cluster"
	"busbar.dev/internal/failure"
)

// calibrationName is the file in which the calibration of a cluster file lies: site.calibration.yaml beside site.yaml.
// "" for what is no cluster file.
func calibrationName(file string) string {
	ext := filepath.Ext(file)
	stem := strings.TrimSuffix(file, ext)
	if ext != ".yaml" && ext != ".yml" || strings.HasSuffix(stem, ".calibration") {
		return ""
	}
	return stem + ".calibration" + ext
}

// addCalibrationFile gives a cluster the calibration that lies beside its file, where its own sources have none.
func (e *Env) addCalibrationFile(b *cluster.Budget, c *cluster.Cluster, words []string) error {
	if c.Calibration != nil || len(words) != 1 || !e.exists(words[0]) {
		return nil
	}
	name := calibrationName(words[0])
	if name == "" {
		return nil
	}
	f, err := e.files().Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return failure.Cannot(err)
	}
	defer f.Close()
	again := fmt.Sprintf("`busbar calibrate -c %s -o %s`", words[0], name)
	frags, err := readAll(b, name, f)
	if err != nil {
		why, _, _ := strings.Cut(err.Error(), "; expected one of: ") // of all formats
		return fmt.Errorf("%s; it lies beside %s and should hold its calibration, and may be cut off: write it again with "+
			"%s, or move it away", why, words[0], again)
	}
	for _, x := range frags {
		if x.Calibration != nil {
			if err := sameChips(name, &x.Cluster, words[0], c); err != nil {
				return err
			}
			c.Calibration = x.Calibration
			e.note(fmt.Sprintf("predictions use the calibration in %s, which lies beside %s", name, words[0]))
			return nil
		}
	}
	return fmt.Errorf("%s lies beside %s and holds no calibration; expected what %s writes", name, words[0], again)
}

// sameChips refuses a calibration of other GPUs: its figures and curves would be taken for this cluster's. Where one of
// the two names none, nothing contradicts.
func sameChips(name string, its *cluster.Cluster, file string, c *cluster.Cluster) error {
	was, is := chips(its), chips(c)
	for _, g := range was {
		if len(is) > 0 && !slices.Contains(is, g) {
			return fmt.Errorf("%s lies beside %s and was measured on %s; the cluster has %s: calibrate this one, or move the "+
				"file away", name, file, strings.Join(was, ", "), strings.Join(is, ", "))
		}
	}
	return nil
}

// chips are the kinds of GPUs that hosts of a cluster have, without the size of their memory.
func chips(c *cluster.Cluster) []string {
	var list []string
	for _, t := range c.Types {
		for _, d := range t.Of(cluster.GPU) {
			if model := t.Devices[d].Model.Value; model != "" {
				list = append(list, truth.Chip(model))
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
