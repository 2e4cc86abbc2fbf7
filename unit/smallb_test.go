package unit

import (
	"strings"
	"testing"
)

// A small b is not guessed: the size that may be meant is named.
func TestSmallB(t *testing.T) {
	for text, want := range map[string]string{"100mb": "100MB?", "1.5 gib": "1.5 GiB?"} {
		if b, err := ParseBytes(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", text, b, err)
		}
	}
}
