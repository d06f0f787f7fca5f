#dram = #ttnn.buffer_type<dram>
#system_memory = #ttnn.buffer_type<system_memory>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 392 + d1 * 28 + d2, d3), <1x1>, memref<784x3xf32, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 9 + d1 * 3 + d2, d3), <1x1>, memref<27x16xf32, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<3136x5xf32, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 96 + d1 * 32 + d2, d3), <1x1>, memref<9x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 96 + d1 * 32 + d2, d3), <1x1>, memref<48x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 448 + d1 * 32 + d2, d3), <1x1>, memref<28x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 800 + d1 * 800 + d2, d3), <1x1>, memref<25x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 9 + d1 * 3 + d2, d3), <1x1>, memref<144x3xf32, #dram>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 9 + d1 * 3 + d2, d3), <1x1>, memref<144x3xf32, #system_memory>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 784 + d1 * 784 + d2, d3), <1x1>, memref<784x3xf32, #dram>, <interleaved>>
#ttnn_layout11 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 896 + d1 * 32 + d2, d3), <1x1>, memref<56x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout12 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 1568 + d1 * 1568 + d2, d3), <1x1>, memref<49x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout13 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 1568 + d1 * 1568 + d2, d3), <1x1>, memref<49x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout14 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 1568 + d1 * 1568 + d2, d3), <1x1>, memref<1568x16xbf16, #dram>, <interleaved>>
#ttnn_layout15 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 392 + d1 * 392 + d2, d3), <1x1>, memref<392x16xbf16, #dram>, <interleaved>>
#ttnn_layout16 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 416 + d1 * 416 + d2, d3), <1x1>, memref<13x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout17 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x98x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout18 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<98x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
module @jit_conv attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>} {
  ttcore.device_module {
    builtin.module @jit_conv attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func public @main(%arg0: tensor<2x14x28x3xf32, #ttnn_layout> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x14x28x3xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, %arg1: tensor<3x3x3x16xf32, #ttnn_layout1> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<3x3x3x16xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, %arg2: tensor<3136x5xf32, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<3136x5xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}) -> (tensor<2x5xf32, #ttnn_layout3> {jax.result_info = "result", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x5xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.to_layout"(%arg1) : (tensor<3x3x3x16xf32, #ttnn_layout1>) -> tensor<3x3x3x16xf32, #ttnn_layout4>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<3x3x3x16xf32, #ttnn_layout1>) -> ()
        %2 = "ttnn.permute"(%1) <{permutation = array<i64: 3, 2, 0, 1>}> : (tensor<3x3x3x16xf32, #ttnn_layout4>) -> tensor<16x3x3x3xf32, #ttnn_layout5>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<3x3x3x16xf32, #ttnn_layout4>) -> ()
        %3 = "ttnn.to_layout"(%arg0) : (tensor<2x14x28x3xf32, #ttnn_layout>) -> tensor<2x14x28x3xf32, #ttnn_layout6>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<2x14x28x3xf32, #ttnn_layout>) -> ()
        %4 = "ttnn.reshape"(%3) <{shape = [1 : i32, 1 : i32, 784 : i32, 3 : i32]}> : (tensor<2x14x28x3xf32, #ttnn_layout6>) -> tensor<1x1x784x3xf32, #ttnn_layout7>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<2x14x28x3xf32, #ttnn_layout6>) -> ()
        %5 = "ttnn.to_layout"(%2) : (tensor<16x3x3x3xf32, #ttnn_layout5>) -> tensor<16x3x3x3xf32, #ttnn_layout8>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<16x3x3x3xf32, #ttnn_layout5>) -> ()
        %6 = "ttnn.from_device"(%5) : (tensor<16x3x3x3xf32, #ttnn_layout8>) -> tensor<16x3x3x3xf32, #ttnn_layout9>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<16x3x3x3xf32, #ttnn_layout8>) -> ()
        %7 = "ttnn.to_layout"(%4) : (tensor<1x1x784x3xf32, #ttnn_layout7>) -> tensor<1x1x784x3xf32, #ttnn_layout10>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<1x1x784x3xf32, #ttnn_layout7>) -> ()
        %8 = "ttnn.conv2d"(%7, %6, %0) <{batch_size = 2 : i32, compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, conv2d_config = #ttnn.conv2d_config<enable_kernel_stride_folding = false, config_tensors_in_dram = true>, dilation = array<i32: 1, 1>, groups = 1 : i32, in_channels = 3 : i32, input_height = 14 : i32, input_width = 28 : i32, kernel_size = array<i32: 3, 3>, out_channels = 16 : i32, padding = array<i32: 1, 1, 1, 1>, stride = array<i32: 1, 1>}> : (tensor<1x1x784x3xf32, #ttnn_layout10>, tensor<16x3x3x3xf32, #ttnn_layout9>, !ttnn.device) -> tensor<1x1x784x16xf32, #ttnn_layout7>
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<1x1x784x3xf32, #ttnn_layout10>) -> ()
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<16x3x3x3xf32, #ttnn_layout9>) -> ()
        %9 = "ttnn.reshape"(%8) <{shape = [2 : i32, 14 : i32, 28 : i32, 16 : i32]}> : (tensor<1x1x784x16xf32, #ttnn_layout7>) -> tensor<2x14x28x16xf32, #ttnn_layout6>
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<1x1x784x16xf32, #ttnn_layout7>) -> ()
        %10 = "ttnn.all_gather"(%9) <{all_gather_dim = 1 : si32, cluster_axis = 1 : ui32}> : (tensor<2x14x28x16xf32, #ttnn_layout6>) -> tensor<2x28x28x16xf32, #ttnn_layout11>
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<2x14x28x16xf32, #ttnn_layout6>) -> ()
        %11 = "ttnn.reshape"(%10) <{shape = [1 : i32, 1 : i32, 1568 : i32, 16 : i32]}> : (tensor<2x28x28x16xf32, #ttnn_layout11>) -> tensor<1x1x1568x16xf32, #ttnn_layout12>
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<2x28x28x16xf32, #ttnn_layout11>) -> ()
        %12 = "ttnn.relu"(%11) : (tensor<1x1x1568x16xf32, #ttnn_layout12>) -> tensor<1x1x1568x16xf32, #ttnn_layout12>
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<1x1x1568x16xf32, #ttnn_layout12>) -> ()
        %13 = "ttnn.typecast"(%12) : (tensor<1x1x1568x16xf32, #ttnn_layout12>) -> tensor<1x1x1568x16xbf16, #ttnn_layout13>
        "ttnn.deallocate"(%12) <{force = false}> : (tensor<1x1x1568x16xf32, #ttnn_layout12>) -> ()
        %14 = "ttnn.to_layout"(%13) : (tensor<1x1x1568x16xbf16, #ttnn_layout13>) -> tensor<1x1x1568x16xbf16, #ttnn_layout14>
        "ttnn.deallocate"(%13) <{force = false}> : (tensor<1x1x1568x16xbf16, #ttnn_layout13>) -> ()
        %15 = "ttnn.max_pool2d"(%14) <{batch_size = 2 : si32, ceil_mode = false, channels = 16 : si32, config_tensors_in_dram = true, dilation = array<i32: 1, 1>, input_height = 28 : si32, input_width = 28 : si32, kernel_size = array<i32: 2, 2>, padding = array<i32: 0, 0>, reallocate_halo_output = false, stride = array<i32: 2, 2>}> : (tensor<1x1x1568x16xbf16, #ttnn_layout14>) -> tensor<1x1x392x16xbf16, #ttnn_layout15>
        "ttnn.deallocate"(%14) <{force = false}> : (tensor<1x1x1568x16xbf16, #ttnn_layout14>) -> ()
        %16 = "ttnn.to_layout"(%15) : (tensor<1x1x392x16xbf16, #ttnn_layout15>) -> tensor<1x1x392x16xf32, #ttnn_layout16>
        "ttnn.deallocate"(%15) <{force = false}> : (tensor<1x1x392x16xbf16, #ttnn_layout15>) -> ()
        %17 = "ttnn.reshape"(%16) <{shape = [2 : i32, 3136 : i32]}> : (tensor<1x1x392x16xf32, #ttnn_layout16>) -> tensor<2x3136xf32, #ttnn_layout17>
        "ttnn.deallocate"(%16) <{force = false}> : (tensor<1x1x392x16xf32, #ttnn_layout16>) -> ()
        %18 = "ttnn.to_layout"(%arg2) : (tensor<3136x5xf32, #ttnn_layout2>) -> tensor<3136x5xf32, #ttnn_layout18>
        "ttnn.deallocate"(%arg2) <{force = false}> : (tensor<3136x5xf32, #ttnn_layout2>) -> ()
        %19 = "ttnn.matmul"(%17, %18) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_1d_program_config<compute_with_storage_grid_size = #ttnn.core_coord<8, 8>, in0_block_w = 14, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, fuse_batch = false, mcast_in0 = false, gather_in0 = false, hop_cores = #ttnn.core_range_set<>, num_global_cb_receivers = 0, untilize_out = false>, transpose_a = false, transpose_b = false}> : (tensor<2x3136xf32, #ttnn_layout17>, tensor<3136x5xf32, #ttnn_layout18>) -> tensor<2x5xf32, #ttnn_layout3>
        "ttnn.deallocate"(%18) <{force = false}> : (tensor<3136x5xf32, #ttnn_layout18>) -> ()
        "ttnn.deallocate"(%17) <{force = false}> : (tensor<2x3136xf32, #ttnn_layout17>) -> ()
        return %19 : tensor<2x5xf32, #ttnn_layout3>
      }
    }
  }
}
