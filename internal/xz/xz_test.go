package xz

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// packed are 400 lines, made with Python's lzma module.
const packed = "/Td6WFoAAAFpIt42AgAhARAAAACocI6G4DkyBd9dADGbyc5C9frnZGUIb5n2NgD1WJh1F9Rphy+vQLJF1Ss2y07cjEepTHjCKEMsByIsNZ4qhwXdIDtZZJCexe5rB497ZiE3e7zKth01pL+uMkWCq6khK682hDpXlxnJRbwK4x0LJ20sQ+pDf1lUZ1Yrsx1CNW+g1V1baYRm27YbXqKI53EFO+rSxNQH7QgykzyLo+FmdHVXuIiKt2vBb1PIQA9OBeva7uwRKS1WfwZ0Tcrfop4ggnPpaFcUUQsZcouJgqbvkjpbhxu8OUzv6oiTQyWO3/H7uLSCRkShJx5Ly6N9Q7ORVwzgfhhgWaNHzCVJXc06cytdhkBkPekdl6l+cH9B5M0k1OjlJvDg+bXOl9wXn+mHbTTRrXGBCyqATzmCN+IsFjamT6km77H27iPHpxlHpB5cf9oiVTP8dmLExl6wGV1LrVDh9OuKQvZnDQmtUmerUbtZhy0H0Y5ULKmVg5AUdfPs9oWxjGKTp9Tz72mXvCR1+3e7gTIqVNBOe/ljwuPATPhLF6Wmsl0FrV1Z5sce5gZY5CiZ+ojK51XOZoqmFInuGfrMm50uiHcIH7qASoTmzViNHK3aYbFkjPBVa9tz+RWOdr16tE+8G+ASq8on4CKUtk4rc7fiVBoPxk25h5jJQmZG7Kh09pStjpO6ySCt2Oetoa660PyiFWbHcByB9SPUp2zWpC/ZO16Hr4hJi7FmbKfSphAVTQdn4Nu8fiL8xNt82bDLEewlx9M8u2hdbHDK7g477Wm/q/P/G0INwVCWftBlaoP2Lv6WZ5v8rgJmBUGM7ry7ZukRROcZgJcBuxnPDrLgTB0Ai+bf3ZGvgj4HZPRwYbUbVSwH7Ntf2V6LfoLViQZ2rL9zVcyTpfxmqtB7uykVRZaq4yTh3aZfUgCn2pxVLLGGwwtlikp210HNnc1HrkA2SqLeaz1JNxpMZciJaMFh4bdHcrS371WC2t96c7d9huH24fz0vfkVdLjseGRULrzMaan7iAZlCv/kav7beYtQAra8A0aZRRFY6kIW5WlfoLaN1LnclbVB05mLyikYk9uxjKo6qBuC6oqgF+MZKH5N0ofr0zqr1yBaLU0/2Cubd5YUqCscHr1MKIlvnzTr8rN+QVY99YtfXXaNy3odL5uZoMd/IUdJjvqih9WnUd8tJcD7IQAy/B1/c+PzAS6Kwc7Trs5wtOHOKz/K4FVPAyko72bRWR+55bId2xuFRPdL5ISJBllj3pyj+/jYuDHr4vCUOuqO4gREX3ZsaoNaS746ul32KC9v0w577q7PxhclI7uLG+hu0qCJktR6cQPQKm40QRVBYLWrwFvuJzr+JFhhetrshlBv4st74nFQAzcYEolxxvM7BtnarkMfCMOkXU45wZ2pFbfIpxu5MejAJh950Gbp5Kw5fPZKlKSBzLez2Aus4m88gKhPCi7LtWIBnudNuc9/gMOOUhCWClWhaniLpILmBMunTrJIOn9R9WFM+ZSZRFBGW6l+WDiYP69Rstgl4QOhJU4wbU2+qMv1hbTpYmQT7/8/u7u7GX2lLcZOmZWd4XVuS0Vg2SmriQRXiFnbDQzxNCFx2J8VluIA6N3cc+bLGd9seAV/Q6HKT6vFSoBeRipNcFpuRvABXddkUvBUomx7qfFLtzdh4Nu8b+LpfAV4R+wo4T7eE/7QpJ7ZapfEZLTlF6CgfnTsNgxskidMUxoSDRxoc1o7eYl0GSpZSBDFqBfuaEl22GwDFZe4Z4csOMKtRtRxec7EE7Ou/exe9f/MMoO3gN8iAe46R7Ao20X5O6ZWrb1klpiDPDweOFgTMxcFnWSHyDDE1R9tJc9sKUBp0XB3hI3OPcX8lMcTX/XRTs+j81hheJLEixWA3ze7xRRvz14ZNegt8LCLGyuy3yWrNEvq9Al9sctqpmlBH0XD5+hEZAx2QBd/rURG7sy1I4Wm5W4k3CtXR97ihVhKaxwYjsQJcY2E/Dx7EPhnWOeU25n+fNS0LrkhA2HnmDcfeZz2kC+RYAAAerCeJwAB9wuzcgAAJ5Gg5D4wDYsCAAAAAAFZWg=="

// plain are 300 bytes that do not pack.
const plain = "/Td6WFoAAATm1rRGAgAhARYAAAB0L+WjAQErRCCCPP3m8cJrMPkOx90B5Ih1NKIPCw0Ew27YDnHg/XewdnDrlAvVM1+XParYYZuR/8kR9XzO1Fi7vyzgN1PJvfoP8BadyVdWdAZmds+wtOuJAsRCadoc9rpm0/i21LEAqeoOdVpcLoIQJCoI5wePf4k4XrCUI1VRglaLluik/vI6DJ/Fr9dghDeBa90KcwnLShJS5Npw5nIPyqTaHphAbBicJCeemFHVgUIEE2/rVxPBZrEyad1j/DXHl/8Ips2QCVBmp0Wt222IMcKw+HghFCtEVlVtiaqCvK2uOpV4+kU1pBTQJcJLQK46wSdyKYi6lzrqjTcXlwYHLtM6FGB611I75lV7UTTewZaB9KEzaqIUDQWXo+bIoMwgIKLpOYBu8LaEXWqdZX64KY8tAAWhPuCTzDoMAAHEAqwCAADMqdU3scRn+wIAAAAABFla"

func decode(t testing.TB, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestUnpack(t *testing.T) {
	var want strings.Builder
	for i := range 400 {
		fmt.Fprintf(&want, "collective %d of rank %d took %d us\n", i, i%7, i*7919%1000)
	}
	data := decode(t, packed)
	got, err := Unpack(data, 1<<20)
	if err != nil || string(got) != want.String() {
		t.Errorf("%v, %d bytes, want %d", err, len(got), want.Len())
	}
	if got, err := Unpack(decode(t, plain), 1<<20); err != nil || len(got) != 300 {
		t.Errorf("bytes that do not pack: %v, %d bytes", err, len(got))
	}
	if _, err := Unpack(data, 1000); err == nil {
		t.Error("more than allowed was unpacked")
	}
	for n := range data[:len(data)-40] {
		if _, err := Unpack(data[:n], 1<<20); err == nil {
			t.Fatalf("cut off after %d bytes: no error", n)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(decode(f, packed))
	f.Add(decode(f, plain))
	f.Fuzz(func(t *testing.T, data []byte) {
		if out, err := Unpack(data, 1<<16); err == nil && len(out) > 1<<16 {
			t.Errorf("%d bytes", len(out))
		}
	})
}
