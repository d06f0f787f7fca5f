// The forms of the document: layouts written out in full, over several lines.
#l1_ = #ttcore.memory_space<l1>
func.func @forward(%arg0: tensor<53x63xf32,
    #ttcore.metal_layout<(d0, d1) -> (d0, d1),
      undef,
      <3x2>,
      memref<18x32xf32, #ttcore.memory_space<l1>>
    >
  >) {
  %0 = "ttir.to_layout"(%arg0) : (tensor<53x63xf32, #ttcore.metal_layout<(d0, d1) -> (d0, d1), undef, <3x2>, memref<18x32xf32, #l1_>>>) -> tensor<53x63xf32, #ttcore.metal_layout<(d0, d1) -> (d0, d1), undef, <3x2>, memref<1x1x!ttcore.tile<32 x 32, bfp_bf8>, #l1_>>>
  %1 = "ttir.empty"() : () -> tensor<8x96x32xf32, #ttcore.metal_layout<(d0, d1, d2) -> (d0 * 96 + d1, d1, d2), undef, <2x1x2>, memref<384x96x16xf32, #l1_>>>
  %2 = "ttir.empty"() : () -> tensor<4x4xf32>
}
