package query

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"unicode"

	"busbar.dev/internal/failure"
	"busbar.dev/workload"
)

// LoadModel is the model of a word: a name (busbar models lists them), dimensions (params=20B,layers=48), a config.json of Hugging
// Face, or the folder that it is in. A name is taken before a folder that is called the same; ./NAME is the folder. What is neither may be a name as
// Hugging Face has it (meta-llama/Llama-3.1-8B).
func LoadModel(env Env, word string) (*workload.Model, error) {
	m, err := loadModel(env, word)
	return m, env.aboutNamed("model", err)
}

func loadModel(env Env, word string) (*workload.Model, error) {
	if len(word) > maxName || strings.ContainsRune(word, 0) {
		return nil, fmt.Errorf("model %.60q: expected a name, dimensions or a file, of at most %d bytes and none of them zero", word, maxName)
	}
	if strings.HasSuffix(strings.ToLower(word), ".json") {
		return readModel(env, word)
	}
	m, err := workload.Parse(word)
	if err == nil {
		env.note(m.Notes...)
	}
	if err == nil || strings.Contains(word, "=") || word == "" {
		return m, err
	}
	folder := strings.TrimRight(word, "/")
	switch info, statErr := fs.Stat(env.files(), folder); {
	case statErr != nil:
	case info.IsDir():
		if m, err = readModel(env, folder+"/config.json"); m != nil {
			m.Name = strings.TrimSuffix(m.Name, "/config.json")
		}
		return m, err
	default:
		return readModel(env, word)
	}
	if known := workload.FindHub(word); known != nil {
		if env.Note != nil {
			env.Note(fmt.Sprintf("model %s is taken as %s", word, known.Name))
		}
		return known, nil
	}
	if strings.ContainsRune(word, os.PathSeparator) {
		return nil, fmt.Errorf("model %q: no such folder, and not a name that is known; expected a name (busbar models lists them), a Hugging Face config.json (-m config.json), or the folder that it is in", word)
	}
	return nil, err
}

// readModel reads a config.json.
func readModel(env Env, name string) (*workload.Model, error) {
	// Asked before it is opened: a pipe would be waited for.
	if info, err := fs.Stat(env.files(), name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("model %q is no regular file; expected a config.json of Hugging Face", name)
	}
	f, err := env.files().Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, missing{fmt.Errorf("model %q: there is no such file", name)}
	case err != nil:
		return nil, failure.Cannot(fmt.Errorf("model %w", err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, workload.MaxConfig+1))
	if err != nil {
		return nil, failure.Cannot(fmt.Errorf("model %s: %w", name, err))
	}
	if strings.IndexFunc(name, unicode.IsControl) >= 0 { // which terminals would obey
		name = strconv.QuoteToASCII(name)
	}
	m, err := workload.ReadConfig(name, data)
	if m != nil {
		env.note(m.Notes...)
		env.note(fmt.Sprintf("%s: sequences have %d tokens unless --seq says otherwise (context %d)", name, m.Seq, m.Dims.Context))
	}
	return m, err
}
