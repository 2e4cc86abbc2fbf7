// The comparison with other programs' collectives, apart from busbar's own module.
module busbar.dev/tools/peers

go 1.26.0

require busbar.dev v0.0.0

replace busbar.dev => ../..
