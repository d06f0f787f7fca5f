#dram = #ttnn.buffer_type<dram>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<53x20xf32, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<11x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<3x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x3x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<56x23xf32, #dram>, <interleaved>>
module @jit_movement attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_movement attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func public @main(%arg0: tensor<53x20xf32, #ttnn_layout> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<53x20xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<53x20xf32, #ttnn_layout> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<53x20xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<335x4xf32, #ttnn_layout1> {jax.result_info = "result[0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<335x4xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<56x23xf32, #ttnn_layout2> {jax.result_info = "result[1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<56x23xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = "ttnn.to_layout"(%arg0) : (tensor<53x20xf32, #ttnn_layout>) -> tensor<53x20xf32, #ttnn_layout2>
        %1 = "ttnn.to_layout"(%arg1) : (tensor<53x20xf32, #ttnn_layout>) -> tensor<53x20xf32, #ttnn_layout2>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<53x20xf32, #ttnn_layout>) -> ()
        %2 = "ttnn.concat"(%0, %1) <{dim = 0 : si32}> : (tensor<53x20xf32, #ttnn_layout2>, tensor<53x20xf32, #ttnn_layout2>) -> tensor<106x20xf32, #ttnn_layout3>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<53x20xf32, #ttnn_layout2>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<53x20xf32, #ttnn_layout2>) -> ()
        %3 = "ttnn.slice_static"(%2) <{begins = [3 : i32, 0 : i32], ends = [70 : i32, 20 : i32], step = [1 : i32, 1 : i32]}> : (tensor<106x20xf32, #ttnn_layout3>) -> tensor<67x20xf32, #ttnn_layout4>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<106x20xf32, #ttnn_layout3>) -> ()
        %4 = "ttnn.permute"(%3) <{permutation = array<i64: 1, 0>}> : (tensor<67x20xf32, #ttnn_layout4>) -> tensor<20x67xf32, #ttnn_layout5>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<67x20xf32, #ttnn_layout4>) -> ()
        %5 = "ttnn.reshape"(%4) <{shape = [335 : i32, 4 : i32]}> : (tensor<20x67xf32, #ttnn_layout5>) -> tensor<335x4xf32, #ttnn_layout1>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<20x67xf32, #ttnn_layout5>) -> ()
        %6 = "ttnn.pad"(%arg0) <{padding = array<i32: 1, 2, 0, 3>, use_multicore = true, value = 0.000000e+00 : f32}> : (tensor<53x20xf32, #ttnn_layout>) -> tensor<56x23xf32, #ttnn_layout6>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<53x20xf32, #ttnn_layout>) -> ()
        %7 = "ttnn.to_layout"(%6) : (tensor<56x23xf32, #ttnn_layout6>) -> tensor<56x23xf32, #ttnn_layout2>
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<56x23xf32, #ttnn_layout6>) -> ()
        return %5, %7 : tensor<335x4xf32, #ttnn_layout1>, tensor<56x23xf32, #ttnn_layout2>
      }
    }
  }
}
