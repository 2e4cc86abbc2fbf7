package bus

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"busbar.dev/internal/outfile"
)

// Keys are what a server of our own trusts, kept in a folder that only its owner reads: the
// operator's and the accounts' keys, the account as it is signed, and who was issued
// credentials. Several processes may use one folder.
type Keys struct {
	dir      string
	operator nkeys.KeyPair
	account  nkeys.KeyPair // its identity
	system   nkeys.KeyPair
	signer   nkeys.KeyPair // signs users of the account
}

// Names of files in the folder of keys.
const (
	accountFile = "account.jwt"
	issuedFile  = "issued.json"
	keysLock    = "lock"
)

// OpenKeys reads the keys in a folder, and makes them where there are none.
func OpenKeys(dir string) (*Keys, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	unlock, err := lock(filepath.Join(dir, keysLock), true)
	if err != nil {
		return nil, err
	}
	defer unlock()
	k := &Keys{dir: dir}
	for _, p := range []struct {
		name string
		kind nkeys.PrefixByte
		into *nkeys.KeyPair
	}{
		{"operator.nk", nkeys.PrefixByteOperator, &k.operator},
		{"account.nk", nkeys.PrefixByteAccount, &k.account},
		{"system.nk", nkeys.PrefixByteAccount, &k.system},
		{"signer.nk", nkeys.PrefixByteAccount, &k.signer},
	} {
		if *p.into, err = openKey(filepath.Join(dir, p.name), p.kind); err != nil {
			return nil, err
		}
	}
	if _, err := os.Stat(filepath.Join(dir, accountFile)); !errors.Is(err, os.ErrNotExist) {
		return k, err
	}
	a := jwt.NewAccountClaims(public(k.account))
	a.Name = "busbar"
	a.SigningKeys.Add(public(k.signer))
	return k, k.writeAccount(a)
}

// damaged is the error of a file that credentials which were handed out hang on, so that no other is made in its place.
func damaged(path string, why any) error {
	return fmt.Errorf("%s: %v; restore the file from a backup, or move the folder %s away and issue credentials for all "+
		"nodes anew", path, why, filepath.Dir(path))
}

// openKey reads a key, or makes it.
func openKey(path string, kind nkeys.PrefixByte) (nkeys.KeyPair, error) {
	seed, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		k, err := nkeys.CreatePair(kind)
		if err != nil {
			return nil, err
		}
		if seed, err = k.Seed(); err != nil {
			return nil, err
		}
		return k, outfile.Private(path, append(seed, '\n'))
	}
	if err != nil {
		return nil, err
	}
	got, _, err := nkeys.DecodeSeed(trim(seed))
	if err != nil || got != kind {
		return nil, damaged(path, fmt.Sprintf("no %s seed is in it", kind))
	}
	return nkeys.FromSeed(trim(seed))
}

func (k *Keys) writeAccount(a *jwt.AccountClaims) error {
	text, err := a.Encode(k.operator)
	if err != nil {
		return err
	}
	return outfile.Private(filepath.Join(k.dir, accountFile), []byte(text))
}

// claims reads the account as it is signed now.
func (k *Keys) claims() (a *jwt.AccountClaims, text string, err error) {
	path := filepath.Join(k.dir, accountFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, "", err
	}
	text = strings.TrimSpace(string(data))
	a, err = jwt.DecodeAccountClaims(text)
	if err == nil && (a.Subject != public(k.account) || a.Issuer != public(k.operator) ||
		!a.SigningKeys.Contains(public(k.signer))) {
		err = errors.New("it is of other keys than those beside it")
	}
	if err != nil {
		return nil, "", damaged(path, err)
	}
	return a, text, nil
}

// operatorClaims is the operator, signed by itself.
func (k *Keys) operatorClaims() (*jwt.OperatorClaims, error) {
	o := jwt.NewOperatorClaims(public(k.operator))
	o.Name = "busbar"
	o.SystemAccount = public(k.system)
	text, err := o.Encode(k.operator)
	if err != nil {
		return nil, err
	}
	return jwt.DecodeOperatorClaims(text)
}

func public(k nkeys.KeyPair) string {
	s, err := k.PublicKey()
	if err != nil { // only of a key pair that was wiped
		return ""
	}
	return s
}

func trim(seed []byte) []byte { return []byte(strings.TrimSpace(string(seed))) }

// ErrInUse tells that another process has a folder that only one may have.
var ErrInUse = errors.New("another process uses this folder")

// Lock takes a file for this process until the returned function is called or the process ends.
// It is an error when another process has it.
func Lock(path string) (unlock func(), err error) { return lock(path, false) }
