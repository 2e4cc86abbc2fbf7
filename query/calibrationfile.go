package query

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

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
	frags, err := readAll(b, name, f)
	if err != nil {
		return err
	}
	for _, x := range frags {
		if x.Calibration != nil {
			c.Calibration = x.Calibration
			e.note(fmt.Sprintf("predictions use the calibration in %s, which lies beside %s", name, words[0]))
			return nil
		}
	}
	return fmt.Errorf("%s lies beside %s and holds no calibration; expected what `busbar calibrate -c %s -o %s` writes", name, words[0], words[0], name)
}
