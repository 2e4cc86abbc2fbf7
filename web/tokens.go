package web

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/osdep"
	"busbar.dev/internal/outfile"
)

// Token is one entry of the file of tokens. The secret itself is kept nowhere.
type Token struct {
	Name    string    `json:"name"`
	Role    string    `json:"role"`
	Hash    string    `json:"sha256"`
	Created time.Time `json:"created"`
	Used    time.Time `json:"last_used,omitzero"`
	// Once is a token that opens one session and then nothing, such as that of a printed address.
	Once bool `json:"once,omitempty"`
	// Spent is one that opened it. Nobody has its secret any more.
	Spent bool `json:"spent,omitempty"`
	// Ended is how often its sessions were ended; those from before do not count.
	Ended int64 `json:"sessions_ended,omitempty"`
}

// tokenFile is what the file holds.
type tokenFile struct {
	Version int `json:"version"`
	// Key signs sessions, so that they outlive the server's process.
	Key    string  `json:"session_key"`
	Tokens []Token `json:"tokens"`
}

// Tokens is the file of tokens. Several processes may use one: changes are made
// under a lock, and noticed by the file's time.
type Tokens struct {
	path string

	mu    sync.Mutex // guards following
	seen  fs.FileInfo
	file  tokenFile
	key   []byte
	noted map[string]time.Time // when the use of a token was last written
}

const (
	maxTokens    = 1000
	maxTokenFile = 4 << 20
	usedEvery    = time.Minute
)

// OpenTokens reads the file of tokens, or makes one without any.
func OpenTokens(path string) (*Tokens, error) {
	t := &Tokens{path: path, noted: map[string]time.Time{}}
	if err := t.edit(func(*tokenFile) error { return nil }); err != nil {
		return nil, err
	}
	return t, nil
}

var tokenName = lazyre.New(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// Add makes a token and gives its secret, which cannot be had again.
func (t *Tokens) Add(name string, role Role) (string, error) {
	if name == "first" || name == "local" {
		return "", fmt.Errorf("token %s: the server uses that name itself; take another", name)
	}
	return t.add(name, role, false)
}

// AddOnce makes a token that opens one session, and nothing else.
func (t *Tokens) AddOnce(name string, role Role) (string, error) { return t.add(name, role, true) }

func (t *Tokens) add(name string, role Role, once bool) (string, error) {
	if !tokenName.MatchString(name) {
		return "", fmt.Errorf("token %.80q: expected a name of letters, digits, dots, dashes and @, at most 64", name)
	}
	if role != Read && role != Order {
		return "", fmt.Errorf("token %s: role %v; expected read or order", name, role)
	}
	text := newSecret()
	return text, t.edit(func(f *tokenFile) error {
		if slices.ContainsFunc(f.Tokens, func(x Token) bool { return x.Name == name }) {
			return fmt.Errorf("token %s: there is one of that name; revoke it first, or take another name", name)
		}
		if len(f.Tokens) >= maxTokens {
			return fmt.Errorf("token %s: there are %d already; revoke some", name, len(f.Tokens))
		}
		f.Tokens = append(f.Tokens, Token{
			Name: name, Role: role.String(), Hash: hashOf(text), Created: time.Now().UTC().Truncate(time.Second), Once: once,
		})
		return nil
	})
}

// Revoke takes a token away; sessions that it opened end with it.
func (t *Tokens) Revoke(name string) error {
	return t.edit(func(f *tokenFile) error {
		n := len(f.Tokens)
		f.Tokens = slices.DeleteFunc(f.Tokens, func(x Token) bool { return x.Name == name })
		if len(f.Tokens) == n {
			return fmt.Errorf("token %.80q: there is none of that name", name)
		}
		return nil
	})
}

// List is the tokens there are.
func (t *Tokens) List() ([]Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(); err != nil {
		return nil, err
	}
	return slices.Clone(t.file.Tokens), nil
}

func newSecret() string {
	var secret [32]byte
	rand.Read(secret[:])
	return base64.RawURLEncoding.EncodeToString(secret[:])
}

func hashOf(secret string) string {
	h := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(h[:])
}

// edit changes the file under a lock that other processes respect.
func (t *Tokens) edit(change func(*tokenFile) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	lock, err := os.OpenFile(t.path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := osdep.Lock(lock, true); err != nil {
		return fmt.Errorf("%s: %w", lock.Name(), err)
	}
	t.seen = nil
	err = t.refresh()
	fresh := errors.Is(err, fs.ErrNotExist)
	if err != nil && !fresh {
		return err
	}
	f := t.file
	if fresh {
		var key [32]byte
		rand.Read(key[:])
		f = tokenFile{Version: 1, Key: hex.EncodeToString(key[:])}
	}
	f.Tokens = slices.Clone(f.Tokens)
	before := slices.Clone(f.Tokens)
	if err := change(&f); err != nil {
		return err
	}
	if !fresh && slices.Equal(f.Tokens, before) {
		return nil
	}
	if err := outfile.PrivateJSON(t.path, f); err != nil {
		return err
	}
	t.seen = nil
	return t.refresh()
}

// refresh reads the file again where it has changed. The caller holds mu.
func (t *Tokens) refresh() error {
	info, err := os.Stat(t.path)
	if err != nil {
		return err
	}
	if t.seen != nil && os.SameFile(info, t.seen) && info.ModTime().Equal(t.seen.ModTime()) &&
		info.Size() == t.seen.Size() {
		return nil
	}
	if osdep.Others(info) != 0 {
		return fmt.Errorf("%s: others may read it (%v); expected mode 0600: chmod 600 it", t.path, info.Mode().Perm())
	}
	if info.Size() > maxTokenFile {
		return fmt.Errorf("%s: %d bytes; expected at most %d", t.path, info.Size(), maxTokenFile)
	}
	data, err := os.ReadFile(t.path)
	if err != nil {
		return err
	}
	var f tokenFile
	if err := json.Unmarshal(data, &f); err != nil {
		return fmt.Errorf("%s: %w; restore the file from a backup, or move it away to begin anew", t.path, err)
	}
	key, err := hex.DecodeString(f.Key)
	if err != nil || len(key) < 32 || f.Version != 1 {
		return fmt.Errorf("%s: version %d without a session key of 32 bytes; move the file away to begin anew", t.path,
			f.Version)
	}
	t.seen, t.file, t.key = info, f, key
	return nil
}
