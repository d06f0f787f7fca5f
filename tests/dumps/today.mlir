#dram = #ttnn.buffer_type<dram>
#l1 = #ttnn.buffer_type<l1>
#system_memory = #ttnn.buffer_type<system_memory>
#system_desc = #ttcore.system_desc<[{role = host, target_triple = "x86_64-pc-linux"}], [{arch = <wormhole_b0>, grid = 8x8, coord_translation_offsets = 18x18, l1_size = 1499136, num_dram_channels = 12, dram_channel_size = 1073741824, noc_l1_address_align_bytes = 16, l1_unreserved_base = 1024, erisc_l1_unreserved_base = 1024}], [0], [1 : i32], [ 0x0x0x0]>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<64x128xf32, #system_memory>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x4x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <2x1>, memref<1x4x!ttcore.tile<32x32, f32>, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (1,0)>]>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <2x4>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <block_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (3,1)>]>>
#layout = #ttcore.metal_layout<logical_shape = 3x43x7, dim_alignments = 1x32x32, collapsed_intervals = dense<[[0, 2], [2, 3]]> : tensor<2x2xi64>, l1, sharded>
#layout1 = #ttcore.metal_layout<logical_shape = 9x43x7, dim_alignments = 256x32x32, collapsed_intervals = dense<[[0, 2], [2, 3]]> : tensor<2x2xi64>, l1, sharded>
#layout2 = #ttcore.metal_layout<logical_shape = 96x128, dim_alignments = 64x64, collapsed_intervals = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>, l1, sharded>
#layout3 = #ttcore.metal_layout<logical_shape = 96x128, dim_alignments = 32x32, collapsed_intervals = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>, l1, sharded>
module attributes {ttcore.system_desc = #system_desc} {
  ttcore.device @default_device = <workerGrid = #ttcore.grid<8x8, (d0, d1) -> (0, d0, d1)>, l1Map = (d0, d1, d2)[s0] -> (0, d0, d1, d2 + s0), meshShape = , chipIds = [0]>
  func.func @forward(%arg0: tensor<64x128xf32, #ttnn_layout>, %arg1: tensor<64x128xf32, #ttnn_layout1>) -> tensor<64x128xf32, #ttnn_layout> {
    %0 = "ttnn.to_layout"(%arg0) <{layout = #ttnn.layout<tile>}> : (tensor<64x128xf32, #ttnn_layout>) -> tensor<64x128xf32, #ttnn_layout1>
    %1 = "ttnn.to_memory_config"(%0) : (tensor<64x128xf32, #ttnn_layout1>) -> tensor<64x128xf32, #ttnn_layout2>
    %2 = "ttnn.to_memory_config"(%1) : (tensor<64x128xf32, #ttnn_layout2>) -> tensor<64x128xf32, #ttnn_layout3>
    %3 = d2m.empty() : tensor<6x1x32x32xf32, #layout>
    %4 = d2m.empty() : tensor<8x1x96x32xf32, #layout1>
    %5 = d2m.empty() : tensor<2x2x64x64xf32, #layout2>
    %6 = d2m.empty() : tensor<3x4x1x1x!ttcore.tile<32x32, f32>, #layout3>
    %7 = d2m.to_layout %5, %6 : tensor<2x2x64x64xf32, #layout2> into tensor<3x4x1x1x!ttcore.tile<32x32, f32>, #layout3> -> tensor<3x4x1x1x!ttcore.tile<32x32, f32>, #layout3>
    %8 = "x.y"(%7) : (tensor<7x4x1x1x!ttcore.tile<32x32, f32>, #layout3>) -> tensor<4x4xf32, #nope>
    %9 = "ttir.permute"(%6) <{permutation = array<i64: 1, 0>}> : (tensor<53x63xf32, #ttcore.metal_layout<(d0, d1) -> (d0, d1), undef, <3x2>, memref<18x32xf32, #ttcore.memory_space<l1>>>>) -> tensor<63x53xf32, #ttcore.metal_layout<(d0, d1) -> (d0, d1), undef, <2x3>, memref<32x18xf32, #ttcore.memory_space<l1>>>>
  }
}
