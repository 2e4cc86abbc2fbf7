package bus

import "testing"

func testPermissions(t *testing.T, p *place) {}
