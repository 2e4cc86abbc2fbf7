// The fit behind the built-in figures, and what it is worth on machines it has not seen, apart from busbar's own module.
module busbar.dev/tools/fit

go 1.26.0

require busbar.dev v0.0.0

replace busbar.dev => ../..
