#dram = #ttnn.buffer_type<dram>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<100x70xf32, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x3x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x4x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x4x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x3x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x100xui32, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x4x!ttcore.tile<32x32, u32>, #dram>, <interleaved>>
module @jit_reductions attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_reductions attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func public @main(%arg0: tensor<100x70xf32, #ttnn_layout> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<100x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<70xf32, #ttnn_layout1> {jax.result_info = "result[0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<100xf32, #ttnn_layout2> {jax.result_info = "result[1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<100xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<100xsi32, #ttnn_layout3> {jax.result_info = "result[2]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<100xi32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<f32, #ttnn_layout4> {jax.result_info = "result[3]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<f32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = "ttnn.to_layout"(%arg0) : (tensor<100x70xf32, #ttnn_layout>) -> tensor<100x70xf32, #ttnn_layout5>
        %1 = "ttnn.max"(%0) <{dim_arg = [0 : i32], keep_dim = false}> : (tensor<100x70xf32, #ttnn_layout5>) -> tensor<70xf32, #ttnn_layout1>
        %2 = "ttnn.sum"(%0) <{dim_arg = [1 : i32], keep_dim = false}> : (tensor<100x70xf32, #ttnn_layout5>) -> tensor<100xf32, #ttnn_layout2>
        %3 = "ttnn.argmax"(%arg0) <{dim = 1 : si32, keep_dim = false}> : (tensor<100x70xf32, #ttnn_layout>) -> tensor<100xui32, #ttnn_layout6>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<100x70xf32, #ttnn_layout>) -> ()
        %4 = "ttnn.to_layout"(%3) : (tensor<100xui32, #ttnn_layout6>) -> tensor<100xui32, #ttnn_layout7>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<100xui32, #ttnn_layout6>) -> ()
        %5 = "ttnn.typecast"(%4) : (tensor<100xui32, #ttnn_layout7>) -> tensor<100xsi32, #ttnn_layout3>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<100xui32, #ttnn_layout7>) -> ()
        %6 = "ttnn.mean"(%0) <{dim_arg = [0 : i32, 1 : i32], keep_dim = false}> : (tensor<100x70xf32, #ttnn_layout5>) -> tensor<f32, #ttnn_layout4>
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<100x70xf32, #ttnn_layout5>) -> ()
        return %1, %2, %5, %6 : tensor<70xf32, #ttnn_layout1>, tensor<100xf32, #ttnn_layout2>, tensor<100xsi32, #ttnn_layout3>, tensor<f32, #ttnn_layout4>
      }
    }
  }
}
