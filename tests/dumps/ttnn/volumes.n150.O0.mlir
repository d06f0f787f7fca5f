#dram = #ttnn.buffer_type<dram>
#system_memory = #ttnn.buffer_type<system_memory>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1, d2, d3, d4) -> (d0 * 140 + d1 * 35 + d2 * 5 + d3, d4), <1x1>, memref<280x40xf32, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1, d2, d3, d4) -> (d0 * 360 + d1 * 120 + d2 * 40 + d3, d4), <1x1>, memref<1080x8xf32, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 37 + d1, d2), <1x1>, memref<74x12xf32, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 12 + d1, d2), <1x1>, memref<48x20xf32, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1, d2, d3, d4) -> (d0 * 896 + d1 * 224 + d2 * 32 + d3, d4), <1x1>, memref<56x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 64 + d1, d2), <1x1>, memref<4x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0, d1, d2, d3, d4) -> (d0 * 576 + d1 * 192 + d2 * 64 + d3, d4), <1x1>, memref<54x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0, d1, d2, d3, d4) -> (d0 * 3840 + d1 * 96 + d2 * 32 + d3, d4), <1x1>, memref<960x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0, d1, d2, d3, d4) -> (d0 * 896 + d1 * 224 + d2 * 32 + d3, d4), <1x1>, memref<56x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<9x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0, d1, d2, d3, d4) -> (d0 * 896 + d1 * 224 + d2 * 32 + d3, d4), <1x1>, memref<56x2x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout11 = #ttnn.ttnn_layout<(d0, d1, d2, d3, d4) -> (d0 * 140 + d1 * 35 + d2 * 5 + d3, d4), <1x1>, memref<280x64xbf16, #dram>, <interleaved>>
#ttnn_layout12 = #ttnn.ttnn_layout<(d0, d1, d2, d3, d4) -> (d0 * 3840 + d1 * 96 + d2 * 32 + d3, d4), <1x1>, memref<960x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout13 = #ttnn.ttnn_layout<(d0, d1, d2, d3, d4) -> (d0 * 360 + d1 * 9 + d2 * 3 + d3, d4), <1x1>, memref<2880x3xbf16, #dram>, <interleaved>>
#ttnn_layout14 = #ttnn.ttnn_layout<(d0, d1, d2, d3, d4) -> (d0 * 360 + d1 * 9 + d2 * 3 + d3, d4), <1x1>, memref<2880x3xbf16, #system_memory>>
#ttnn_layout15 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1728x8xbf16, #dram>, <interleaved>>
#ttnn_layout16 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<54x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout17 = #ttnn.ttnn_layout<(d0, d1, d2, d3, d4) -> (d0 * 140 + d1 * 35 + d2 * 5 + d3, d4), <1x1>, memref<280x8xbf16, #dram>, <interleaved>>
#ttnn_layout18 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>, memref<4x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout19 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>, memref<20x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout20 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 12 + d1, d2), <1x1>, memref<240x4xf32, #dram>, <interleaved>>
#ttnn_layout21 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 12 + d1, d2), <1x1>, memref<240x4xf32, #system_memory>>
#ttnn_layout22 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 96 + d1 * 96 + d2, d3), <1x1>, memref<3x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
module @jit_volumes attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_volumes attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func public @main(%arg0: tensor<2x4x7x5x40xf32, #ttnn_layout> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x4x7x5x40xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<3x3x3x40x8xf32, #ttnn_layout1> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<3x3x3x40x8xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg2: tensor<2x37x12xf32, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x37x12xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg3: tensor<4x12x20xf32, #ttnn_layout3> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<4x12x20xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<2x4x7x5x8xf32, #ttnn_layout4> {jax.result_info = "result[0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x4x7x5x8xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<2x37x20xf32, #ttnn_layout5> {jax.result_info = "result[1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x37x20xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.to_layout"(%arg1) : (tensor<3x3x3x40x8xf32, #ttnn_layout1>) -> tensor<3x3x3x40x8xf32, #ttnn_layout6>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<3x3x3x40x8xf32, #ttnn_layout1>) -> ()
        %2 = "ttnn.permute"(%1) <{permutation = array<i64: 4, 3, 0, 1, 2>}> : (tensor<3x3x3x40x8xf32, #ttnn_layout6>) -> tensor<8x40x3x3x3xf32, #ttnn_layout7>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<3x3x3x40x8xf32, #ttnn_layout6>) -> ()
        %3 = "ttnn.to_layout"(%arg0) : (tensor<2x4x7x5x40xf32, #ttnn_layout>) -> tensor<2x4x7x5x40xf32, #ttnn_layout8>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<2x4x7x5x40xf32, #ttnn_layout>) -> ()
        %4 = "ttnn.reshape"(%3) <{shape = [280 : i32, 40 : i32]}> : (tensor<2x4x7x5x40xf32, #ttnn_layout8>) -> tensor<280x40xf32, #ttnn_layout9>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<2x4x7x5x40xf32, #ttnn_layout8>) -> ()
        %5 = "ttnn.pad"(%4) <{padding = array<i32: 0, 0, 0, 24>, use_multicore = true, value = 0.000000e+00 : f32}> : (tensor<280x40xf32, #ttnn_layout9>) -> tensor<280x64xf32, #ttnn_layout9>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<280x40xf32, #ttnn_layout9>) -> ()
        %6 = "ttnn.reshape"(%5) <{shape = [2 : i32, 4 : i32, 7 : i32, 5 : i32, 64 : i32]}> : (tensor<280x64xf32, #ttnn_layout9>) -> tensor<2x4x7x5x64xf32, #ttnn_layout8>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<280x64xf32, #ttnn_layout9>) -> ()
        %7 = "ttnn.typecast"(%6) : (tensor<2x4x7x5x64xf32, #ttnn_layout8>) -> tensor<2x4x7x5x64xbf16, #ttnn_layout10>
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<2x4x7x5x64xf32, #ttnn_layout8>) -> ()
        %8 = "ttnn.to_layout"(%7) : (tensor<2x4x7x5x64xbf16, #ttnn_layout10>) -> tensor<2x4x7x5x64xbf16, #ttnn_layout11>
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<2x4x7x5x64xbf16, #ttnn_layout10>) -> ()
        %9 = "ttnn.typecast"(%2) : (tensor<8x40x3x3x3xf32, #ttnn_layout7>) -> tensor<8x40x3x3x3xbf16, #ttnn_layout12>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<8x40x3x3x3xf32, #ttnn_layout7>) -> ()
        %10 = "ttnn.to_layout"(%9) : (tensor<8x40x3x3x3xbf16, #ttnn_layout12>) -> tensor<8x40x3x3x3xbf16, #ttnn_layout13>
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<8x40x3x3x3xbf16, #ttnn_layout12>) -> ()
        %11 = "ttnn.from_device"(%10) : (tensor<8x40x3x3x3xbf16, #ttnn_layout13>) -> tensor<8x40x3x3x3xbf16, #ttnn_layout14>
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<8x40x3x3x3xbf16, #ttnn_layout13>) -> ()
        %12 = "ttnn.prepare_conv3d_weights"(%11, %0) <{alignment = 32 : i32, c_in_block = 32 : i32, groups = 1 : i32}> : (tensor<8x40x3x3x3xbf16, #ttnn_layout14>, !ttnn.device) -> tensor<1728x8xbf16, #ttnn_layout15>
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<8x40x3x3x3xbf16, #ttnn_layout14>) -> ()
        %13 = "ttnn.to_layout"(%12) : (tensor<1728x8xbf16, #ttnn_layout15>) -> tensor<1728x8xbf16, #ttnn_layout16>
        "ttnn.deallocate"(%12) <{force = false}> : (tensor<1728x8xbf16, #ttnn_layout15>) -> ()
        %14 = "ttnn.conv3d"(%8, %13, %0) <{batch_size = 2 : i32, compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, conv3d_config = #ttnn.conv3d_config<t_out_block = 1, w_out_block = 1, h_out_block = 1, c_out_block = 32, c_in_block = 32, compute_with_storage_grid_size = #ttcore.grid<8x8>>, dilation = array<i32: 1, 1, 1>, groups = 1 : i32, in_channels = 64 : i32, input_depth = 4 : i32, input_height = 7 : i32, input_width = 5 : i32, kernel_size = array<i32: 3, 3, 3>, out_channels = 8 : i32, padding = array<i32: 1, 1, 1>, padding_mode = "zeros", stride = array<i32: 1, 1, 1>}> : (tensor<2x4x7x5x64xbf16, #ttnn_layout11>, tensor<1728x8xbf16, #ttnn_layout16>, !ttnn.device) -> tensor<2x4x7x5x8xbf16, #ttnn_layout17>
        "ttnn.deallocate"(%13) <{force = false}> : (tensor<1728x8xbf16, #ttnn_layout16>) -> ()
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<2x4x7x5x64xbf16, #ttnn_layout11>) -> ()
        %15 = "ttnn.to_layout"(%arg3) : (tensor<4x12x20xf32, #ttnn_layout3>) -> tensor<4x12x20xf32, #ttnn_layout18>
        "ttnn.deallocate"(%arg3) <{force = false}> : (tensor<4x12x20xf32, #ttnn_layout3>) -> ()
        %16 = "ttnn.permute"(%15) <{permutation = array<i64: 2, 1, 0>}> : (tensor<4x12x20xf32, #ttnn_layout18>) -> tensor<20x12x4xf32, #ttnn_layout19>
        "ttnn.deallocate"(%15) <{force = false}> : (tensor<4x12x20xf32, #ttnn_layout18>) -> ()
        %17 = "ttnn.to_layout"(%16) : (tensor<20x12x4xf32, #ttnn_layout19>) -> tensor<20x12x4xf32, #ttnn_layout20>
        "ttnn.deallocate"(%16) <{force = false}> : (tensor<20x12x4xf32, #ttnn_layout19>) -> ()
        %18 = "ttnn.from_device"(%17) : (tensor<20x12x4xf32, #ttnn_layout20>) -> tensor<20x12x4xf32, #ttnn_layout21>
        "ttnn.deallocate"(%17) <{force = false}> : (tensor<20x12x4xf32, #ttnn_layout20>) -> ()
        %19 = "ttnn.conv1d"(%arg2, %18, %0) <{batch_size = 2 : i32, compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, conv2d_config = #ttnn.conv2d_config<config_tensors_in_dram = false>, dilation = 1 : i32, groups = 1 : i32, in_channels = 12 : i32, input_length = 37 : i32, kernel_size = 4 : i32, out_channels = 20 : i32, padding = array<i32: 3, 0>, stride = 1 : i32}> : (tensor<2x37x12xf32, #ttnn_layout2>, tensor<20x12x4xf32, #ttnn_layout21>, !ttnn.device) -> tensor<1x1x74x20xf32, #ttnn_layout22>
        "ttnn.deallocate"(%18) <{force = false}> : (tensor<20x12x4xf32, #ttnn_layout21>) -> ()
        "ttnn.deallocate"(%arg2) <{force = false}> : (tensor<2x37x12xf32, #ttnn_layout2>) -> ()
        %20 = "ttnn.reshape"(%19) <{shape = [2 : i32, 37 : i32, 20 : i32]}> : (tensor<1x1x74x20xf32, #ttnn_layout22>) -> tensor<2x37x20xf32, #ttnn_layout5>
        "ttnn.deallocate"(%19) <{force = false}> : (tensor<1x1x74x20xf32, #ttnn_layout22>) -> ()
        %21 = "ttnn.to_layout"(%14) : (tensor<2x4x7x5x8xbf16, #ttnn_layout17>) -> tensor<2x4x7x5x8xf32, #ttnn_layout4>
        "ttnn.deallocate"(%14) <{force = false}> : (tensor<2x4x7x5x8xbf16, #ttnn_layout17>) -> ()
        return %21, %20 : tensor<2x4x7x5x8xf32, #ttnn_layout4>, tensor<2x37x20xf32, #ttnn_layout5>
      }
    }
  }
}
