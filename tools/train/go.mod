// What memory and steps are predicted of a published study of one framework, apart from busbar's own module.
module busbar.dev/tools/train

go 1.26.0

require busbar.dev v0.0.0

replace busbar.dev => ../..
