#dram = #ttnn.buffer_type<dram>
#ttnn_layout = #ttnn.ttnn_layout<() -> (0, 0), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<5x7xf32, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<() -> (0, 0), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<() -> (0, 0), <1x1>, memref<1x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
module @jit_whiles attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_whiles attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0() -> tensor<si32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 0 : i32, shape = #ttnn.shape<>}> : (!ttnn.device) -> tensor<si32, #ttnn_layout>
        return %1 : tensor<si32, #ttnn_layout>
      }
      func.func public @main(%arg0: tensor<5x7xf32, #ttnn_layout1> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<5x7xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<5x7xf32, #ttnn_layout2> {jax.result_info = "result[0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<5x7xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<si32, #ttnn_layout> {jax.result_info = "result[1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<i32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_const_eval_0, []) : () -> tensor<si32, #ttnn_layout>
        %1 = "ttnn.to_layout"(%arg0) : (tensor<5x7xf32, #ttnn_layout1>) -> tensor<5x7xf32, #ttnn_layout2>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<5x7xf32, #ttnn_layout1>) -> ()
        %2:2 = "ttcore.while_loop"(%1, %0) <{body_program = @main_while_body, condition_program = @main_while_condition, output_indices = array<i32: 0, 1>, state_count = 2 : i32}> : (tensor<5x7xf32, #ttnn_layout2>, tensor<si32, #ttnn_layout>) -> (tensor<5x7xf32, #ttnn_layout2>, tensor<si32, #ttnn_layout>)
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<5x7xf32, #ttnn_layout2>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        return %2#0, %2#1 : tensor<5x7xf32, #ttnn_layout2>, tensor<si32, #ttnn_layout>
      }
      func.func private @main_while_body_const_eval_0() -> tensor<1x1xf32, #ttnn_layout2> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.ones"(%0) <{shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xf32, #ttnn_layout2>
        return %1 : tensor<1x1xf32, #ttnn_layout2>
      }
      func.func private @main_while_body_const_eval_1() -> tensor<1x1xf32, #ttnn_layout2> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 1.500000e+00 : f32, shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xf32, #ttnn_layout2>
        return %1 : tensor<1x1xf32, #ttnn_layout2>
      }
      func.func private @main_while_body_const_eval_2() -> tensor<si32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 1 : i32, shape = #ttnn.shape<>}> : (!ttnn.device) -> tensor<si32, #ttnn_layout>
        return %1 : tensor<si32, #ttnn_layout>
      }
      func.func private @main_while_body(%arg0: tensor<5x7xf32, #ttnn_layout2>, %arg1: tensor<si32, #ttnn_layout>) -> (tensor<5x7xf32, #ttnn_layout2>, tensor<si32, #ttnn_layout>) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_while_body_const_eval_0, []) : () -> tensor<1x1xf32, #ttnn_layout2>
        %1 = ttcore.load_cached(@main_while_body_const_eval_2, []) : () -> tensor<si32, #ttnn_layout>
        %2 = ttcore.load_cached(@main_while_body_const_eval_1, []) : () -> tensor<1x1xf32, #ttnn_layout2>
        %3 = "ttnn.multiply"(%arg0, %2) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<5x7xf32, #ttnn_layout2>, tensor<1x1xf32, #ttnn_layout2>) -> tensor<5x7xf32, #ttnn_layout2>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<1x1xf32, #ttnn_layout2>) -> ()
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<5x7xf32, #ttnn_layout2>) -> ()
        %4 = "ttnn.add"(%3, %0) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<5x7xf32, #ttnn_layout2>, tensor<1x1xf32, #ttnn_layout2>) -> tensor<5x7xf32, #ttnn_layout2>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<5x7xf32, #ttnn_layout2>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1x1xf32, #ttnn_layout2>) -> ()
        %5 = "ttnn.add"(%arg1, %1) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<si32, #ttnn_layout>, tensor<si32, #ttnn_layout>) -> tensor<si32, #ttnn_layout>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        return %4, %5 : tensor<5x7xf32, #ttnn_layout2>, tensor<si32, #ttnn_layout>
      }
      func.func private @main_while_condition_const_eval_0() -> tensor<f32, #ttnn_layout3> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 1.000000e+02 : f32, shape = #ttnn.shape<>}> : (!ttnn.device) -> tensor<f32, #ttnn_layout3>
        return %1 : tensor<f32, #ttnn_layout3>
      }
      func.func private @main_while_condition(%arg0: tensor<5x7xf32, #ttnn_layout2>, %arg1: tensor<si32, #ttnn_layout>) -> tensor<bf16, #ttnn_layout4> attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_while_condition_const_eval_0, []) : () -> tensor<f32, #ttnn_layout3>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        %1 = "ttnn.sum"(%arg0) <{compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, fp32_dest_acc_en = true>, dim_arg = [0 : i32, 1 : i32], keep_dim = false}> : (tensor<5x7xf32, #ttnn_layout2>) -> tensor<f32, #ttnn_layout3>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<5x7xf32, #ttnn_layout2>) -> ()
        %2 = "ttnn.gt"(%0, %1) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<f32, #ttnn_layout3>, tensor<f32, #ttnn_layout3>) -> tensor<bf16, #ttnn_layout4>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<f32, #ttnn_layout3>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<f32, #ttnn_layout3>) -> ()
        return %2 : tensor<bf16, #ttnn_layout4>
      }
    }
  }
}
