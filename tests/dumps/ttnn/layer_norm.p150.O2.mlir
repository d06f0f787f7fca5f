#dram = #ttnn.buffer_type<dram>
#l1 = #ttnn.buffer_type<l1>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1000x300xf32, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x300xf32, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<32x10x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <32x1>, memref<1x10x!ttcore.tile<32x32, f32>, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (10,1)>, #ttnn.core_range<(0,2), (9,2)>]>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <32x1>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (10,1)>, #ttnn.core_range<(0,2), (9,2)>]>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <8x10>, memref<4x1x!ttcore.tile<32x32, f32>, #l1>, <block_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (9,7)>]>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x10x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x10>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <width_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (9,0)>]>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x10x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x10>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <width_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (9,0)>]>>
module @jit_norm attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_norm attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func public @main(%arg0: tensor<1000x300xf32, #ttnn_layout> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<1000x300xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<300xf32, #ttnn_layout1> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<300xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg2: tensor<300xf32, #ttnn_layout1> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<300xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<1000x300xf32, #ttnn_layout2> {jax.result_info = "result", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<1000x300xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = "ttnn.to_layout"(%arg0) : (tensor<1000x300xf32, #ttnn_layout>) -> tensor<1000x300xf32, #ttnn_layout2>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<1000x300xf32, #ttnn_layout>) -> ()
        %1 = "ttnn.to_memory_config"(%0) : (tensor<1000x300xf32, #ttnn_layout2>) -> tensor<1000x300xf32, #ttnn_layout3>
        %2 = "ttnn.mean"(%1) <{dim_arg = [1 : i32], keep_dim = true}> : (tensor<1000x300xf32, #ttnn_layout3>) -> tensor<1000x1xf32, #ttnn_layout4>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<1000x300xf32, #ttnn_layout3>) -> ()
        %3 = "ttnn.to_memory_config"(%0) : (tensor<1000x300xf32, #ttnn_layout2>) -> tensor<1000x300xf32, #ttnn_layout5>
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1000x300xf32, #ttnn_layout2>) -> ()
        %4 = "ttnn.subtract"(%3, %2) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1000x300xf32, #ttnn_layout5>, tensor<1000x1xf32, #ttnn_layout4>) -> tensor<1000x300xf32, #ttnn_layout5>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<1000x300xf32, #ttnn_layout5>) -> ()
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<1000x1xf32, #ttnn_layout4>) -> ()
        %5 = "ttnn.to_layout"(%arg1) : (tensor<300xf32, #ttnn_layout1>) -> tensor<300xf32, #ttnn_layout6>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<300xf32, #ttnn_layout1>) -> ()
        %6 = "ttnn.to_memory_config"(%5) : (tensor<300xf32, #ttnn_layout6>) -> tensor<300xf32, #ttnn_layout7>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<300xf32, #ttnn_layout6>) -> ()
        %7 = "ttnn.rms_norm"(%4, %6) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, math_approx_mode = false, fp32_dest_acc_en = true, packer_l1_acc = true>, epsilon = 9.99999974E-6 : f32, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<1000x300xf32, #ttnn_layout5>, tensor<300xf32, #ttnn_layout7>) -> tensor<1000x300xf32, #ttnn_layout5>
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<300xf32, #ttnn_layout7>) -> ()
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<1000x300xf32, #ttnn_layout5>) -> ()
        %8 = "ttnn.to_layout"(%arg2) : (tensor<300xf32, #ttnn_layout1>) -> tensor<300xf32, #ttnn_layout6>
        "ttnn.deallocate"(%arg2) <{force = false}> : (tensor<300xf32, #ttnn_layout1>) -> ()
        %9 = "ttnn.reshape"(%8) <{shape = [1 : i32, 300 : i32]}> : (tensor<300xf32, #ttnn_layout6>) -> tensor<1x300xf32, #ttnn_layout8>
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<300xf32, #ttnn_layout6>) -> ()
        %10 = "ttnn.to_memory_config"(%9) : (tensor<1x300xf32, #ttnn_layout8>) -> tensor<1x300xf32, #ttnn_layout9>
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<1x300xf32, #ttnn_layout8>) -> ()
        %11 = "ttnn.add"(%7, %10) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1000x300xf32, #ttnn_layout5>, tensor<1x300xf32, #ttnn_layout9>) -> tensor<1000x300xf32, #ttnn_layout5>
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<1x300xf32, #ttnn_layout9>) -> ()
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<1000x300xf32, #ttnn_layout5>) -> ()
        %12 = "ttnn.to_memory_config"(%11) : (tensor<1000x300xf32, #ttnn_layout5>) -> tensor<1000x300xf32, #ttnn_layout2>
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<1000x300xf32, #ttnn_layout5>) -> ()
        return %12 : tensor<1000x300xf32, #ttnn_layout2>
      }
    }
  }
}
