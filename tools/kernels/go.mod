// The generator of the kernels of internal/reduce, apart from busbar's own packages.
module busbar.dev/tools/kernels

go 1.26.0
