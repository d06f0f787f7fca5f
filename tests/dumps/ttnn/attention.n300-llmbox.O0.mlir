#dram = #ttnn.buffer_type<dram>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 32 + d1 * 32 + d2, d3), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 50 + d1, d2), <1x1>, memref<50x96xf32, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<48x24xf32, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 64 + d1, d2), <1x1>, memref<2x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<3x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 64 + d1, d2), <1x1>, memref<2x3x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x3x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 64 + d1 * 64 + d2, d3), <1x1>, memref<2x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 32 + d1 * 32 + d2, d3), <1x1>, memref<1x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 64 + d1 * 64 + d2, d3), <1x1>, memref<2x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
module @jit_attention attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 2x4>]>} {
  ttcore.device_module {
    builtin.module @jit_attention attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 2x4>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0() -> tensor<1x1x1x1xf32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 2x4>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 0.204124138 : f32, shape = #ttnn.shape<1x1x1x1>}> : (!ttnn.device) -> tensor<1x1x1x1xf32, #ttnn_layout>
        return %1 : tensor<1x1x1x1xf32, #ttnn_layout>
      }
      func.func public @main(%arg0: tensor<1x50x96xf32, #ttnn_layout1> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<1x50x96xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, %arg1: tensor<48x24xf32, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<48x24xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, %arg2: tensor<48x24xf32, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<48x24xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, %arg3: tensor<48x24xf32, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<48x24xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, %arg4: tensor<48x24xf32, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<48x24xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}) -> (tensor<1x50x24xf32, #ttnn_layout3> {jax.result_info = "result", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<1x50x24xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_const_eval_0, []) : () -> tensor<1x1x1x1xf32, #ttnn_layout>
        %1 = "ttnn.to_layout"(%arg1) : (tensor<48x24xf32, #ttnn_layout2>) -> tensor<48x24xf32, #ttnn_layout4>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<48x24xf32, #ttnn_layout2>) -> ()
        %2 = "ttnn.all_gather"(%1) <{all_gather_dim = 0 : si32, cluster_axis = 0 : ui32}> : (tensor<48x24xf32, #ttnn_layout4>) -> tensor<96x24xf32, #ttnn_layout5>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<48x24xf32, #ttnn_layout4>) -> ()
        %3 = "ttnn.to_layout"(%arg0) : (tensor<1x50x96xf32, #ttnn_layout1>) -> tensor<1x50x96xf32, #ttnn_layout6>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<1x50x96xf32, #ttnn_layout1>) -> ()
        %4 = "ttnn.reshape"(%3) <{shape = [50 : i32, 96 : i32]}> : (tensor<1x50x96xf32, #ttnn_layout6>) -> tensor<50x96xf32, #ttnn_layout7>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<1x50x96xf32, #ttnn_layout6>) -> ()
        %5 = "ttnn.matmul"(%4, %2) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_1d_program_config<compute_with_storage_grid_size = #ttnn.core_coord<8, 8>, in0_block_w = 1, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, fuse_batch = false, mcast_in0 = false, gather_in0 = false, hop_cores = #ttnn.core_range_set<>, num_global_cb_receivers = 0, untilize_out = false>, transpose_a = false, transpose_b = false}> : (tensor<50x96xf32, #ttnn_layout7>, tensor<96x24xf32, #ttnn_layout5>) -> tensor<50x24xf32, #ttnn_layout4>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<96x24xf32, #ttnn_layout5>) -> ()
        %6 = "ttnn.reshape"(%5) <{shape = [1 : i32, 1 : i32, 50 : i32, 24 : i32]}> : (tensor<50x24xf32, #ttnn_layout4>) -> tensor<1x1x50x24xf32, #ttnn_layout8>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<50x24xf32, #ttnn_layout4>) -> ()
        %7 = "ttnn.to_layout"(%arg2) : (tensor<48x24xf32, #ttnn_layout2>) -> tensor<48x24xf32, #ttnn_layout4>
        "ttnn.deallocate"(%arg2) <{force = false}> : (tensor<48x24xf32, #ttnn_layout2>) -> ()
        %8 = "ttnn.all_gather"(%7) <{all_gather_dim = 0 : si32, cluster_axis = 0 : ui32}> : (tensor<48x24xf32, #ttnn_layout4>) -> tensor<96x24xf32, #ttnn_layout5>
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<48x24xf32, #ttnn_layout4>) -> ()
        %9 = "ttnn.matmul"(%4, %8) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_1d_program_config<compute_with_storage_grid_size = #ttnn.core_coord<8, 8>, in0_block_w = 1, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, fuse_batch = false, mcast_in0 = false, gather_in0 = false, hop_cores = #ttnn.core_range_set<>, num_global_cb_receivers = 0, untilize_out = false>, transpose_a = false, transpose_b = false}> : (tensor<50x96xf32, #ttnn_layout7>, tensor<96x24xf32, #ttnn_layout5>) -> tensor<50x24xf32, #ttnn_layout4>
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<96x24xf32, #ttnn_layout5>) -> ()
        %10 = "ttnn.reshape"(%9) <{shape = [1 : i32, 1 : i32, 50 : i32, 24 : i32]}> : (tensor<50x24xf32, #ttnn_layout4>) -> tensor<1x1x50x24xf32, #ttnn_layout8>
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<50x24xf32, #ttnn_layout4>) -> ()
        %11 = "ttnn.to_layout"(%arg3) : (tensor<48x24xf32, #ttnn_layout2>) -> tensor<48x24xf32, #ttnn_layout4>
        "ttnn.deallocate"(%arg3) <{force = false}> : (tensor<48x24xf32, #ttnn_layout2>) -> ()
        %12 = "ttnn.all_gather"(%11) <{all_gather_dim = 0 : si32, cluster_axis = 0 : ui32}> : (tensor<48x24xf32, #ttnn_layout4>) -> tensor<96x24xf32, #ttnn_layout5>
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<48x24xf32, #ttnn_layout4>) -> ()
        %13 = "ttnn.matmul"(%4, %12) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_1d_program_config<compute_with_storage_grid_size = #ttnn.core_coord<8, 8>, in0_block_w = 1, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, fuse_batch = false, mcast_in0 = false, gather_in0 = false, hop_cores = #ttnn.core_range_set<>, num_global_cb_receivers = 0, untilize_out = false>, transpose_a = false, transpose_b = false}> : (tensor<50x96xf32, #ttnn_layout7>, tensor<96x24xf32, #ttnn_layout5>) -> tensor<50x24xf32, #ttnn_layout4>
        "ttnn.deallocate"(%12) <{force = false}> : (tensor<96x24xf32, #ttnn_layout5>) -> ()
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<50x96xf32, #ttnn_layout7>) -> ()
        %14 = "ttnn.reshape"(%13) <{shape = [1 : i32, 1 : i32, 50 : i32, 24 : i32]}> : (tensor<50x24xf32, #ttnn_layout4>) -> tensor<1x1x50x24xf32, #ttnn_layout8>
        "ttnn.deallocate"(%13) <{force = false}> : (tensor<50x24xf32, #ttnn_layout4>) -> ()
        %15 = "ttnn.transpose"(%10) <{dim0 = -2 : si32, dim1 = -1 : si32}> : (tensor<1x1x50x24xf32, #ttnn_layout8>) -> tensor<1x1x24x50xf32, #ttnn_layout9>
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<1x1x50x24xf32, #ttnn_layout8>) -> ()
        %16 = "ttnn.matmul"(%6, %15) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_program_config<compute_with_storage_grid_size = #ttnn.core_coord<8, 8>, in0_block_w = 1, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, transpose_mcast = false, fuse_batch = true>, transpose_a = false, transpose_b = false}> : (tensor<1x1x50x24xf32, #ttnn_layout8>, tensor<1x1x24x50xf32, #ttnn_layout9>) -> tensor<1x1x50x50xf32, #ttnn_layout10>
        "ttnn.deallocate"(%15) <{force = false}> : (tensor<1x1x24x50xf32, #ttnn_layout9>) -> ()
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<1x1x50x24xf32, #ttnn_layout8>) -> ()
        %17 = "ttnn.multiply"(%16, %0) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1x1x50x50xf32, #ttnn_layout10>, tensor<1x1x1x1xf32, #ttnn_layout>) -> tensor<1x1x50x50xf32, #ttnn_layout10>
        "ttnn.deallocate"(%16) <{force = false}> : (tensor<1x1x50x50xf32, #ttnn_layout10>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1x1x1x1xf32, #ttnn_layout>) -> ()
        %18 = "ttnn.softmax"(%17) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, dimension = -1 : si32, numericStable = true}> : (tensor<1x1x50x50xf32, #ttnn_layout10>) -> tensor<1x1x50x50xf32, #ttnn_layout10>
        "ttnn.deallocate"(%17) <{force = false}> : (tensor<1x1x50x50xf32, #ttnn_layout10>) -> ()
        %19 = "ttnn.matmul"(%18, %14) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_1d_program_config<compute_with_storage_grid_size = #ttnn.core_coord<8, 8>, in0_block_w = 1, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, fuse_batch = false, mcast_in0 = false, gather_in0 = false, hop_cores = #ttnn.core_range_set<>, num_global_cb_receivers = 0, untilize_out = false>, transpose_a = false, transpose_b = false}> : (tensor<1x1x50x50xf32, #ttnn_layout10>, tensor<1x1x50x24xf32, #ttnn_layout8>) -> tensor<1x1x50x24xf32, #ttnn_layout8>
        "ttnn.deallocate"(%18) <{force = false}> : (tensor<1x1x50x50xf32, #ttnn_layout10>) -> ()
        "ttnn.deallocate"(%14) <{force = false}> : (tensor<1x1x50x24xf32, #ttnn_layout8>) -> ()
        %20 = "ttnn.reshape"(%19) <{shape = [1 : i32, 50 : i32, 24 : i32]}> : (tensor<1x1x50x24xf32, #ttnn_layout8>) -> tensor<1x50x24xf32, #ttnn_layout3>
        "ttnn.deallocate"(%19) <{force = false}> : (tensor<1x1x50x24xf32, #ttnn_layout8>) -> ()
        %21 = "ttnn.all_gather"(%20) <{all_gather_dim = 2 : si32, cluster_axis = 1 : ui32}> : (tensor<1x50x24xf32, #ttnn_layout3>) -> tensor<1x50x96xf32, #ttnn_layout6>
        "ttnn.deallocate"(%20) <{force = false}> : (tensor<1x50x24xf32, #ttnn_layout3>) -> ()
        %22 = "ttnn.to_layout"(%arg4) : (tensor<48x24xf32, #ttnn_layout2>) -> tensor<48x24xf32, #ttnn_layout4>
        "ttnn.deallocate"(%arg4) <{force = false}> : (tensor<48x24xf32, #ttnn_layout2>) -> ()
        %23 = "ttnn.all_gather"(%22) <{all_gather_dim = 0 : si32, cluster_axis = 0 : ui32}> : (tensor<48x24xf32, #ttnn_layout4>) -> tensor<96x24xf32, #ttnn_layout5>
        "ttnn.deallocate"(%22) <{force = false}> : (tensor<48x24xf32, #ttnn_layout4>) -> ()
        %24 = "ttnn.reshape"(%21) <{shape = [50 : i32, 96 : i32]}> : (tensor<1x50x96xf32, #ttnn_layout6>) -> tensor<50x96xf32, #ttnn_layout7>
        "ttnn.deallocate"(%21) <{force = false}> : (tensor<1x50x96xf32, #ttnn_layout6>) -> ()
        %25 = "ttnn.matmul"(%24, %23) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_1d_program_config<compute_with_storage_grid_size = #ttnn.core_coord<8, 8>, in0_block_w = 1, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, fuse_batch = false, mcast_in0 = false, gather_in0 = false, hop_cores = #ttnn.core_range_set<>, num_global_cb_receivers = 0, untilize_out = false>, transpose_a = false, transpose_b = false}> : (tensor<50x96xf32, #ttnn_layout7>, tensor<96x24xf32, #ttnn_layout5>) -> tensor<50x24xf32, #ttnn_layout4>
        "ttnn.deallocate"(%24) <{force = false}> : (tensor<50x96xf32, #ttnn_layout7>) -> ()
        "ttnn.deallocate"(%23) <{force = false}> : (tensor<96x24xf32, #ttnn_layout5>) -> ()
        %26 = "ttnn.reshape"(%25) <{shape = [1 : i32, 50 : i32, 24 : i32]}> : (tensor<50x24xf32, #ttnn_layout4>) -> tensor<1x50x24xf32, #ttnn_layout3>
        "ttnn.deallocate"(%25) <{force = false}> : (tensor<50x24xf32, #ttnn_layout4>) -> ()
        return %26 : tensor<1x50x24xf32, #ttnn_layout3>
      }
    }
  }
}
