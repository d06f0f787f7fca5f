#dram = #ttnn.buffer_type<dram>
#l1 = #ttnn.buffer_type<l1>
#system_memory = #ttnn.buffer_type<system_memory>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 784 + d1 * 28 + d2, d3), <1x1>, memref<1568x3xf32, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 9 + d1 * 3 + d2, d3), <1x1>, memref<27x16xf32, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<3136x10xf32, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 96 + d1 * 32 + d2, d3), <1x1>, memref<9x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 96 + d1 * 32 + d2, d3), <10x11>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 896 + d1 * 32 + d2, d3), <1x1>, memref<56x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 1568 + d1 * 1568 + d2, d3), <10x11>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 9 + d1 * 3 + d2, d3), <10x11>, memref<1x4xf32, #l1>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 9 + d1 * 3 + d2, d3), <1x1>, memref<144x3xf32, #system_memory>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 32 + d1 * 32 + d2, d3), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout11 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 1568 + d1 * 1568 + d2, d3), <49x1>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (10,3)>, #ttnn.core_range<(0,4), (4,4)>]>>
#ttnn_layout12 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 1568 + d1 * 1568 + d2, d3), <49x1>, memref<1x1x!ttcore.tile<32x32, bf16>, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (10,3)>, #ttnn.core_range<(0,4), (4,4)>]>>
#ttnn_layout13 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 1568 + d1 * 1568 + d2, d3), <1x1>, memref<49x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout14 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 392 + d1 * 392 + d2, d3), <1x1>, memref<392x16xbf16, #dram>, <interleaved>>
#ttnn_layout15 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 416 + d1 * 416 + d2, d3), <1x1>, memref<13x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout16 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <10x11>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>
#ttnn_layout17 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<98x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout18 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (0,0)>]>>
module @jit_conv attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_conv attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func public @main(%arg0: tensor<2x28x28x3xf32, #ttnn_layout> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x28x28x3xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<3x3x3x16xf32, #ttnn_layout1> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<3x3x3x16xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg2: tensor<3136x10xf32, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<3136x10xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<2x10xf32, #ttnn_layout3> {jax.result_info = "result", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<2x10xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.to_layout"(%arg1) : (tensor<3x3x3x16xf32, #ttnn_layout1>) -> tensor<3x3x3x16xf32, #ttnn_layout4>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<3x3x3x16xf32, #ttnn_layout1>) -> ()
        %2 = "ttnn.permute"(%1) <{permutation = array<i64: 3, 2, 0, 1>}> : (tensor<3x3x3x16xf32, #ttnn_layout4>) -> tensor<16x3x3x3xf32, #ttnn_layout5>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<3x3x3x16xf32, #ttnn_layout4>) -> ()
        %3 = "ttnn.to_layout"(%arg0) : (tensor<2x28x28x3xf32, #ttnn_layout>) -> tensor<2x28x28x3xf32, #ttnn_layout6>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<2x28x28x3xf32, #ttnn_layout>) -> ()
        %4 = "ttnn.reshape"(%3) <{shape = [1 : i32, 1 : i32, 1568 : i32, 3 : i32]}> : (tensor<2x28x28x3xf32, #ttnn_layout6>) -> tensor<1x1x1568x3xf32, #ttnn_layout7>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<2x28x28x3xf32, #ttnn_layout6>) -> ()
        %5 = "ttnn.to_layout"(%2) : (tensor<16x3x3x3xf32, #ttnn_layout5>) -> tensor<16x3x3x3xf32, #ttnn_layout8>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<16x3x3x3xf32, #ttnn_layout5>) -> ()
        %6 = "ttnn.from_device"(%5) : (tensor<16x3x3x3xf32, #ttnn_layout8>) -> tensor<16x3x3x3xf32, #ttnn_layout9>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<16x3x3x3xf32, #ttnn_layout8>) -> ()
        %7 = "ttnn.prepare_conv2d_weights"(%6, %0) <{batch_size = 2 : i32, conv2d_config = #ttnn.conv2d_config<weights_dtype = f32, activation = <op_type = relu>, deallocate_activation = true, act_block_h_override = 0, shard_layout = height_sharded, enable_kernel_stride_folding = false, config_tensors_in_dram = true>, conv2d_slice_config = #ttnn.conv2d_slice_config<l1_full, 0>, dilation = array<i32: 1, 1>, groups = 1 : i32, has_bias = false, in_channels = 3 : i32, input_dtype = #ttcore.supportedDataTypes<f32>, input_height = 28 : i32, input_memory_config = #ttnn.memory_config<#l1, <interleaved>>, input_tensor_layout = #ttnn.layout<tile>, input_width = 28 : i32, kernel_size = array<i32: 3, 3>, out_channels = 16 : i32, output_dtype = #ttcore.supportedDataTypes<f32>, padding = array<i32: 1, 1, 1, 1>, stride = array<i32: 1, 1>, weights_format = "OIHW"}> : (tensor<16x3x3x3xf32, #ttnn_layout9>, !ttnn.device) -> tensor<1x1x27x16xf32, #ttnn_layout10>
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<16x3x3x3xf32, #ttnn_layout9>) -> ()
        %8 = "ttnn.conv2d"(%4, %7, %0) <{batch_size = 2 : i32, conv2d_config = #ttnn.conv2d_config<weights_dtype = f32, activation = <op_type = relu>, deallocate_activation = true, act_block_h_override = 0, shard_layout = height_sharded, enable_kernel_stride_folding = false, config_tensors_in_dram = true>, conv2d_slice_config = #ttnn.conv2d_slice_config<l1_full, 0>, dilation = array<i32: 1, 1>, groups = 1 : i32, in_channels = 3 : i32, input_height = 28 : i32, input_width = 28 : i32, kernel_size = array<i32: 3, 3>, out_channels = 16 : i32, padding = array<i32: 1, 1, 1, 1>, stride = array<i32: 1, 1>}> : (tensor<1x1x1568x3xf32, #ttnn_layout7>, tensor<1x1x27x16xf32, #ttnn_layout10>, !ttnn.device) -> tensor<1x1x1568x16xf32, #ttnn_layout11>
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<1x1x27x16xf32, #ttnn_layout10>) -> ()
        %9 = "ttnn.typecast"(%8) : (tensor<1x1x1568x16xf32, #ttnn_layout11>) -> tensor<1x1x1568x16xbf16, #ttnn_layout12>
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<1x1x1568x16xf32, #ttnn_layout11>) -> ()
        %10 = "ttnn.to_memory_config"(%9) : (tensor<1x1x1568x16xbf16, #ttnn_layout12>) -> tensor<1x1x1568x16xbf16, #ttnn_layout13>
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<1x1x1568x16xbf16, #ttnn_layout12>) -> ()
        %11 = "ttnn.max_pool2d"(%10) <{batch_size = 2 : si32, ceil_mode = false, channels = 16 : si32, config_tensors_in_dram = true, dilation = array<i32: 1, 1>, input_height = 28 : si32, input_width = 28 : si32, kernel_size = array<i32: 2, 2>, padding = array<i32: 0, 0>, reallocate_halo_output = false, stride = array<i32: 2, 2>}> : (tensor<1x1x1568x16xbf16, #ttnn_layout13>) -> tensor<1x1x392x16xbf16, #ttnn_layout14>
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<1x1x1568x16xbf16, #ttnn_layout13>) -> ()
        %12 = "ttnn.to_layout"(%11) : (tensor<1x1x392x16xbf16, #ttnn_layout14>) -> tensor<1x1x392x16xf32, #ttnn_layout15>
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<1x1x392x16xbf16, #ttnn_layout14>) -> ()
        %13 = "ttnn.reshape"(%12) <{shape = [2 : i32, 3136 : i32]}> : (tensor<1x1x392x16xf32, #ttnn_layout15>) -> tensor<2x3136xf32, #ttnn_layout16>
        "ttnn.deallocate"(%12) <{force = false}> : (tensor<1x1x392x16xf32, #ttnn_layout15>) -> ()
        %14 = "ttnn.to_layout"(%arg2) : (tensor<3136x10xf32, #ttnn_layout2>) -> tensor<3136x10xf32, #ttnn_layout17>
        "ttnn.deallocate"(%arg2) <{force = false}> : (tensor<3136x10xf32, #ttnn_layout2>) -> ()
        %15 = "ttnn.matmul"(%13, %14) <{matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_1d_program_config<compute_with_storage_grid_size = #ttnn.core_coord<1, 1>, in0_block_w = 98, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, fuse_batch = true, mcast_in0 = false, gather_in0 = false, hop_cores = #ttnn.core_range_set<>, num_global_cb_receivers = 0, untilize_out = false>, transpose_a = false, transpose_b = false}> : (tensor<2x3136xf32, #ttnn_layout16>, tensor<3136x10xf32, #ttnn_layout17>) -> tensor<2x10xf32, #ttnn_layout18>
        "ttnn.deallocate"(%14) <{force = false}> : (tensor<3136x10xf32, #ttnn_layout17>) -> ()
        "ttnn.deallocate"(%13) <{force = false}> : (tensor<2x3136xf32, #ttnn_layout16>) -> ()
        %16 = "ttnn.to_memory_config"(%15) : (tensor<2x10xf32, #ttnn_layout18>) -> tensor<2x10xf32, #ttnn_layout3>
        "ttnn.deallocate"(%15) <{force = false}> : (tensor<2x10xf32, #ttnn_layout18>) -> ()
        return %16 : tensor<2x10xf32, #ttnn_layout3>
      }
    }
  }
}
