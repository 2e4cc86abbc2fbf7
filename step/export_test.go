package step

// Cold is the fabric with nothing known.
func (f *Fabric) Cold() *Fabric { return NewFabric(f.c, f.layout, f.split, f.version) }
