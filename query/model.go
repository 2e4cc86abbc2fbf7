package query

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"busbar.dev/internal/failure"
	"busbar.dev/workload"
)

// LoadModel is the model of a word: a name (busbar models lists them), dimensions (params=20B,layers=48), or a config.json of
// Hugging Face.
func LoadModel(env Env, word string) (*workload.Model, error) {
	if !strings.HasSuffix(strings.ToLower(word), ".json") {
		m, err := workload.Parse(word)
		if err != nil && strings.ContainsRune(word, os.PathSeparator) && !strings.Contains(word, "=") {
			return nil, fmt.Errorf("model %q: no name, and files are taken as such by their end .json", word)
		}
		return m, err
	}
	f, err := env.files().Open(word)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("model %s: there is no such file", word)
	case err != nil:
		return nil, failure.Cannot(fmt.Errorf("model %w", err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, workload.MaxConfig+1))
	if err != nil {
		return nil, failure.Cannot(fmt.Errorf("model %s: %w", word, err))
	}
	return workload.ReadConfig(word, data)
}
