#dram = #ttnn.buffer_type<dram>
#l1 = #ttnn.buffer_type<l1>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<359x64xf32, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<64x128xf32, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x128xf32, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<128x10xf32, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x10xf32, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<12x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<12x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x4x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x4x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <12x1>, memref<1x2x!ttcore.tile<32x32, f32>, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (10,0)>, #ttnn.core_range<(0,1), (0,1)>]>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x4>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <width_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (3,0)>]>>
#ttnn_layout11 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <12x1>, memref<1x4x!ttcore.tile<32x32, f32>, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (10,0)>, #ttnn.core_range<(0,1), (0,1)>]>>
#ttnn_layout12 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout13 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout14 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (0,0)>]>>
#ttnn_layout15 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <12x1>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (10,0)>, #ttnn.core_range<(0,1), (0,1)>]>>
module @jit_mlp attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_mlp attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func public @main(%arg0: tensor<359x64xf32, #ttnn_layout> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<359x64xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<64x128xf32, #ttnn_layout1> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<64x128xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg2: tensor<128xf32, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<128xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg3: tensor<128x10xf32, #ttnn_layout3> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<128x10xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg4: tensor<10xf32, #ttnn_layout4> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<10xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<359x10xf32, #ttnn_layout5> {jax.result_info = "result", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<359x10xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = "ttnn.to_layout"(%arg0) : (tensor<359x64xf32, #ttnn_layout>) -> tensor<359x64xf32, #ttnn_layout6>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<359x64xf32, #ttnn_layout>) -> ()
        %1 = "ttnn.to_layout"(%arg1) : (tensor<64x128xf32, #ttnn_layout1>) -> tensor<64x128xf32, #ttnn_layout7>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<64x128xf32, #ttnn_layout1>) -> ()
        %2 = "ttnn.to_layout"(%arg2) : (tensor<128xf32, #ttnn_layout2>) -> tensor<128xf32, #ttnn_layout8>
        "ttnn.deallocate"(%arg2) <{force = false}> : (tensor<128xf32, #ttnn_layout2>) -> ()
        %3 = "ttnn.to_memory_config"(%0) : (tensor<359x64xf32, #ttnn_layout6>) -> tensor<359x64xf32, #ttnn_layout9>
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<359x64xf32, #ttnn_layout6>) -> ()
        %4 = "ttnn.to_memory_config"(%2) : (tensor<128xf32, #ttnn_layout8>) -> tensor<128xf32, #ttnn_layout10>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<128xf32, #ttnn_layout8>) -> ()
        %5 = "ttnn.linear"(%3, %1, %4) <{matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_1d_program_config<compute_with_storage_grid_size = #ttnn.core_coord<11, 2>, in0_block_w = 2, out_subblock_h = 1, out_subblock_w = 4, out_block_h = 1, out_block_w = 4, per_core_m = 1, per_core_n = 4, fuse_batch = true, mcast_in0 = false, gather_in0 = false, hop_cores = #ttnn.core_range_set<>, num_global_cb_receivers = 0, untilize_out = false>, transpose_a = false, transpose_b = false}> : (tensor<359x64xf32, #ttnn_layout9>, tensor<64x128xf32, #ttnn_layout7>, tensor<128xf32, #ttnn_layout10>) -> tensor<359x128xf32, #ttnn_layout11>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<128xf32, #ttnn_layout10>) -> ()
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<359x64xf32, #ttnn_layout9>) -> ()
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<64x128xf32, #ttnn_layout7>) -> ()
        %6 = "ttnn.relu"(%5) : (tensor<359x128xf32, #ttnn_layout11>) -> tensor<359x128xf32, #ttnn_layout11>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<359x128xf32, #ttnn_layout11>) -> ()
        %7 = "ttnn.to_layout"(%arg3) : (tensor<128x10xf32, #ttnn_layout3>) -> tensor<128x10xf32, #ttnn_layout12>
        "ttnn.deallocate"(%arg3) <{force = false}> : (tensor<128x10xf32, #ttnn_layout3>) -> ()
        %8 = "ttnn.to_layout"(%arg4) : (tensor<10xf32, #ttnn_layout4>) -> tensor<10xf32, #ttnn_layout13>
        "ttnn.deallocate"(%arg4) <{force = false}> : (tensor<10xf32, #ttnn_layout4>) -> ()
        %9 = "ttnn.to_memory_config"(%8) : (tensor<10xf32, #ttnn_layout13>) -> tensor<10xf32, #ttnn_layout14>
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<10xf32, #ttnn_layout13>) -> ()
        %10 = "ttnn.linear"(%6, %7, %9) <{matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_1d_program_config<compute_with_storage_grid_size = #ttnn.core_coord<11, 2>, in0_block_w = 4, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, fuse_batch = true, mcast_in0 = false, gather_in0 = false, hop_cores = #ttnn.core_range_set<>, num_global_cb_receivers = 0, untilize_out = false>, transpose_a = false, transpose_b = false}> : (tensor<359x128xf32, #ttnn_layout11>, tensor<128x10xf32, #ttnn_layout12>, tensor<10xf32, #ttnn_layout14>) -> tensor<359x10xf32, #ttnn_layout15>
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<10xf32, #ttnn_layout14>) -> ()
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<128x10xf32, #ttnn_layout12>) -> ()
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<359x128xf32, #ttnn_layout11>) -> ()
        %11 = "ttnn.softmax"(%10) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, math_approx_mode = false, fp32_dest_acc_en = true>, dimension = 1 : si32, numericStable = true}> : (tensor<359x10xf32, #ttnn_layout15>) -> tensor<359x10xf32, #ttnn_layout15>
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<359x10xf32, #ttnn_layout15>) -> ()
        %12 = "ttnn.to_memory_config"(%11) : (tensor<359x10xf32, #ttnn_layout15>) -> tensor<359x10xf32, #ttnn_layout5>
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<359x10xf32, #ttnn_layout15>) -> ()
        return %12 : tensor<359x10xf32, #ttnn_layout5>
      }
    }
  }
}
