#dram = #ttnn.buffer_type<dram>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1000x150xf32, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x300xf32, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<32x5x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x32x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 32 + d1 * 32 + d2, d3), <1x1>, memref<1x32x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<32x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x150xf32, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x5x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x5x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
module @jit_norm attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>} {
  ttcore.device_module {
    builtin.module @jit_norm attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0() -> tensor<1x1xf32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 9.99999974E-6 : f32, shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xf32, #ttnn_layout>
        return %1 : tensor<1x1xf32, #ttnn_layout>
      }
      func.func private @main_const_eval_1() -> tensor<1x1xf32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 3.000000e+02 : f32, shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xf32, #ttnn_layout>
        return %1 : tensor<1x1xf32, #ttnn_layout>
      }
      func.func public @main(%arg0: tensor<1000x150xf32, #ttnn_layout1> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<1000x150xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, %arg1: tensor<300xf32, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<300xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, %arg2: tensor<300xf32, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<300xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}) -> (tensor<1000x150xf32, #ttnn_layout3> {jax.result_info = "result", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<1000x150xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_const_eval_0, []) : () -> tensor<1x1xf32, #ttnn_layout>
        %1 = ttcore.load_cached(@main_const_eval_1, []) : () -> tensor<1x1xf32, #ttnn_layout>
        %2 = "ttnn.to_layout"(%arg0) : (tensor<1000x150xf32, #ttnn_layout1>) -> tensor<1000x150xf32, #ttnn_layout3>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<1000x150xf32, #ttnn_layout1>) -> ()
        %3 = "ttnn.sum"(%2) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, dim_arg = [1 : i32], keep_dim = false}> : (tensor<1000x150xf32, #ttnn_layout3>) -> tensor<1000xf32, #ttnn_layout4>
        %4 = "ttnn.reshape"(%3) <{shape = [1 : i32, 1 : i32, 1 : i32, 1000 : i32]}> : (tensor<1000xf32, #ttnn_layout4>) -> tensor<1x1x1x1000xf32, #ttnn_layout5>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<1000xf32, #ttnn_layout4>) -> ()
        %5 = "ttnn.all_reduce"(%4) <{cluster_axis = 1 : ui32, reduce_type = #ttcore.reduce_type<sum>}> : (tensor<1x1x1x1000xf32, #ttnn_layout5>) -> tensor<1x1x1x1000xf32, #ttnn_layout5>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<1x1x1x1000xf32, #ttnn_layout5>) -> ()
        %6 = "ttnn.reshape"(%5) <{shape = [1000 : i32, 1 : i32]}> : (tensor<1x1x1x1000xf32, #ttnn_layout5>) -> tensor<1000x1xf32, #ttnn_layout6>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<1x1x1x1000xf32, #ttnn_layout5>) -> ()
        %7 = "ttnn.divide"(%6, %1) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1000x1xf32, #ttnn_layout6>, tensor<1x1xf32, #ttnn_layout>) -> tensor<1000x1xf32, #ttnn_layout6>
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<1000x1xf32, #ttnn_layout6>) -> ()
        %8 = "ttnn.subtract"(%2, %7) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1000x150xf32, #ttnn_layout3>, tensor<1000x1xf32, #ttnn_layout6>) -> tensor<1000x150xf32, #ttnn_layout3>
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<1000x1xf32, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<1000x150xf32, #ttnn_layout3>) -> ()
        %9 = "ttnn.multiply"(%8, %8) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1000x150xf32, #ttnn_layout3>, tensor<1000x150xf32, #ttnn_layout3>) -> tensor<1000x150xf32, #ttnn_layout3>
        %10 = "ttnn.sum"(%9) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, dim_arg = [1 : i32], keep_dim = false}> : (tensor<1000x150xf32, #ttnn_layout3>) -> tensor<1000xf32, #ttnn_layout4>
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<1000x150xf32, #ttnn_layout3>) -> ()
        %11 = "ttnn.reshape"(%10) <{shape = [1 : i32, 1 : i32, 1 : i32, 1000 : i32]}> : (tensor<1000xf32, #ttnn_layout4>) -> tensor<1x1x1x1000xf32, #ttnn_layout5>
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<1000xf32, #ttnn_layout4>) -> ()
        %12 = "ttnn.all_reduce"(%11) <{cluster_axis = 1 : ui32, reduce_type = #ttcore.reduce_type<sum>}> : (tensor<1x1x1x1000xf32, #ttnn_layout5>) -> tensor<1x1x1x1000xf32, #ttnn_layout5>
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<1x1x1x1000xf32, #ttnn_layout5>) -> ()
        %13 = "ttnn.reshape"(%12) <{shape = [1000 : i32, 1 : i32]}> : (tensor<1x1x1x1000xf32, #ttnn_layout5>) -> tensor<1000x1xf32, #ttnn_layout6>
        "ttnn.deallocate"(%12) <{force = false}> : (tensor<1x1x1x1000xf32, #ttnn_layout5>) -> ()
        %14 = "ttnn.divide"(%13, %1) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1000x1xf32, #ttnn_layout6>, tensor<1x1xf32, #ttnn_layout>) -> tensor<1000x1xf32, #ttnn_layout6>
        "ttnn.deallocate"(%13) <{force = false}> : (tensor<1000x1xf32, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<1x1xf32, #ttnn_layout>) -> ()
        %15 = "ttnn.add"(%14, %0) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1000x1xf32, #ttnn_layout6>, tensor<1x1xf32, #ttnn_layout>) -> tensor<1000x1xf32, #ttnn_layout6>
        "ttnn.deallocate"(%14) <{force = false}> : (tensor<1000x1xf32, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1x1xf32, #ttnn_layout>) -> ()
        %16 = "ttnn.multiply"(%8, %15) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = [#ttnn.unary_with_param<op_type = rsqrt>]}> : (tensor<1000x150xf32, #ttnn_layout3>, tensor<1000x1xf32, #ttnn_layout6>) -> tensor<1000x150xf32, #ttnn_layout3>
        "ttnn.deallocate"(%15) <{force = false}> : (tensor<1000x1xf32, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<1000x150xf32, #ttnn_layout3>) -> ()
        %17 = "ttnn.mesh_partition"(%arg1) <{cluster_axis = 1 : ui32, dim = 0 : si32}> : (tensor<300xf32, #ttnn_layout2>) -> tensor<150xf32, #ttnn_layout7>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<300xf32, #ttnn_layout2>) -> ()
        %18 = "ttnn.to_layout"(%17) : (tensor<150xf32, #ttnn_layout7>) -> tensor<150xf32, #ttnn_layout8>
        "ttnn.deallocate"(%17) <{force = false}> : (tensor<150xf32, #ttnn_layout7>) -> ()
        %19 = "ttnn.reshape"(%18) <{shape = [1 : i32, 150 : i32]}> : (tensor<150xf32, #ttnn_layout8>) -> tensor<1x150xf32, #ttnn_layout9>
        "ttnn.deallocate"(%18) <{force = false}> : (tensor<150xf32, #ttnn_layout8>) -> ()
        %20 = "ttnn.multiply"(%16, %19) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1000x150xf32, #ttnn_layout3>, tensor<1x150xf32, #ttnn_layout9>) -> tensor<1000x150xf32, #ttnn_layout3>
        "ttnn.deallocate"(%19) <{force = false}> : (tensor<1x150xf32, #ttnn_layout9>) -> ()
        "ttnn.deallocate"(%16) <{force = false}> : (tensor<1000x150xf32, #ttnn_layout3>) -> ()
        %21 = "ttnn.mesh_partition"(%arg2) <{cluster_axis = 1 : ui32, dim = 0 : si32}> : (tensor<300xf32, #ttnn_layout2>) -> tensor<150xf32, #ttnn_layout7>
        "ttnn.deallocate"(%arg2) <{force = false}> : (tensor<300xf32, #ttnn_layout2>) -> ()
        %22 = "ttnn.to_layout"(%21) : (tensor<150xf32, #ttnn_layout7>) -> tensor<150xf32, #ttnn_layout8>
        "ttnn.deallocate"(%21) <{force = false}> : (tensor<150xf32, #ttnn_layout7>) -> ()
        %23 = "ttnn.reshape"(%22) <{shape = [1 : i32, 150 : i32]}> : (tensor<150xf32, #ttnn_layout8>) -> tensor<1x150xf32, #ttnn_layout9>
        "ttnn.deallocate"(%22) <{force = false}> : (tensor<150xf32, #ttnn_layout8>) -> ()
        %24 = "ttnn.add"(%20, %23) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1000x150xf32, #ttnn_layout3>, tensor<1x150xf32, #ttnn_layout9>) -> tensor<1000x150xf32, #ttnn_layout3>
        "ttnn.deallocate"(%23) <{force = false}> : (tensor<1x150xf32, #ttnn_layout9>) -> ()
        "ttnn.deallocate"(%20) <{force = false}> : (tensor<1000x150xf32, #ttnn_layout3>) -> ()
        return %24 : tensor<1000x150xf32, #ttnn_layout3>
      }
    }
  }
}
