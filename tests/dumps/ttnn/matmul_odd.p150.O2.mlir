#dram = #ttnn.buffer_type<dram>
#l1 = #ttnn.buffer_type<l1>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<53x63xf32, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<63x10xf32, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <2x1>, memref<1x2x!ttcore.tile<32x32, f32>, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (1,0)>]>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <2x1>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (1,0)>]>>
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func public @main(%arg0: tensor<53x63xf32, #ttnn_layout> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<53x63xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<63x10xf32, #ttnn_layout1> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<63x10xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<53x10xf32, #ttnn_layout2> {jax.result_info = "result", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<53x10xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = "ttnn.to_layout"(%arg0) : (tensor<53x63xf32, #ttnn_layout>) -> tensor<53x63xf32, #ttnn_layout3>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<53x63xf32, #ttnn_layout>) -> ()
        %1 = "ttnn.to_layout"(%arg1) : (tensor<63x10xf32, #ttnn_layout1>) -> tensor<63x10xf32, #ttnn_layout2>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<63x10xf32, #ttnn_layout1>) -> ()
        %2 = "ttnn.to_memory_config"(%0) : (tensor<53x63xf32, #ttnn_layout3>) -> tensor<53x63xf32, #ttnn_layout4>
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<53x63xf32, #ttnn_layout3>) -> ()
        %3 = "ttnn.matmul"(%2, %1) <{matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_1d_program_config<compute_with_storage_grid_size = #ttnn.core_coord<2, 1>, in0_block_w = 2, out_subblock_h = 1, out_subblock_w = 1, out_block_h = 1, out_block_w = 1, per_core_m = 1, per_core_n = 1, fuse_batch = true, mcast_in0 = false, gather_in0 = false, hop_cores = #ttnn.core_range_set<>, num_global_cb_receivers = 0, untilize_out = false>, transpose_a = false, transpose_b = false}> : (tensor<53x63xf32, #ttnn_layout4>, tensor<63x10xf32, #ttnn_layout2>) -> tensor<53x10xf32, #ttnn_layout5>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<53x63xf32, #ttnn_layout4>) -> ()
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<63x10xf32, #ttnn_layout2>) -> ()
        %4 = "ttnn.to_memory_config"(%3) : (tensor<53x10xf32, #ttnn_layout5>) -> tensor<53x10xf32, #ttnn_layout2>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<53x10xf32, #ttnn_layout5>) -> ()
        return %4 : tensor<53x10xf32, #ttnn_layout2>
      }
    }
  }
}
