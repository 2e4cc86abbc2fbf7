package bus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/outfile"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// Keys are what a server of our own trusts, kept in a folder that only its owner reads: the operator's and the
// accounts' keys, and who was issued credentials. Several processes may use one folder.
type Keys struct {
	dir      string
	operator nkeys.KeyPair
	account  nkeys.KeyPair // its identity
	system   nkeys.KeyPair
	signer   nkeys.KeyPair // signs users of the account
}

// Names of files in the folder of keys.
const (
	issuedFile = "issued.json"
	keysLock   = "lock"
	storeDir   = "store" // beside that folder
)

// OpenKeys reads the keys in a folder, and makes them where there are none.
func OpenKeys(dir string) (*Keys, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	unlock, err := Lock(filepath.Join(dir, keysLock), true)
	if err != nil {
		return nil, err
	}
	defer unlock()
	some, _ := filepath.Glob(filepath.Join(dir, "*.nk"))
	_, none := os.Stat(filepath.Join(dir, "..", storeDir)) // a start that was cut off made some keys and no store
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
		if *p.into, err = openKey(filepath.Join(dir, p.name), p.kind, none == nil && some != nil); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// damaged is the error of a file that credentials which were handed out hang on, so that no other is made in its place.
func damaged(path string, why any) error {
	return fmt.Errorf("%s: %v; restore the file from a backup, or move the folder %s away and issue credentials for all "+
		"nodes anew", path, why, filepath.Dir(path))
}

// openKey reads a key, or makes it where the keys have not been used yet.
func openKey(path string, kind nkeys.PrefixByte, used bool) (nkeys.KeyPair, error) {
	seed, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		if used {
			return nil, damaged(path, "it is gone, and others that were made with it are there")
		}
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
	seed = bytes.TrimSpace(seed)
	got, _, err := nkeys.DecodeSeed(seed)
	if err != nil || got != kind {
		return nil, damaged(path, fmt.Sprintf("no %s seed is in it", kind))
	}
	return nkeys.FromSeed(seed)
}

func public(k nkeys.KeyPair) string {
	s, err := k.PublicKey()
	if err != nil { // only of a key pair that was wiped
		return ""
	}
	return s
}

// Issued is a set of credentials that was handed out: all but the secret.
type Issued struct {
	Node      fleet.Name `json:"node,omitzero"` // empty: a server's
	Key       string     `json:"key"`           // the public key
	At        time.Time  `json:"at"`
	Expires   time.Time  `json:"expires,omitzero"`
	Withdrawn time.Time  `json:"withdrawn,omitzero"`
}

// Issue makes credentials for a node, as the text of a .creds file, and writes down that there are some. expiry 0 is
// never.
func (k *Keys) Issue(node fleet.Name, expiry time.Duration) ([]byte, Issued, error) {
	creds, out, err := k.node(node, expiry)
	if err != nil {
		return nil, out, err
	}
	return creds, out, k.change(func(all []Issued) ([]Issued, error) { return append(all, out), nil })
}

// mostIssued is how many credentials of a node Renew lets be valid at the same time: each can be revoked, so that the
// list of them is kept.
const mostIssued = 32

// Errors of Renew that only a person, or time, mends.
var (
	ErrRevoked = errors.New("the node's credentials were revoked; busbar serve token node NAME lets it in again")
	ErrIssued  = fmt.Errorf("the node has %d credentials that have not expired; wait until some have", mostIssued)
)

// Renew makes further credentials of a node that proves who it is, and forgets those that have expired. It makes none
// once the node's last were revoked.
func (k *Keys) Renew(node fleet.Name, expiry time.Duration) ([]byte, error) {
	creds, out, err := k.node(node, expiry)
	if err != nil {
		return nil, err
	}
	return creds, k.change(func(all []Issued) ([]Issued, error) {
		var last Issued
		valid := 0
		all = slices.DeleteFunc(all, func(e Issued) bool {
			if e.Node != node {
				return false
			}
			last = e
			over := !e.Expires.IsZero() && e.Expires.Before(out.At)
			if !over && e.Withdrawn.IsZero() {
				valid++
			}
			return over && e.Withdrawn.IsZero()
		})
		switch {
		case !last.Withdrawn.IsZero():
			return nil, ErrRevoked
		case valid >= mostIssued:
			return nil, ErrIssued
		}
		return append(all, out), nil
	})
}

func (k *Keys) node(node fleet.Name, expiry time.Duration) ([]byte, Issued, error) {
	if _, err := fleet.ParseName(string(node)); err != nil {
		return nil, Issued{}, err
	}
	return k.sign(node, expiry, func(u *jwt.UserClaims) {
		u.Name = string(node)
		// Nothing here is answered by the store itself; see relay.
		u.Pub.Allow.Add(publishTo+node.Token(), lastTo+node.Token(), fleet.BeatOf(node), fleet.ProgressOf(node))
		u.Sub.Allow.Add(fleet.PartOf(node), inboxOf(node)+".>")
		// A node answers what it was asked, once, and where the question said.
		u.Resp = &jwt.ResponsePermission{MaxMsgs: 1, Expires: time.Minute}
		u.Limits.Subs = 16
		u.Limits.Payload = maxPayload
		u.AllowedConnectionTypes.Add(jwt.ConnectionTypeStandard, jwt.ConnectionTypeInProcess)
	})
}

// Hub makes credentials for a server of the fleet. They are not written down.
func (k *Keys) Hub() ([]byte, error) {
	creds, _, err := k.sign("", 0, func(u *jwt.UserClaims) {
		u.Name = "hub"
		u.Pub.Allow.Add(fleet.HubLog, fleet.LogOf("*"), "busbar.part.*", "_INBOX.node.>", "$KV.BUSBAR.>", "$JS.API.INFO",
			"$JS.API.STREAM.CREATE.BUSBAR", "$JS.API.STREAM.UPDATE.BUSBAR", "$JS.API.STREAM.INFO.BUSBAR",
			"$JS.API.CONSUMER.*.BUSBAR.>", "$JS.API.CONSUMER.MSG.NEXT.BUSBAR.>", "$JS.API.DIRECT.GET.BUSBAR.>",
			"$JS.API.STREAM.CREATE.KV_BUSBAR", "$JS.API.STREAM.UPDATE.KV_BUSBAR", "$JS.API.STREAM.INFO.KV_BUSBAR",
			"$JS.API.DIRECT.GET.KV_BUSBAR.>")
		u.Sub.Allow.Add(fleet.Beats, fleet.ProgressAll, publishTo+"*", lastTo+"*", inboxOf("")+".>")
	})
	return creds, err
}

func (k *Keys) sign(node fleet.Name, expiry time.Duration, shape func(*jwt.UserClaims)) (
	creds []byte, out Issued, err error,
) {
	user, err := nkeys.CreateUser()
	if err != nil {
		return nil, out, err
	}
	seed, err := user.Seed()
	if err != nil {
		return nil, out, err
	}
	u := jwt.NewUserClaims(public(user))
	u.IssuerAccount = public(k.account)
	now := time.Now().UTC().Truncate(time.Second)
	out = Issued{Node: node, Key: u.Subject, At: now}
	if expiry != 0 {
		out.Expires = now.Add(expiry)
		u.Expires = out.Expires.Unix()
	}
	shape(u)
	text, err := u.Encode(k.signer)
	if err != nil {
		return nil, out, err
	}
	creds, err = jwt.FormatUserConfig(text, seed)
	return creds, out, err
}

// NodeOf is the node that credentials are for; empty where they do not name one, as those that
// were made by other means.
func NodeOf(creds []byte) (fleet.Name, error) {
	text, err := jwt.ParseDecoratedJWT(creds)
	if err != nil {
		return "", err
	}
	u, err := jwt.DecodeUserClaims(text)
	if err != nil {
		return "", err
	}
	name, err := fleet.ParseName(u.Name)
	if err != nil || !u.Sub.Allow.Contains(fleet.PartOf(name)) {
		return "", nil
	}
	return name, nil
}

// Issued lists what was issued, oldest first.
func (k *Keys) Issued() (all []Issued, err error) {
	path := filepath.Join(k.dir, issuedFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		if err = json.Unmarshal(data, &all); err != nil {
			err = damaged(path, err)
		}
	}
	return all, err
}

// Revoke withdraws all credentials of a node. A server that runs on these keys follows within
// seconds and cuts who is connected with them.
func (k *Keys) Revoke(node fleet.Name) (withdrawn []Issued, err error) {
	err = k.change(func(all []Issued) ([]Issued, error) {
		for i := range all {
			if e := &all[i]; e.Node == node && e.Withdrawn.IsZero() {
				e.Withdrawn = time.Now().UTC().Truncate(time.Second)
				withdrawn = append(withdrawn, *e)
			}
		}
		if withdrawn == nil {
			return nil, fmt.Errorf("node %s has no credentials to revoke", node)
		}
		return all, nil
	})
	return withdrawn, err
}

// change rewrites the list of what was issued, alone among processes.
func (k *Keys) change(how func([]Issued) ([]Issued, error)) error {
	unlock, err := Lock(filepath.Join(k.dir, keysLock), true)
	if err != nil {
		return err
	}
	defer unlock()
	all, err := k.Issued()
	if err != nil {
		return err
	}
	if all, err = how(slices.Clip(all)); err != nil {
		return err
	}
	return outfile.PrivateJSON(filepath.Join(k.dir, issuedFile), all)
}
