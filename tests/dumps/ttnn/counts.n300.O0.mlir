#dram = #ttnn.buffer_type<dram>
#ttnn_layout = #ttnn.ttnn_layout<() -> (0, 0), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<9x7xf32, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<() -> (0, 0), <1x1>, memref<1x1xsi32, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<() -> (0, 0), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1xsi32, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<() -> (0, 0), <1x1>, memref<1x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x2xsi32, #dram>, <interleaved>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, u32>, #dram>, <interleaved>>
#ttnn_layout11 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x7xf32, #dram>, <interleaved>>
#ttnn_layout12 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 9 + d1, d2), <1x1>, memref<9x7xf32, #dram>, <interleaved>>
#ttnn_layout13 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 + d1, d2), <1x1>, memref<1x1xsi32, #dram>, <interleaved>>
#ttnn_layout14 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x7xf32, #dram>, <interleaved>>
#ttnn_layout15 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 + d1, d2), <1x1>, memref<1x7xf32, #dram>, <interleaved>>
#ttnn_layout16 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
module @jit_counts attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>} {
  ttcore.device_module {
    builtin.module @jit_counts attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0() -> tensor<si32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 0 : i32, shape = #ttnn.shape<>}> : (!ttnn.device) -> tensor<si32, #ttnn_layout>
        return %1 : tensor<si32, #ttnn_layout>
      }
      func.func public @main(%arg0: tensor<9x7xf32, #ttnn_layout1> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<9x7xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, %arg1: tensor<si32, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<i32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, %arg2: tensor<si32, #ttnn_layout2> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<i32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}) -> (tensor<9x7xf32, #ttnn_layout3> {jax.result_info = "result[0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<9x7xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}, tensor<9x7xf32, #ttnn_layout3> {jax.result_info = "result[1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<9x7xf32>>, ttcore.shard_status = #ttcore.shard_status<presharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_const_eval_0, []) : () -> tensor<si32, #ttnn_layout>
        %1 = "ttnn.to_layout"(%arg1) : (tensor<si32, #ttnn_layout2>) -> tensor<si32, #ttnn_layout>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<si32, #ttnn_layout2>) -> ()
        %2 = "ttnn.to_layout"(%arg2) : (tensor<si32, #ttnn_layout2>) -> tensor<si32, #ttnn_layout>
        "ttnn.deallocate"(%arg2) <{force = false}> : (tensor<si32, #ttnn_layout2>) -> ()
        %3 = "ttnn.add"(%1, %2) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<si32, #ttnn_layout>, tensor<si32, #ttnn_layout>) -> tensor<si32, #ttnn_layout>
        %4 = "ttnn.to_layout"(%arg0) : (tensor<9x7xf32, #ttnn_layout1>) -> tensor<9x7xf32, #ttnn_layout3>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<9x7xf32, #ttnn_layout1>) -> ()
        %5:2 = "ttcore.while_loop"(%1, %4, %3) <{body_program = @main_counted_loop, initial = #ttcore.loop_bound<0, 0 : i32>, limit = #ttcore.loop_bound<0, 2 : i32>, output_indices = array<i32: 0, 1>, state_count = 2 : i32, step = #ttcore.loop_bound<1>}> : (tensor<si32, #ttnn_layout>, tensor<9x7xf32, #ttnn_layout3>, tensor<si32, #ttnn_layout>) -> (tensor<si32, #ttnn_layout>, tensor<9x7xf32, #ttnn_layout3>)
        "ttnn.deallocate"(%5#0) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        %6:2 = "ttcore.while_loop"(%0, %4, %2) <{body_program = @main_counted_loop_0, initial = #ttcore.loop_bound<0>, limit = #ttcore.loop_bound<0, 2 : i32>, output_indices = array<i32: 0, 1>, state_count = 2 : i32, step = #ttcore.loop_bound<1>}> : (tensor<si32, #ttnn_layout>, tensor<9x7xf32, #ttnn_layout3>, tensor<si32, #ttnn_layout>) -> (tensor<si32, #ttnn_layout>, tensor<9x7xf32, #ttnn_layout3>)
        "ttnn.deallocate"(%6#0) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<9x7xf32, #ttnn_layout3>) -> ()
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        return %5#1, %6#1 : tensor<9x7xf32, #ttnn_layout3>, tensor<9x7xf32, #ttnn_layout3>
      }
      func.func private @main_counted_loop_const_eval_0() -> tensor<1x1xf32, #ttnn_layout3> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 1.500000e+00 : f32, shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xf32, #ttnn_layout3>
        return %1 : tensor<1x1xf32, #ttnn_layout3>
      }
      func.func private @main_counted_loop_const_eval_1() -> tensor<si32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 1 : i32, shape = #ttnn.shape<>}> : (!ttnn.device) -> tensor<si32, #ttnn_layout>
        return %1 : tensor<si32, #ttnn_layout>
      }
      func.func private @main_counted_loop(%arg0: tensor<si32, #ttnn_layout>, %arg1: tensor<9x7xf32, #ttnn_layout3>, %arg2: tensor<si32, #ttnn_layout>) -> (tensor<si32, #ttnn_layout>, tensor<9x7xf32, #ttnn_layout3>) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_counted_loop_const_eval_0, []) : () -> tensor<1x1xf32, #ttnn_layout3>
        "ttnn.deallocate"(%arg2) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        %1 = ttcore.load_cached(@main_counted_loop_const_eval_1, []) : () -> tensor<si32, #ttnn_layout>
        %2 = "ttnn.add"(%arg0, %1) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<si32, #ttnn_layout>, tensor<si32, #ttnn_layout>) -> tensor<si32, #ttnn_layout>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        %3 = "ttnn.multiply"(%arg1, %0) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<9x7xf32, #ttnn_layout3>, tensor<1x1xf32, #ttnn_layout3>) -> tensor<9x7xf32, #ttnn_layout3>
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1x1xf32, #ttnn_layout3>) -> ()
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<9x7xf32, #ttnn_layout3>) -> ()
        %4 = "ttnn.typecast"(%arg0) : (tensor<si32, #ttnn_layout>) -> tensor<f32, #ttnn_layout4>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        %5 = "ttnn.reshape"(%4) <{shape = [1 : i32, 1 : i32]}> : (tensor<f32, #ttnn_layout4>) -> tensor<1x1xf32, #ttnn_layout3>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<f32, #ttnn_layout4>) -> ()
        %6 = "ttnn.add"(%3, %5) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<9x7xf32, #ttnn_layout3>, tensor<1x1xf32, #ttnn_layout3>) -> tensor<9x7xf32, #ttnn_layout3>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<1x1xf32, #ttnn_layout3>) -> ()
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<9x7xf32, #ttnn_layout3>) -> ()
        return %2, %6 : tensor<si32, #ttnn_layout>, tensor<9x7xf32, #ttnn_layout3>
      }
      func.func private @main_counted_loop_0_const_eval_0() -> tensor<1xf32, #ttnn_layout5> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 2.000000e+00 : f32, shape = #ttnn.shape<1>}> : (!ttnn.device) -> tensor<1xf32, #ttnn_layout5>
        return %1 : tensor<1xf32, #ttnn_layout5>
      }
      func.func private @main_counted_loop_0_const_eval_1() -> tensor<2xsi32, #ttnn_layout6> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.constant"(%0) <{value = dense<[1, 7]> : tensor<2xsi32>}> : (!ttnn.device) -> tensor<2xsi32, #ttnn_layout6>
        return %1 : tensor<2xsi32, #ttnn_layout6>
      }
      func.func private @main_counted_loop_0_const_eval_2() -> tensor<si32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 0 : i32, shape = #ttnn.shape<>}> : (!ttnn.device) -> tensor<si32, #ttnn_layout>
        return %1 : tensor<si32, #ttnn_layout>
      }
      func.func private @main_counted_loop_0_const_eval_3() -> tensor<si32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 9 : i32, shape = #ttnn.shape<>}> : (!ttnn.device) -> tensor<si32, #ttnn_layout>
        return %1 : tensor<si32, #ttnn_layout>
      }
      func.func private @main_counted_loop_0_const_eval_4() -> tensor<1xsi32, #ttnn_layout7> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.zeros"(%0) <{shape = #ttnn.shape<1>}> : (!ttnn.device) -> tensor<1xsi32, #ttnn_layout7>
        return %1 : tensor<1xsi32, #ttnn_layout7>
      }
      func.func private @main_counted_loop_0_const_eval_5() -> tensor<si32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x2>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 1 : i32, shape = #ttnn.shape<>}> : (!ttnn.device) -> tensor<si32, #ttnn_layout>
        return %1 : tensor<si32, #ttnn_layout>
      }
      func.func private @main_counted_loop_0(%arg0: tensor<si32, #ttnn_layout>, %arg1: tensor<9x7xf32, #ttnn_layout3>, %arg2: tensor<si32, #ttnn_layout>) -> (tensor<si32, #ttnn_layout>, tensor<9x7xf32, #ttnn_layout3>) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_counted_loop_0_const_eval_0, []) : () -> tensor<1xf32, #ttnn_layout5>
        "ttnn.deallocate"(%arg2) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        %1 = ttcore.load_cached(@main_counted_loop_0_const_eval_1, []) : () -> tensor<2xsi32, #ttnn_layout6>
        %2 = ttcore.load_cached(@main_counted_loop_0_const_eval_2, []) : () -> tensor<si32, #ttnn_layout>
        %3 = ttcore.load_cached(@main_counted_loop_0_const_eval_5, []) : () -> tensor<si32, #ttnn_layout>
        %4 = ttcore.load_cached(@main_counted_loop_0_const_eval_4, []) : () -> tensor<1xsi32, #ttnn_layout7>
        %5 = ttcore.load_cached(@main_counted_loop_0_const_eval_3, []) : () -> tensor<si32, #ttnn_layout>
        %6 = "ttnn.add"(%arg0, %3) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<si32, #ttnn_layout>, tensor<si32, #ttnn_layout>) -> tensor<si32, #ttnn_layout>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        %7 = "ttnn.gt"(%2, %arg0) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<si32, #ttnn_layout>, tensor<si32, #ttnn_layout>) -> tensor<bf16, #ttnn_layout8>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        %8 = "ttnn.add"(%arg0, %5) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<si32, #ttnn_layout>, tensor<si32, #ttnn_layout>) -> tensor<si32, #ttnn_layout>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        %9 = "ttnn.where"(%7, %8, %arg0) : (tensor<bf16, #ttnn_layout8>, tensor<si32, #ttnn_layout>, tensor<si32, #ttnn_layout>) -> tensor<si32, #ttnn_layout>
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<bf16, #ttnn_layout8>) -> ()
        %10 = "ttnn.reshape"(%9) <{shape = [1 : i32]}> : (tensor<si32, #ttnn_layout>) -> tensor<1xsi32, #ttnn_layout6>
        %11 = "ttnn.clamp_scalar"(%10) <{max = 8 : i32, min = 0 : i32}> : (tensor<1xsi32, #ttnn_layout6>) -> tensor<1xsi32, #ttnn_layout6>
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<1xsi32, #ttnn_layout6>) -> ()
        %12 = "ttnn.to_layout"(%11) : (tensor<1xsi32, #ttnn_layout6>) -> tensor<1xsi32, #ttnn_layout7>
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<1xsi32, #ttnn_layout6>) -> ()
        %13 = "ttnn.concat"(%12, %4) <{dim = 0 : si32}> : (tensor<1xsi32, #ttnn_layout7>, tensor<1xsi32, #ttnn_layout7>) -> tensor<2xsi32, #ttnn_layout9>
        "ttnn.deallocate"(%12) <{force = false}> : (tensor<1xsi32, #ttnn_layout7>) -> ()
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<1xsi32, #ttnn_layout7>) -> ()
        %14 = "ttnn.to_layout"(%13) : (tensor<2xsi32, #ttnn_layout9>) -> tensor<2xsi32, #ttnn_layout6>
        %15 = "ttnn.add"(%14, %1) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<2xsi32, #ttnn_layout6>, tensor<2xsi32, #ttnn_layout6>) -> tensor<2xsi32, #ttnn_layout6>
        "ttnn.deallocate"(%14) <{force = false}> : (tensor<2xsi32, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<2xsi32, #ttnn_layout6>) -> ()
        %16 = "ttnn.to_layout"(%arg1) : (tensor<9x7xf32, #ttnn_layout3>) -> tensor<9x7xf32, #ttnn_layout1>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<9x7xf32, #ttnn_layout3>) -> ()
        %17 = "ttnn.to_layout"(%13) : (tensor<2xsi32, #ttnn_layout9>) -> tensor<2xsi32, #ttnn_layout6>
        "ttnn.deallocate"(%13) <{force = false}> : (tensor<2xsi32, #ttnn_layout9>) -> ()
        %18 = "ttnn.typecast"(%17) : (tensor<2xsi32, #ttnn_layout6>) -> tensor<2xui32, #ttnn_layout10>
        "ttnn.deallocate"(%17) <{force = false}> : (tensor<2xsi32, #ttnn_layout6>) -> ()
        %19 = "ttnn.typecast"(%15) : (tensor<2xsi32, #ttnn_layout6>) -> tensor<2xui32, #ttnn_layout10>
        "ttnn.deallocate"(%15) <{force = false}> : (tensor<2xsi32, #ttnn_layout6>) -> ()
        %20 = "ttnn.slice_dynamic"(%16, %18, %19) : (tensor<9x7xf32, #ttnn_layout1>, tensor<2xui32, #ttnn_layout10>, tensor<2xui32, #ttnn_layout10>) -> tensor<1x7xf32, #ttnn_layout11>
        "ttnn.deallocate"(%19) <{force = false}> : (tensor<2xui32, #ttnn_layout10>) -> ()
        "ttnn.deallocate"(%18) <{force = false}> : (tensor<2xui32, #ttnn_layout10>) -> ()
        %21 = "ttnn.to_layout"(%20) : (tensor<1x7xf32, #ttnn_layout11>) -> tensor<1x7xf32, #ttnn_layout3>
        "ttnn.deallocate"(%20) <{force = false}> : (tensor<1x7xf32, #ttnn_layout11>) -> ()
        %22 = "ttnn.reshape"(%21) <{shape = [7 : i32]}> : (tensor<1x7xf32, #ttnn_layout3>) -> tensor<7xf32, #ttnn_layout5>
        "ttnn.deallocate"(%21) <{force = false}> : (tensor<1x7xf32, #ttnn_layout3>) -> ()
        %23 = "ttnn.multiply"(%22, %0) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<7xf32, #ttnn_layout5>, tensor<1xf32, #ttnn_layout5>) -> tensor<7xf32, #ttnn_layout5>
        "ttnn.deallocate"(%22) <{force = false}> : (tensor<7xf32, #ttnn_layout5>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1xf32, #ttnn_layout5>) -> ()
        %24 = "ttnn.typecast"(%arg0) : (tensor<si32, #ttnn_layout>) -> tensor<f32, #ttnn_layout4>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        %25 = "ttnn.reshape"(%24) <{shape = [1 : i32]}> : (tensor<f32, #ttnn_layout4>) -> tensor<1xf32, #ttnn_layout5>
        "ttnn.deallocate"(%24) <{force = false}> : (tensor<f32, #ttnn_layout4>) -> ()
        %26 = "ttnn.add"(%23, %25) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<7xf32, #ttnn_layout5>, tensor<1xf32, #ttnn_layout5>) -> tensor<7xf32, #ttnn_layout5>
        "ttnn.deallocate"(%25) <{force = false}> : (tensor<1xf32, #ttnn_layout5>) -> ()
        "ttnn.deallocate"(%23) <{force = false}> : (tensor<7xf32, #ttnn_layout5>) -> ()
        %27 = "ttnn.reshape"(%16) <{shape = [1 : i32, 9 : i32, 7 : i32]}> : (tensor<9x7xf32, #ttnn_layout1>) -> tensor<1x9x7xf32, #ttnn_layout12>
        "ttnn.deallocate"(%16) <{force = false}> : (tensor<9x7xf32, #ttnn_layout1>) -> ()
        %28 = "ttnn.to_layout"(%9) : (tensor<si32, #ttnn_layout>) -> tensor<si32, #ttnn_layout2>
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<si32, #ttnn_layout>) -> ()
        %29 = "ttnn.reshape"(%28) <{shape = [1 : i32, 1 : i32, 1 : i32]}> : (tensor<si32, #ttnn_layout2>) -> tensor<1x1x1xsi32, #ttnn_layout13>
        "ttnn.deallocate"(%28) <{force = false}> : (tensor<si32, #ttnn_layout2>) -> ()
        %30 = "ttnn.to_layout"(%26) : (tensor<7xf32, #ttnn_layout5>) -> tensor<7xf32, #ttnn_layout14>
        "ttnn.deallocate"(%26) <{force = false}> : (tensor<7xf32, #ttnn_layout5>) -> ()
        %31 = "ttnn.reshape"(%30) <{shape = [1 : i32, 1 : i32, 7 : i32]}> : (tensor<7xf32, #ttnn_layout14>) -> tensor<1x1x7xf32, #ttnn_layout15>
        "ttnn.deallocate"(%30) <{force = false}> : (tensor<7xf32, #ttnn_layout14>) -> ()
        %32 = "ttnn.rows_scatter"(%27, %29, %31) <{column = false, reduce = #ttcore.reduce_type<invalid>, sizes = array<i64: 9>, windows = array<i64: 1>}> : (tensor<1x9x7xf32, #ttnn_layout12>, tensor<1x1x1xsi32, #ttnn_layout13>, tensor<1x1x7xf32, #ttnn_layout15>) -> tensor<1x9x7xf32, #ttnn_layout12>
        "ttnn.deallocate"(%31) <{force = false}> : (tensor<1x1x7xf32, #ttnn_layout15>) -> ()
        "ttnn.deallocate"(%29) <{force = false}> : (tensor<1x1x1xsi32, #ttnn_layout13>) -> ()
        "ttnn.deallocate"(%27) <{force = false}> : (tensor<1x9x7xf32, #ttnn_layout12>) -> ()
        %33 = "ttnn.to_layout"(%32) : (tensor<1x9x7xf32, #ttnn_layout12>) -> tensor<1x9x7xf32, #ttnn_layout16>
        "ttnn.deallocate"(%32) <{force = false}> : (tensor<1x9x7xf32, #ttnn_layout12>) -> ()
        %34 = "ttnn.reshape"(%33) <{shape = [9 : i32, 7 : i32]}> : (tensor<1x9x7xf32, #ttnn_layout16>) -> tensor<9x7xf32, #ttnn_layout3>
        "ttnn.deallocate"(%33) <{force = false}> : (tensor<1x9x7xf32, #ttnn_layout16>) -> ()
        return %6, %34 : tensor<si32, #ttnn_layout>, tensor<9x7xf32, #ttnn_layout3>
      }
    }
  }
}
