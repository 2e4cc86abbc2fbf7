package reduce

//go:generate go -C gen run . -isa avx2 -part floats -pkg reduce -out ../floats_avx2_amd64.s -stubs ../floats_avx2_amd64.go
//go:generate go -C gen run . -isa avx2 -part ints -pkg reduce -out ../ints_avx2_amd64.s -stubs ../ints_avx2_amd64.go
//go:generate go -C gen run . -isa avx512 -part floats -pkg reduce -out ../floats_avx512_amd64.s -stubs ../floats_avx512_amd64.go
//go:generate go -C gen run . -isa avx512 -part ints -pkg reduce -out ../ints_avx512_amd64.s -stubs ../ints_avx512_amd64.go
//go:generate go -C gen run . -isa avx2 -part convert -pkg reduce -out ../convert_avx2_amd64.s -stubs ../convert_avx2_amd64.go
//go:generate go -C gen run . -isa avx512 -part convert -pkg reduce -out ../convert_avx512_amd64.s -stubs ../convert_avx512_amd64.go
//go:generate go -C gen run . -isa neon -out ../neon_arm64.s -stubs ../neon_arm64.go
