#l1 = #ttcore.memory_space<l1>
#system_desc = #ttcore.system_desc<[{role = host, target_triple = "x86_64-pc-linux"}], [{arch = <wormhole_b0>, grid = 8x8, coord_translation_offsets = 18x18, l1_size = 1499136, num_dram_channels = 12, dram_channel_size = 1073741824, noc_l1_address_align_bytes = 16, l1_unreserved_base = 1024}], [0], [1 : i32], [ 0x0x0x0]>
#scalar = #ttcore.metal_layout<(d0, d1) -> (d0, d1), undef, <3x2>, memref<18x32xf32, #l1>>
#tiled = #ttcore.metal_layout<(d0, d1) -> (d0, d1), undef, <3x2>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>>
#fewer = #ttcore.metal_layout<(d0, d1) -> (d0, d1), undef, <2x2>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>>
#skewed = #ttcore.metal_layout<(d0, d1, d2) -> (d0 * 96 + d1, d1, d2), undef, <2x1x2>, memref<384x96x16xf32, #l1>>
module attributes {ttcore.system_desc = #system_desc} {
  func.func @forward(%arg0: tensor<53x63xf32, #scalar>, %arg1: tensor<8x96x32xf32, #skewed>) -> tensor<53x63xf32, #fewer> {
    %0 = "ttir.to_layout"(%arg0) : (tensor<53x63xf32, #scalar>) -> tensor<53x63xf32, #tiled>
    %1 = "ttir.to_layout"(%0) : (tensor<53x63xf32, #tiled>) -> tensor<53x63xf32, #fewer>
    return %1 : tensor<53x63xf32, #fewer>
  }
}
