#dram = #ttnn.buffer_type<dram>
#l1 = #ttnn.buffer_type<l1>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 130 + d1, d2), <1x1>, memref<910x70xf32, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 160 + d1, d2), <1x1>, memref<35x3x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 160 + d1, d2), <35x1>, memref<1x3x!ttcore.tile<32x32, f32>, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (10,2)>, #ttnn.core_range<(0,3), (1,3)>]>>
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func public @main(%arg0: tensor<7x130x70xf32, #ttnn_layout> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<7x130x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<7x130x70xf32, #ttnn_layout1> {jax.result_info = "result", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<7x130x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = "ttnn.to_layout"(%arg0) : (tensor<7x130x70xf32, #ttnn_layout>) -> tensor<7x130x70xf32, #ttnn_layout1>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<7x130x70xf32, #ttnn_layout>) -> ()
        %1 = "ttnn.to_memory_config"(%0) : (tensor<7x130x70xf32, #ttnn_layout1>) -> tensor<7x130x70xf32, #ttnn_layout2>
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<7x130x70xf32, #ttnn_layout1>) -> ()
        %2 = "ttnn.softmax"(%1) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, math_approx_mode = false, fp32_dest_acc_en = true>, dimension = 2 : si32, numericStable = true}> : (tensor<7x130x70xf32, #ttnn_layout2>) -> tensor<7x130x70xf32, #ttnn_layout2>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<7x130x70xf32, #ttnn_layout2>) -> ()
        %3 = "ttnn.to_memory_config"(%2) : (tensor<7x130x70xf32, #ttnn_layout2>) -> tensor<7x130x70xf32, #ttnn_layout1>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<7x130x70xf32, #ttnn_layout2>) -> ()
        return %3 : tensor<7x130x70xf32, #ttnn_layout1>
      }
    }
  }
}
