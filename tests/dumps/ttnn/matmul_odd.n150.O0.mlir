#dram = #ttnn.buffer_type<dram>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<53x63xf32, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<63x10xf32, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func public @main(%arg0: tensor<53x63xf32, #ttnn_layout> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<53x63xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<63x10xf32, #ttnn_layout1> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<63x10xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<53x10xf32, #ttnn_layout2> {jax.result_info = "result", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<53x10xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = "ttnn.to_layout"(%arg0) : (tensor<53x63xf32, #ttnn_layout>) -> tensor<53x63xf32, #ttnn_layout3>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<53x63xf32, #ttnn_layout>) -> ()
        %1 = "ttnn.to_layout"(%arg1) : (tensor<63x10xf32, #ttnn_layout1>) -> tensor<63x10xf32, #ttnn_layout2>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<63x10xf32, #ttnn_layout1>) -> ()
        %2 = "ttnn.matmul"(%0, %1) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_1d_program_config<compute_with_storage_grid_size = #ttnn.core_coord<8, 8>, in0_block_w = 1, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, fuse_batch = false, mcast_in0 = false, gather_in0 = false, hop_cores = #ttnn.core_range_set<>, num_global_cb_receivers = 0, untilize_out = false>, transpose_a = false, transpose_b = false}> : (tensor<53x63xf32, #ttnn_layout3>, tensor<63x10xf32, #ttnn_layout2>) -> tensor<53x10xf32, #ttnn_layout2>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<63x10xf32, #ttnn_layout2>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<53x63xf32, #ttnn_layout3>) -> ()
        return %2 : tensor<53x10xf32, #ttnn_layout2>
      }
    }
  }
}
