#dram = #ttnn.buffer_type<dram>
#ttnn_layout = #ttnn.ttnn_layout<() -> (0, 0), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<() -> (0, 0), <1x1>, memref<1x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<53x63xf32, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<() -> (0, 0), <1x1>, memref<1x1xsi32, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x2x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
module @jit_conds attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>} {
  ttcore.device_module {
    builtin.module @jit_conds attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0() -> (tensor<si32, #ttnn_layout>, tensor<si32, #ttnn_layout>, tensor<bf16, #ttnn_layout1>) attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 0 : i32, shape = #ttnn.shape<>}> : (!ttnn.device) -> tensor<si32, #ttnn_layout>
        %2 = "ttnn.full"(%0) <{fill_value = 3 : i32, shape = #ttnn.shape<>}> : (!ttnn.device) -> tensor<si32, #ttnn_layout>
        %3 = "ttnn.gt"(%1, %2) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<si32, #ttnn_layout>, tensor<si32, #ttnn_layout>) -> tensor<bf16, #ttnn_layout1>
        return %1, %2, %3 : tensor<si32, #ttnn_layout>, tensor<si32, #ttnn_layout>, tensor<bf16, #ttnn_layout1>
      }
      func.func private @main_const_eval_1() -> tensor<si32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 2 : i32, shape = #ttnn.shape<>}> : (!ttnn.device) -> tensor<si32, #ttnn_layout>
        return %1 : tensor<si32, #ttnn_layout>
      }
      func.func public @main(%arg0: tensor<53x63xf32, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<53x63xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, %arg1: tensor<si32, #ttnn_layout3> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<i32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}) -> (tensor<53x63xf32, #ttnn_layout4> {jax.result_info = "result[0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<53x63xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, tensor<53x63xf32, #ttnn_layout4> {jax.result_info = "result[1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<53x63xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}) attributes {tt.function_type = "forward_device"} {
        %0:3 = ttcore.load_cached(@main_const_eval_0, []) : () -> (tensor<si32, #ttnn_layout>, tensor<si32, #ttnn_layout>, tensor<bf16, #ttnn_layout1>)
        %1 = ttcore.load_cached(@main_const_eval_1, []) : () -> tensor<si32, #ttnn_layout>
        %2 = "ttnn.to_layout"(%arg1) : (tensor<si32, #ttnn_layout3>) -> tensor<si32, #ttnn_layout>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<si32, #ttnn_layout3>) -> ()
        %3 = "ttnn.gt"(%2, %1) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<si32, #ttnn_layout>, tensor<si32, #ttnn_layout>) -> tensor<bf16, #ttnn_layout1>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        %4 = "ttnn.to_layout"(%arg0) : (tensor<53x63xf32, #ttnn_layout2>) -> tensor<53x63xf32, #ttnn_layout4>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<53x63xf32, #ttnn_layout2>) -> ()
        %5 = "ttcore.case"(%3, %4) <{branch_programs = [@main_case_branch_0, @main_case_branch_1]}> : (tensor<bf16, #ttnn_layout1>, tensor<53x63xf32, #ttnn_layout4>) -> tensor<53x63xf32, #ttnn_layout4>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<bf16, #ttnn_layout1>) -> ()
        %6 = "ttnn.remainder"(%2, %0#1) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<si32, #ttnn_layout>, tensor<si32, #ttnn_layout>) -> tensor<si32, #ttnn_layout>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        %7 = "ttnn.ne"(%6, %0#0) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<si32, #ttnn_layout>, tensor<si32, #ttnn_layout>) -> tensor<bf16, #ttnn_layout1>
        %8 = "ttnn.gt"(%0#0, %6) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<si32, #ttnn_layout>, tensor<si32, #ttnn_layout>) -> tensor<bf16, #ttnn_layout1>
        "ttnn.deallocate"(%0#0) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        %9 = "ttnn.ne"(%8, %0#2) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<bf16, #ttnn_layout1>, tensor<bf16, #ttnn_layout1>) -> tensor<bf16, #ttnn_layout1>
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<bf16, #ttnn_layout1>) -> ()
        "ttnn.deallocate"(%0#2) <{force = false}> : (tensor<bf16, #ttnn_layout1>) -> ()
        %10 = "ttnn.logical_and"(%9, %7) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<bf16, #ttnn_layout1>, tensor<bf16, #ttnn_layout1>) -> tensor<bf16, #ttnn_layout1>
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<bf16, #ttnn_layout1>) -> ()
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<bf16, #ttnn_layout1>) -> ()
        %11 = "ttnn.add"(%6, %0#1) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<si32, #ttnn_layout>, tensor<si32, #ttnn_layout>) -> tensor<si32, #ttnn_layout>
        "ttnn.deallocate"(%0#1) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        %12 = "ttnn.where"(%10, %11, %6) : (tensor<bf16, #ttnn_layout1>, tensor<si32, #ttnn_layout>, tensor<si32, #ttnn_layout>) -> tensor<si32, #ttnn_layout>
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<bf16, #ttnn_layout1>) -> ()
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        %13 = "ttnn.clamp_scalar"(%12) <{max = 2 : i32, min = 0 : i32}> : (tensor<si32, #ttnn_layout>) -> tensor<si32, #ttnn_layout>
        "ttnn.deallocate"(%12) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        %14 = "ttcore.case"(%13, %4) <{branch_programs = [@main_case_branch_0_0, @main_case_branch_1_0, @main_case_branch_2]}> : (tensor<si32, #ttnn_layout>, tensor<53x63xf32, #ttnn_layout4>) -> tensor<53x63xf32, #ttnn_layout4>
        "ttnn.deallocate"(%13) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<53x63xf32, #ttnn_layout4>) -> ()
        return %5, %14 : tensor<53x63xf32, #ttnn_layout4>, tensor<53x63xf32, #ttnn_layout4>
      }
      func.func private @main_case_branch_0_const_eval_0() -> tensor<1x1xf32, #ttnn_layout5> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 2.000000e+00 : f32, shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xf32, #ttnn_layout5>
        return %1 : tensor<1x1xf32, #ttnn_layout5>
      }
      func.func private @main_case_branch_0(%arg0: tensor<53x63xf32, #ttnn_layout4>) -> tensor<53x63xf32, #ttnn_layout4> attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_case_branch_0_const_eval_0, []) : () -> tensor<1x1xf32, #ttnn_layout5>
        %1 = "ttnn.multiply"(%arg0, %0) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<53x63xf32, #ttnn_layout4>, tensor<1x1xf32, #ttnn_layout5>) -> tensor<53x63xf32, #ttnn_layout4>
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1x1xf32, #ttnn_layout5>) -> ()
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<53x63xf32, #ttnn_layout4>) -> ()
        return %1 : tensor<53x63xf32, #ttnn_layout4>
      }
      func.func private @main_case_branch_1_const_eval_0() -> tensor<1x1xf32, #ttnn_layout5> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.ones"(%0) <{shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xf32, #ttnn_layout5>
        return %1 : tensor<1x1xf32, #ttnn_layout5>
      }
      func.func private @main_case_branch_1(%arg0: tensor<53x63xf32, #ttnn_layout4>) -> tensor<53x63xf32, #ttnn_layout4> attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_case_branch_1_const_eval_0, []) : () -> tensor<1x1xf32, #ttnn_layout5>
        %1 = "ttnn.add"(%arg0, %0) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<53x63xf32, #ttnn_layout4>, tensor<1x1xf32, #ttnn_layout5>) -> tensor<53x63xf32, #ttnn_layout4>
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1x1xf32, #ttnn_layout5>) -> ()
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<53x63xf32, #ttnn_layout4>) -> ()
        return %1 : tensor<53x63xf32, #ttnn_layout4>
      }
      func.func private @main_case_branch_0_0(%arg0: tensor<53x63xf32, #ttnn_layout4>) -> tensor<53x63xf32, #ttnn_layout4> attributes {tt.function_type = "forward_device"} {
        %0 = "ttnn.sin"(%arg0) : (tensor<53x63xf32, #ttnn_layout4>) -> tensor<53x63xf32, #ttnn_layout4>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<53x63xf32, #ttnn_layout4>) -> ()
        return %0 : tensor<53x63xf32, #ttnn_layout4>
      }
      func.func private @main_case_branch_1_0(%arg0: tensor<53x63xf32, #ttnn_layout4>) -> tensor<53x63xf32, #ttnn_layout4> attributes {tt.function_type = "forward_device"} {
        %0 = "ttnn.cos"(%arg0) : (tensor<53x63xf32, #ttnn_layout4>) -> tensor<53x63xf32, #ttnn_layout4>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<53x63xf32, #ttnn_layout4>) -> ()
        return %0 : tensor<53x63xf32, #ttnn_layout4>
      }
      func.func private @main_case_branch_2(%arg0: tensor<53x63xf32, #ttnn_layout4>) -> tensor<53x63xf32, #ttnn_layout4> attributes {tt.function_type = "forward_device"} {
        %0 = "ttnn.exp"(%arg0) : (tensor<53x63xf32, #ttnn_layout4>) -> tensor<53x63xf32, #ttnn_layout4>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<53x63xf32, #ttnn_layout4>) -> ()
        return %0 : tensor<53x63xf32, #ttnn_layout4>
      }
    }
  }
}
