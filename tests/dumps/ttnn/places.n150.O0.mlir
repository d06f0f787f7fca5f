#dram = #ttnn.buffer_type<dram>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 4 + d1, d2), <1x1>, memref<4x7xf32, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x4xf32, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 + d1, d2), <1x1>, memref<1x3xsi32, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 + d1, d2), <1x1>, memref<1x4xsi32, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<() -> (0, 0), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<() -> (0, 0), <1x1>, memref<1x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x15xf32, #dram>, <interleaved>>
#ttnn_layout11 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<21x31xf32, #dram>, <interleaved>>
#ttnn_layout12 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 5 + d1, d2), <1x1>, memref<15x7xf32, #dram>, <interleaved>>
#ttnn_layout13 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x4xsi32, #dram>, <interleaved>>
#ttnn_layout14 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout15 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>, memref<3x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout16 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>, memref<4x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout17 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 21 + d1, d2), <1x1>, memref<21x31xf32, #dram>, <interleaved>>
#ttnn_layout18 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 2 + d1, d2), <1x1>, memref<2x4xsi32, #dram>, <interleaved>>
#ttnn_layout19 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout20 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x3xsi32, #dram>, <interleaved>>
#ttnn_layout21 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 2 + d1, d2), <1x1>, memref<2x3xsi32, #dram>, <interleaved>>
#ttnn_layout22 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 15 + d1, d2), <1x1>, memref<15x7xf32, #dram>, <interleaved>>
#ttnn_layout23 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 3 + d1, d2), <1x1>, memref<3x4xsi32, #dram>, <interleaved>>
#ttnn_layout24 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x20xf32, #dram>, <interleaved>>
#ttnn_layout25 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>, memref<4x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout26 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout27 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 4 + d1, d2), <1x1>, memref<16x1xsi32, #dram>, <interleaved>>
#ttnn_layout28 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 + d1, d2), <1x1>, memref<1x16xsi32, #dram>, <interleaved>>
#ttnn_layout29 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 2 + d1, d2), <1x1>, memref<2x16xsi32, #dram>, <interleaved>>
#ttnn_layout30 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 16 + d1, d2), <1x1>, memref<16x7xf32, #dram>, <interleaved>>
module @jit_places attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_places attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0() -> tensor<1x1xsi32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.zeros"(%0) <{shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xsi32, #ttnn_layout>
        return %1 : tensor<1x1xsi32, #ttnn_layout>
      }
      func.func private @main_const_eval_1() -> tensor<1x1xsi32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 3 : i32, shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xsi32, #ttnn_layout>
        return %1 : tensor<1x1xsi32, #ttnn_layout>
      }
      func.func private @main_const_eval_2() -> tensor<1xsi32, #ttnn_layout1> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 3 : i32, shape = #ttnn.shape<1>}> : (!ttnn.device) -> tensor<1xsi32, #ttnn_layout1>
        return %1 : tensor<1xsi32, #ttnn_layout1>
      }
      func.func private @main_const_eval_3() -> tensor<1x4x7xf32, #ttnn_layout2> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = -1.000000e-01 : f32, shape = #ttnn.shape<1x4x7>}> : (!ttnn.device) -> tensor<1x4x7xf32, #ttnn_layout2>
        return %1 : tensor<1x4x7xf32, #ttnn_layout2>
      }
      func.func private @main_const_eval_4() -> tensor<1x4xf32, #ttnn_layout3> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 2.000000e+00 : f32, shape = #ttnn.shape<1x4>}> : (!ttnn.device) -> tensor<1x4xf32, #ttnn_layout3>
        return %1 : tensor<1x4xf32, #ttnn_layout3>
      }
      func.func private @main_const_eval_5() -> tensor<1xsi32, #ttnn_layout1> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 31 : i32, shape = #ttnn.shape<1>}> : (!ttnn.device) -> tensor<1xsi32, #ttnn_layout1>
        return %1 : tensor<1xsi32, #ttnn_layout1>
      }
      func.func private @main_const_eval_6() -> tensor<1x1x3xsi32, #ttnn_layout4> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.zeros"(%0) <{shape = #ttnn.shape<1x1x3>}> : (!ttnn.device) -> tensor<1x1x3xsi32, #ttnn_layout4>
        return %1 : tensor<1x1x3xsi32, #ttnn_layout4>
      }
      func.func private @main_const_eval_7() -> tensor<1xsi32, #ttnn_layout1> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 5 : i32, shape = #ttnn.shape<1>}> : (!ttnn.device) -> tensor<1xsi32, #ttnn_layout1>
        return %1 : tensor<1xsi32, #ttnn_layout1>
      }
      func.func private @main_const_eval_8() -> tensor<1x1xsi32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 5 : i32, shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xsi32, #ttnn_layout>
        return %1 : tensor<1x1xsi32, #ttnn_layout>
      }
      func.func private @main_const_eval_9() -> tensor<1xsi32, #ttnn_layout1> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 7 : i32, shape = #ttnn.shape<1>}> : (!ttnn.device) -> tensor<1xsi32, #ttnn_layout1>
        return %1 : tensor<1xsi32, #ttnn_layout1>
      }
      func.func private @main_const_eval_10() -> tensor<1xsi32, #ttnn_layout1> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 21 : i32, shape = #ttnn.shape<1>}> : (!ttnn.device) -> tensor<1xsi32, #ttnn_layout1>
        return %1 : tensor<1xsi32, #ttnn_layout1>
      }
      func.func private @main_const_eval_11() -> tensor<1x1x4xsi32, #ttnn_layout5> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 0 : i32, shape = #ttnn.shape<1x1x4>}> : (!ttnn.device) -> tensor<1x1x4xsi32, #ttnn_layout5>
        return %1 : tensor<1x1x4xsi32, #ttnn_layout5>
      }
      func.func private @main_const_eval_12() -> (tensor<1xbf16, #ttnn_layout6>, tensor<1xbf16, #ttnn_layout6>, tensor<1xbf16, #ttnn_layout6>, tensor<1x1xbf16, #ttnn_layout7>, tensor<1x1xbf16, #ttnn_layout7>) attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 7 : i32, shape = #ttnn.shape<>}> : (!ttnn.device) -> tensor<si32, #ttnn_layout8>
        %2 = "ttnn.full"(%0) <{fill_value = 5 : i32, shape = #ttnn.shape<>}> : (!ttnn.device) -> tensor<si32, #ttnn_layout8>
        %3 = "ttnn.full"(%0) <{fill_value = 3 : i32, shape = #ttnn.shape<>}> : (!ttnn.device) -> tensor<si32, #ttnn_layout8>
        %4 = "ttnn.full"(%0) <{fill_value = 0 : i32, shape = #ttnn.shape<>}> : (!ttnn.device) -> tensor<si32, #ttnn_layout8>
        %5 = "ttnn.gt"(%4, %3) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<si32, #ttnn_layout8>, tensor<si32, #ttnn_layout8>) -> tensor<bf16, #ttnn_layout9>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<si32, #ttnn_layout8>) -> ()
        %6 = "ttnn.reshape"(%5) <{shape = [1 : i32]}> : (tensor<bf16, #ttnn_layout9>) -> tensor<1xbf16, #ttnn_layout6>
        %7 = "ttnn.gt"(%4, %2) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<si32, #ttnn_layout8>, tensor<si32, #ttnn_layout8>) -> tensor<bf16, #ttnn_layout9>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<si32, #ttnn_layout8>) -> ()
        %8 = "ttnn.reshape"(%7) <{shape = [1 : i32]}> : (tensor<bf16, #ttnn_layout9>) -> tensor<1xbf16, #ttnn_layout6>
        %9 = "ttnn.gt"(%4, %1) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<si32, #ttnn_layout8>, tensor<si32, #ttnn_layout8>) -> tensor<bf16, #ttnn_layout9>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<si32, #ttnn_layout8>) -> ()
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<si32, #ttnn_layout8>) -> ()
        %10 = "ttnn.reshape"(%9) <{shape = [1 : i32]}> : (tensor<bf16, #ttnn_layout9>) -> tensor<1xbf16, #ttnn_layout6>
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<bf16, #ttnn_layout9>) -> ()
        %11 = "ttnn.reshape"(%5) <{shape = [1 : i32, 1 : i32]}> : (tensor<bf16, #ttnn_layout9>) -> tensor<1x1xbf16, #ttnn_layout7>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<bf16, #ttnn_layout9>) -> ()
        %12 = "ttnn.reshape"(%7) <{shape = [1 : i32, 1 : i32]}> : (tensor<bf16, #ttnn_layout9>) -> tensor<1x1xbf16, #ttnn_layout7>
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<bf16, #ttnn_layout9>) -> ()
        return %6, %8, %10, %11, %12 : tensor<1xbf16, #ttnn_layout6>, tensor<1xbf16, #ttnn_layout6>, tensor<1xbf16, #ttnn_layout6>, tensor<1x1xbf16, #ttnn_layout7>, tensor<1x1xbf16, #ttnn_layout7>
      }
      func.func private @main_const_eval_13() -> tensor<1x15xf32, #ttnn_layout10> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 2.000000e+00 : f32, shape = #ttnn.shape<1x15>}> : (!ttnn.device) -> tensor<1x15xf32, #ttnn_layout10>
        return %1 : tensor<1x15xf32, #ttnn_layout10>
      }
      func.func private @main_const_eval_14() -> tensor<1xsi32, #ttnn_layout1> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.zeros"(%0) <{shape = #ttnn.shape<1>}> : (!ttnn.device) -> tensor<1xsi32, #ttnn_layout1>
        return %1 : tensor<1xsi32, #ttnn_layout1>
      }
      func.func public @main(%arg0: tensor<21x31xf32, #ttnn_layout11> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<21x31xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<3x5x7xf32, #ttnn_layout12> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<3x5x7xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg2: tensor<4xsi32, #ttnn_layout13> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<4xi32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<21x31xf32, #ttnn_layout14> {jax.result_info = "result[0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<21x31xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<21x31xf32, #ttnn_layout14> {jax.result_info = "result[1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<21x31xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<3x5x7xf32, #ttnn_layout15> {jax.result_info = "result[2]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<3x5x7xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<4x5xf32, #ttnn_layout14> {jax.result_info = "result[3]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<4x5xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<4x4x7xf32, #ttnn_layout16> {jax.result_info = "result[4]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<4x4x7xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_const_eval_0, []) : () -> tensor<1x1xsi32, #ttnn_layout>
        %1 = ttcore.load_cached(@main_const_eval_8, []) : () -> tensor<1x1xsi32, #ttnn_layout>
        %2 = ttcore.load_cached(@main_const_eval_1, []) : () -> tensor<1x1xsi32, #ttnn_layout>
        %3 = ttcore.load_cached(@main_const_eval_13, []) : () -> tensor<1x15xf32, #ttnn_layout10>
        %4 = ttcore.load_cached(@main_const_eval_7, []) : () -> tensor<1xsi32, #ttnn_layout1>
        %5 = ttcore.load_cached(@main_const_eval_10, []) : () -> tensor<1xsi32, #ttnn_layout1>
        %6 = ttcore.load_cached(@main_const_eval_2, []) : () -> tensor<1xsi32, #ttnn_layout1>
        %7 = ttcore.load_cached(@main_const_eval_14, []) : () -> tensor<1xsi32, #ttnn_layout1>
        %8 = ttcore.load_cached(@main_const_eval_6, []) : () -> tensor<1x1x3xsi32, #ttnn_layout4>
        %9 = ttcore.load_cached(@main_const_eval_11, []) : () -> tensor<1x1x4xsi32, #ttnn_layout5>
        %10 = ttcore.load_cached(@main_const_eval_4, []) : () -> tensor<1x4xf32, #ttnn_layout3>
        %11 = ttcore.load_cached(@main_const_eval_5, []) : () -> tensor<1xsi32, #ttnn_layout1>
        %12 = ttcore.load_cached(@main_const_eval_9, []) : () -> tensor<1xsi32, #ttnn_layout1>
        %13:5 = ttcore.load_cached(@main_const_eval_12, []) : () -> (tensor<1xbf16, #ttnn_layout6>, tensor<1xbf16, #ttnn_layout6>, tensor<1xbf16, #ttnn_layout6>, tensor<1x1xbf16, #ttnn_layout7>, tensor<1x1xbf16, #ttnn_layout7>)
        %14 = ttcore.load_cached(@main_const_eval_3, []) : () -> tensor<1x4x7xf32, #ttnn_layout2>
        %15 = "ttnn.to_layout"(%arg2) : (tensor<4xsi32, #ttnn_layout13>) -> tensor<4xsi32, #ttnn_layout1>
        "ttnn.deallocate"(%arg2) <{force = false}> : (tensor<4xsi32, #ttnn_layout13>) -> ()
        %16 = "ttnn.gt"(%7, %15) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1xsi32, #ttnn_layout1>, tensor<4xsi32, #ttnn_layout1>) -> tensor<4xbf16, #ttnn_layout6>
        %17 = "ttnn.add"(%15, %5) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4xsi32, #ttnn_layout1>, tensor<1xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout1>
        %18 = "ttnn.where"(%16, %17, %15) : (tensor<4xbf16, #ttnn_layout6>, tensor<4xsi32, #ttnn_layout1>, tensor<4xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout1>
        "ttnn.deallocate"(%17) <{force = false}> : (tensor<4xsi32, #ttnn_layout1>) -> ()
        %19 = "ttnn.add"(%15, %11) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4xsi32, #ttnn_layout1>, tensor<1xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout1>
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<1xsi32, #ttnn_layout1>) -> ()
        %20 = "ttnn.where"(%16, %19, %15) : (tensor<4xbf16, #ttnn_layout6>, tensor<4xsi32, #ttnn_layout1>, tensor<4xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout1>
        "ttnn.deallocate"(%19) <{force = false}> : (tensor<4xsi32, #ttnn_layout1>) -> ()
        "ttnn.deallocate"(%16) <{force = false}> : (tensor<4xbf16, #ttnn_layout6>) -> ()
        %21 = "ttnn.reshape"(%arg0) <{shape = [1 : i32, 21 : i32, 31 : i32]}> : (tensor<21x31xf32, #ttnn_layout11>) -> tensor<1x21x31xf32, #ttnn_layout17>
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<21x31xf32, #ttnn_layout11>) -> ()
        %22 = "ttnn.to_layout"(%18) : (tensor<4xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout13>
        "ttnn.deallocate"(%18) <{force = false}> : (tensor<4xsi32, #ttnn_layout1>) -> ()
        %23 = "ttnn.reshape"(%22) <{shape = [1 : i32, 1 : i32, 4 : i32]}> : (tensor<4xsi32, #ttnn_layout13>) -> tensor<1x1x4xsi32, #ttnn_layout5>
        "ttnn.deallocate"(%22) <{force = false}> : (tensor<4xsi32, #ttnn_layout13>) -> ()
        %24 = "ttnn.to_layout"(%20) : (tensor<4xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout13>
        "ttnn.deallocate"(%20) <{force = false}> : (tensor<4xsi32, #ttnn_layout1>) -> ()
        %25 = "ttnn.reshape"(%24) <{shape = [1 : i32, 1 : i32, 4 : i32]}> : (tensor<4xsi32, #ttnn_layout13>) -> tensor<1x1x4xsi32, #ttnn_layout5>
        "ttnn.deallocate"(%24) <{force = false}> : (tensor<4xsi32, #ttnn_layout13>) -> ()
        %26 = "ttnn.concat"(%23, %25) <{dim = 1 : si32}> : (tensor<1x1x4xsi32, #ttnn_layout5>, tensor<1x1x4xsi32, #ttnn_layout5>) -> tensor<1x2x4xsi32, #ttnn_layout18>
        "ttnn.deallocate"(%25) <{force = false}> : (tensor<1x1x4xsi32, #ttnn_layout5>) -> ()
        "ttnn.deallocate"(%23) <{force = false}> : (tensor<1x1x4xsi32, #ttnn_layout5>) -> ()
        %27 = "ttnn.rows_scatter"(%21, %26, %10) <{column = true, reduce = #ttcore.reduce_type<sum>, sizes = array<i64: 21, 31>, windows = array<i64: 1, 1>}> : (tensor<1x21x31xf32, #ttnn_layout17>, tensor<1x2x4xsi32, #ttnn_layout18>, tensor<1x4xf32, #ttnn_layout3>) -> tensor<1x21x31xf32, #ttnn_layout17>
        "ttnn.deallocate"(%26) <{force = false}> : (tensor<1x2x4xsi32, #ttnn_layout18>) -> ()
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<1x4xf32, #ttnn_layout3>) -> ()
        %28 = "ttnn.to_layout"(%27) : (tensor<1x21x31xf32, #ttnn_layout17>) -> tensor<1x21x31xf32, #ttnn_layout19>
        "ttnn.deallocate"(%27) <{force = false}> : (tensor<1x21x31xf32, #ttnn_layout17>) -> ()
        %29 = "ttnn.reshape"(%28) <{shape = [21 : i32, 31 : i32]}> : (tensor<1x21x31xf32, #ttnn_layout19>) -> tensor<21x31xf32, #ttnn_layout14>
        "ttnn.deallocate"(%28) <{force = false}> : (tensor<1x21x31xf32, #ttnn_layout19>) -> ()
        %30 = "ttnn.slice_static"(%15) <{begins = [0 : i32], ends = [3 : i32], step = [1 : i32]}> : (tensor<4xsi32, #ttnn_layout1>) -> tensor<3xsi32, #ttnn_layout1>
        %31 = "ttnn.gt"(%7, %30) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1xsi32, #ttnn_layout1>, tensor<3xsi32, #ttnn_layout1>) -> tensor<3xbf16, #ttnn_layout6>
        %32 = "ttnn.add"(%30, %5) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<3xsi32, #ttnn_layout1>, tensor<1xsi32, #ttnn_layout1>) -> tensor<3xsi32, #ttnn_layout1>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<1xsi32, #ttnn_layout1>) -> ()
        %33 = "ttnn.where"(%31, %32, %30) : (tensor<3xbf16, #ttnn_layout6>, tensor<3xsi32, #ttnn_layout1>, tensor<3xsi32, #ttnn_layout1>) -> tensor<3xsi32, #ttnn_layout1>
        "ttnn.deallocate"(%32) <{force = false}> : (tensor<3xsi32, #ttnn_layout1>) -> ()
        "ttnn.deallocate"(%31) <{force = false}> : (tensor<3xbf16, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%30) <{force = false}> : (tensor<3xsi32, #ttnn_layout1>) -> ()
        %34 = "ttnn.to_layout"(%33) : (tensor<3xsi32, #ttnn_layout1>) -> tensor<3xsi32, #ttnn_layout20>
        "ttnn.deallocate"(%33) <{force = false}> : (tensor<3xsi32, #ttnn_layout1>) -> ()
        %35 = "ttnn.reshape"(%34) <{shape = [1 : i32, 1 : i32, 3 : i32]}> : (tensor<3xsi32, #ttnn_layout20>) -> tensor<1x1x3xsi32, #ttnn_layout4>
        "ttnn.deallocate"(%34) <{force = false}> : (tensor<3xsi32, #ttnn_layout20>) -> ()
        %36 = "ttnn.concat"(%35, %8) <{dim = 1 : si32}> : (tensor<1x1x3xsi32, #ttnn_layout4>, tensor<1x1x3xsi32, #ttnn_layout4>) -> tensor<1x2x3xsi32, #ttnn_layout21>
        "ttnn.deallocate"(%35) <{force = false}> : (tensor<1x1x3xsi32, #ttnn_layout4>) -> ()
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<1x1x3xsi32, #ttnn_layout4>) -> ()
        %37 = "ttnn.rows_scatter"(%21, %36, %3) <{column = true, reduce = #ttcore.reduce_type<prod>, sizes = array<i64: 21, 31>, windows = array<i64: 1, 5>}> : (tensor<1x21x31xf32, #ttnn_layout17>, tensor<1x2x3xsi32, #ttnn_layout21>, tensor<1x15xf32, #ttnn_layout10>) -> tensor<1x21x31xf32, #ttnn_layout17>
        "ttnn.deallocate"(%36) <{force = false}> : (tensor<1x2x3xsi32, #ttnn_layout21>) -> ()
        "ttnn.deallocate"(%21) <{force = false}> : (tensor<1x21x31xf32, #ttnn_layout17>) -> ()
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<1x15xf32, #ttnn_layout10>) -> ()
        %38 = "ttnn.to_layout"(%37) : (tensor<1x21x31xf32, #ttnn_layout17>) -> tensor<1x21x31xf32, #ttnn_layout19>
        "ttnn.deallocate"(%37) <{force = false}> : (tensor<1x21x31xf32, #ttnn_layout17>) -> ()
        %39 = "ttnn.reshape"(%38) <{shape = [21 : i32, 31 : i32]}> : (tensor<1x21x31xf32, #ttnn_layout19>) -> tensor<21x31xf32, #ttnn_layout14>
        "ttnn.deallocate"(%38) <{force = false}> : (tensor<1x21x31xf32, #ttnn_layout19>) -> ()
        %40 = "ttnn.remainder"(%15, %6) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4xsi32, #ttnn_layout1>, tensor<1xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout1>
        %41 = "ttnn.ne"(%40, %7) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4xsi32, #ttnn_layout1>, tensor<1xsi32, #ttnn_layout1>) -> tensor<4xbf16, #ttnn_layout6>
        %42 = "ttnn.gt"(%7, %40) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1xsi32, #ttnn_layout1>, tensor<4xsi32, #ttnn_layout1>) -> tensor<4xbf16, #ttnn_layout6>
        %43 = "ttnn.ne"(%42, %13#0) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4xbf16, #ttnn_layout6>, tensor<1xbf16, #ttnn_layout6>) -> tensor<4xbf16, #ttnn_layout6>
        "ttnn.deallocate"(%42) <{force = false}> : (tensor<4xbf16, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%13#0) <{force = false}> : (tensor<1xbf16, #ttnn_layout6>) -> ()
        %44 = "ttnn.logical_and"(%43, %41) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4xbf16, #ttnn_layout6>, tensor<4xbf16, #ttnn_layout6>) -> tensor<4xbf16, #ttnn_layout6>
        "ttnn.deallocate"(%43) <{force = false}> : (tensor<4xbf16, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%41) <{force = false}> : (tensor<4xbf16, #ttnn_layout6>) -> ()
        %45 = "ttnn.add"(%40, %6) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4xsi32, #ttnn_layout1>, tensor<1xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout1>
        %46 = "ttnn.where"(%44, %45, %40) : (tensor<4xbf16, #ttnn_layout6>, tensor<4xsi32, #ttnn_layout1>, tensor<4xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout1>
        "ttnn.deallocate"(%45) <{force = false}> : (tensor<4xsi32, #ttnn_layout1>) -> ()
        "ttnn.deallocate"(%44) <{force = false}> : (tensor<4xbf16, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%40) <{force = false}> : (tensor<4xsi32, #ttnn_layout1>) -> ()
        %47 = "ttnn.remainder"(%15, %4) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4xsi32, #ttnn_layout1>, tensor<1xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout1>
        %48 = "ttnn.ne"(%47, %7) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4xsi32, #ttnn_layout1>, tensor<1xsi32, #ttnn_layout1>) -> tensor<4xbf16, #ttnn_layout6>
        %49 = "ttnn.gt"(%7, %47) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1xsi32, #ttnn_layout1>, tensor<4xsi32, #ttnn_layout1>) -> tensor<4xbf16, #ttnn_layout6>
        %50 = "ttnn.ne"(%49, %13#1) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4xbf16, #ttnn_layout6>, tensor<1xbf16, #ttnn_layout6>) -> tensor<4xbf16, #ttnn_layout6>
        "ttnn.deallocate"(%49) <{force = false}> : (tensor<4xbf16, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%13#1) <{force = false}> : (tensor<1xbf16, #ttnn_layout6>) -> ()
        %51 = "ttnn.logical_and"(%50, %48) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4xbf16, #ttnn_layout6>, tensor<4xbf16, #ttnn_layout6>) -> tensor<4xbf16, #ttnn_layout6>
        "ttnn.deallocate"(%50) <{force = false}> : (tensor<4xbf16, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%48) <{force = false}> : (tensor<4xbf16, #ttnn_layout6>) -> ()
        %52 = "ttnn.add"(%47, %4) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4xsi32, #ttnn_layout1>, tensor<1xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout1>
        %53 = "ttnn.where"(%51, %52, %47) : (tensor<4xbf16, #ttnn_layout6>, tensor<4xsi32, #ttnn_layout1>, tensor<4xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout1>
        "ttnn.deallocate"(%52) <{force = false}> : (tensor<4xsi32, #ttnn_layout1>) -> ()
        "ttnn.deallocate"(%51) <{force = false}> : (tensor<4xbf16, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%47) <{force = false}> : (tensor<4xsi32, #ttnn_layout1>) -> ()
        %54 = "ttnn.gt"(%7, %46) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1xsi32, #ttnn_layout1>, tensor<4xsi32, #ttnn_layout1>) -> tensor<4xbf16, #ttnn_layout6>
        %55 = "ttnn.add"(%46, %6) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4xsi32, #ttnn_layout1>, tensor<1xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout1>
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<1xsi32, #ttnn_layout1>) -> ()
        %56 = "ttnn.where"(%54, %55, %46) : (tensor<4xbf16, #ttnn_layout6>, tensor<4xsi32, #ttnn_layout1>, tensor<4xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout1>
        "ttnn.deallocate"(%55) <{force = false}> : (tensor<4xsi32, #ttnn_layout1>) -> ()
        "ttnn.deallocate"(%54) <{force = false}> : (tensor<4xbf16, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%46) <{force = false}> : (tensor<4xsi32, #ttnn_layout1>) -> ()
        %57 = "ttnn.gt"(%7, %53) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1xsi32, #ttnn_layout1>, tensor<4xsi32, #ttnn_layout1>) -> tensor<4xbf16, #ttnn_layout6>
        %58 = "ttnn.add"(%53, %4) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4xsi32, #ttnn_layout1>, tensor<1xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout1>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<1xsi32, #ttnn_layout1>) -> ()
        %59 = "ttnn.where"(%57, %58, %53) : (tensor<4xbf16, #ttnn_layout6>, tensor<4xsi32, #ttnn_layout1>, tensor<4xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout1>
        "ttnn.deallocate"(%58) <{force = false}> : (tensor<4xsi32, #ttnn_layout1>) -> ()
        "ttnn.deallocate"(%57) <{force = false}> : (tensor<4xbf16, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%53) <{force = false}> : (tensor<4xsi32, #ttnn_layout1>) -> ()
        %60 = "ttnn.reshape"(%arg1) <{shape = [1 : i32, 15 : i32, 7 : i32]}> : (tensor<3x5x7xf32, #ttnn_layout12>) -> tensor<1x15x7xf32, #ttnn_layout22>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<3x5x7xf32, #ttnn_layout12>) -> ()
        %61 = "ttnn.to_layout"(%56) : (tensor<4xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout13>
        "ttnn.deallocate"(%56) <{force = false}> : (tensor<4xsi32, #ttnn_layout1>) -> ()
        %62 = "ttnn.reshape"(%61) <{shape = [1 : i32, 1 : i32, 4 : i32]}> : (tensor<4xsi32, #ttnn_layout13>) -> tensor<1x1x4xsi32, #ttnn_layout5>
        "ttnn.deallocate"(%61) <{force = false}> : (tensor<4xsi32, #ttnn_layout13>) -> ()
        %63 = "ttnn.to_layout"(%59) : (tensor<4xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout13>
        "ttnn.deallocate"(%59) <{force = false}> : (tensor<4xsi32, #ttnn_layout1>) -> ()
        %64 = "ttnn.reshape"(%63) <{shape = [1 : i32, 1 : i32, 4 : i32]}> : (tensor<4xsi32, #ttnn_layout13>) -> tensor<1x1x4xsi32, #ttnn_layout5>
        "ttnn.deallocate"(%63) <{force = false}> : (tensor<4xsi32, #ttnn_layout13>) -> ()
        %65 = "ttnn.concat"(%62, %64) <{dim = 1 : si32}> : (tensor<1x1x4xsi32, #ttnn_layout5>, tensor<1x1x4xsi32, #ttnn_layout5>) -> tensor<1x2x4xsi32, #ttnn_layout18>
        "ttnn.deallocate"(%64) <{force = false}> : (tensor<1x1x4xsi32, #ttnn_layout5>) -> ()
        %66 = "ttnn.rows_scatter"(%60, %65, %14) <{column = false, reduce = #ttcore.reduce_type<min>, sizes = array<i64: 3, 5>, windows = array<i64: 1, 1>}> : (tensor<1x15x7xf32, #ttnn_layout22>, tensor<1x2x4xsi32, #ttnn_layout18>, tensor<1x4x7xf32, #ttnn_layout2>) -> tensor<1x15x7xf32, #ttnn_layout22>
        "ttnn.deallocate"(%65) <{force = false}> : (tensor<1x2x4xsi32, #ttnn_layout18>) -> ()
        "ttnn.deallocate"(%14) <{force = false}> : (tensor<1x4x7xf32, #ttnn_layout2>) -> ()
        %67 = "ttnn.to_layout"(%66) : (tensor<1x15x7xf32, #ttnn_layout22>) -> tensor<1x15x7xf32, #ttnn_layout19>
        "ttnn.deallocate"(%66) <{force = false}> : (tensor<1x15x7xf32, #ttnn_layout22>) -> ()
        %68 = "ttnn.reshape"(%67) <{shape = [3 : i32, 5 : i32, 7 : i32]}> : (tensor<1x15x7xf32, #ttnn_layout19>) -> tensor<3x5x7xf32, #ttnn_layout15>
        "ttnn.deallocate"(%67) <{force = false}> : (tensor<1x15x7xf32, #ttnn_layout19>) -> ()
        %69 = "ttnn.remainder"(%15, %12) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4xsi32, #ttnn_layout1>, tensor<1xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout1>
        %70 = "ttnn.ne"(%69, %7) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4xsi32, #ttnn_layout1>, tensor<1xsi32, #ttnn_layout1>) -> tensor<4xbf16, #ttnn_layout6>
        %71 = "ttnn.gt"(%7, %69) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1xsi32, #ttnn_layout1>, tensor<4xsi32, #ttnn_layout1>) -> tensor<4xbf16, #ttnn_layout6>
        %72 = "ttnn.ne"(%71, %13#2) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4xbf16, #ttnn_layout6>, tensor<1xbf16, #ttnn_layout6>) -> tensor<4xbf16, #ttnn_layout6>
        "ttnn.deallocate"(%71) <{force = false}> : (tensor<4xbf16, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%13#2) <{force = false}> : (tensor<1xbf16, #ttnn_layout6>) -> ()
        %73 = "ttnn.logical_and"(%72, %70) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4xbf16, #ttnn_layout6>, tensor<4xbf16, #ttnn_layout6>) -> tensor<4xbf16, #ttnn_layout6>
        "ttnn.deallocate"(%72) <{force = false}> : (tensor<4xbf16, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%70) <{force = false}> : (tensor<4xbf16, #ttnn_layout6>) -> ()
        %74 = "ttnn.add"(%69, %12) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4xsi32, #ttnn_layout1>, tensor<1xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout1>
        %75 = "ttnn.where"(%73, %74, %69) : (tensor<4xbf16, #ttnn_layout6>, tensor<4xsi32, #ttnn_layout1>, tensor<4xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout1>
        "ttnn.deallocate"(%74) <{force = false}> : (tensor<4xsi32, #ttnn_layout1>) -> ()
        "ttnn.deallocate"(%73) <{force = false}> : (tensor<4xbf16, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%69) <{force = false}> : (tensor<4xsi32, #ttnn_layout1>) -> ()
        %76 = "ttnn.gt"(%7, %75) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1xsi32, #ttnn_layout1>, tensor<4xsi32, #ttnn_layout1>) -> tensor<4xbf16, #ttnn_layout6>
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<1xsi32, #ttnn_layout1>) -> ()
        %77 = "ttnn.add"(%75, %12) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4xsi32, #ttnn_layout1>, tensor<1xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout1>
        "ttnn.deallocate"(%12) <{force = false}> : (tensor<1xsi32, #ttnn_layout1>) -> ()
        %78 = "ttnn.where"(%76, %77, %75) : (tensor<4xbf16, #ttnn_layout6>, tensor<4xsi32, #ttnn_layout1>, tensor<4xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout1>
        "ttnn.deallocate"(%77) <{force = false}> : (tensor<4xsi32, #ttnn_layout1>) -> ()
        "ttnn.deallocate"(%76) <{force = false}> : (tensor<4xbf16, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%75) <{force = false}> : (tensor<4xsi32, #ttnn_layout1>) -> ()
        %79 = "ttnn.to_layout"(%78) : (tensor<4xsi32, #ttnn_layout1>) -> tensor<4xsi32, #ttnn_layout13>
        "ttnn.deallocate"(%78) <{force = false}> : (tensor<4xsi32, #ttnn_layout1>) -> ()
        %80 = "ttnn.reshape"(%79) <{shape = [1 : i32, 1 : i32, 4 : i32]}> : (tensor<4xsi32, #ttnn_layout13>) -> tensor<1x1x4xsi32, #ttnn_layout5>
        "ttnn.deallocate"(%79) <{force = false}> : (tensor<4xsi32, #ttnn_layout13>) -> ()
        %81 = "ttnn.concat"(%62, %9, %80) <{dim = 1 : si32}> : (tensor<1x1x4xsi32, #ttnn_layout5>, tensor<1x1x4xsi32, #ttnn_layout5>, tensor<1x1x4xsi32, #ttnn_layout5>) -> tensor<1x3x4xsi32, #ttnn_layout23>
        "ttnn.deallocate"(%80) <{force = false}> : (tensor<1x1x4xsi32, #ttnn_layout5>) -> ()
        "ttnn.deallocate"(%62) <{force = false}> : (tensor<1x1x4xsi32, #ttnn_layout5>) -> ()
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<1x1x4xsi32, #ttnn_layout5>) -> ()
        %82 = "ttnn.rows_gather"(%60, %81) <{column = true, fill_out_of_bounds = false, sizes = array<i64: 3, 5, 7>, windows = array<i64: 1, 5, 1>}> : (tensor<1x15x7xf32, #ttnn_layout22>, tensor<1x3x4xsi32, #ttnn_layout23>) -> tensor<1x20xf32, #ttnn_layout24>
        "ttnn.deallocate"(%81) <{force = false}> : (tensor<1x3x4xsi32, #ttnn_layout23>) -> ()
        %83 = "ttnn.to_layout"(%82) : (tensor<1x20xf32, #ttnn_layout24>) -> tensor<1x20xf32, #ttnn_layout14>
        "ttnn.deallocate"(%82) <{force = false}> : (tensor<1x20xf32, #ttnn_layout24>) -> ()
        %84 = "ttnn.reshape"(%83) <{shape = [4 : i32, 5 : i32]}> : (tensor<1x20xf32, #ttnn_layout14>) -> tensor<4x5xf32, #ttnn_layout14>
        "ttnn.deallocate"(%83) <{force = false}> : (tensor<1x20xf32, #ttnn_layout14>) -> ()
        %85 = "ttnn.reshape"(%15) <{shape = [4 : i32, 1 : i32]}> : (tensor<4xsi32, #ttnn_layout1>) -> tensor<4x1xsi32, #ttnn_layout>
        %86 = "ttnn.remainder"(%85, %2) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4x1xsi32, #ttnn_layout>, tensor<1x1xsi32, #ttnn_layout>) -> tensor<4x1xsi32, #ttnn_layout>
        "ttnn.deallocate"(%85) <{force = false}> : (tensor<4x1xsi32, #ttnn_layout>) -> ()
        %87 = "ttnn.ne"(%86, %0) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4x1xsi32, #ttnn_layout>, tensor<1x1xsi32, #ttnn_layout>) -> tensor<4x1xbf16, #ttnn_layout7>
        %88 = "ttnn.gt"(%0, %86) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1x1xsi32, #ttnn_layout>, tensor<4x1xsi32, #ttnn_layout>) -> tensor<4x1xbf16, #ttnn_layout7>
        %89 = "ttnn.ne"(%88, %13#3) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4x1xbf16, #ttnn_layout7>, tensor<1x1xbf16, #ttnn_layout7>) -> tensor<4x1xbf16, #ttnn_layout7>
        "ttnn.deallocate"(%88) <{force = false}> : (tensor<4x1xbf16, #ttnn_layout7>) -> ()
        "ttnn.deallocate"(%13#3) <{force = false}> : (tensor<1x1xbf16, #ttnn_layout7>) -> ()
        %90 = "ttnn.logical_and"(%89, %87) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4x1xbf16, #ttnn_layout7>, tensor<4x1xbf16, #ttnn_layout7>) -> tensor<4x1xbf16, #ttnn_layout7>
        "ttnn.deallocate"(%89) <{force = false}> : (tensor<4x1xbf16, #ttnn_layout7>) -> ()
        "ttnn.deallocate"(%87) <{force = false}> : (tensor<4x1xbf16, #ttnn_layout7>) -> ()
        %91 = "ttnn.add"(%86, %2) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4x1xsi32, #ttnn_layout>, tensor<1x1xsi32, #ttnn_layout>) -> tensor<4x1xsi32, #ttnn_layout>
        %92 = "ttnn.where"(%90, %91, %86) : (tensor<4x1xbf16, #ttnn_layout7>, tensor<4x1xsi32, #ttnn_layout>, tensor<4x1xsi32, #ttnn_layout>) -> tensor<4x1xsi32, #ttnn_layout>
        "ttnn.deallocate"(%91) <{force = false}> : (tensor<4x1xsi32, #ttnn_layout>) -> ()
        "ttnn.deallocate"(%90) <{force = false}> : (tensor<4x1xbf16, #ttnn_layout7>) -> ()
        "ttnn.deallocate"(%86) <{force = false}> : (tensor<4x1xsi32, #ttnn_layout>) -> ()
        %93 = "ttnn.reshape"(%15) <{shape = [1 : i32, 4 : i32]}> : (tensor<4xsi32, #ttnn_layout1>) -> tensor<1x4xsi32, #ttnn_layout>
        "ttnn.deallocate"(%15) <{force = false}> : (tensor<4xsi32, #ttnn_layout1>) -> ()
        %94 = "ttnn.remainder"(%93, %1) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1x4xsi32, #ttnn_layout>, tensor<1x1xsi32, #ttnn_layout>) -> tensor<1x4xsi32, #ttnn_layout>
        "ttnn.deallocate"(%93) <{force = false}> : (tensor<1x4xsi32, #ttnn_layout>) -> ()
        %95 = "ttnn.ne"(%94, %0) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1x4xsi32, #ttnn_layout>, tensor<1x1xsi32, #ttnn_layout>) -> tensor<1x4xbf16, #ttnn_layout7>
        %96 = "ttnn.gt"(%0, %94) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1x1xsi32, #ttnn_layout>, tensor<1x4xsi32, #ttnn_layout>) -> tensor<1x4xbf16, #ttnn_layout7>
        %97 = "ttnn.ne"(%96, %13#4) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1x4xbf16, #ttnn_layout7>, tensor<1x1xbf16, #ttnn_layout7>) -> tensor<1x4xbf16, #ttnn_layout7>
        "ttnn.deallocate"(%96) <{force = false}> : (tensor<1x4xbf16, #ttnn_layout7>) -> ()
        "ttnn.deallocate"(%13#4) <{force = false}> : (tensor<1x1xbf16, #ttnn_layout7>) -> ()
        %98 = "ttnn.logical_and"(%97, %95) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1x4xbf16, #ttnn_layout7>, tensor<1x4xbf16, #ttnn_layout7>) -> tensor<1x4xbf16, #ttnn_layout7>
        "ttnn.deallocate"(%97) <{force = false}> : (tensor<1x4xbf16, #ttnn_layout7>) -> ()
        "ttnn.deallocate"(%95) <{force = false}> : (tensor<1x4xbf16, #ttnn_layout7>) -> ()
        %99 = "ttnn.add"(%94, %1) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1x4xsi32, #ttnn_layout>, tensor<1x1xsi32, #ttnn_layout>) -> tensor<1x4xsi32, #ttnn_layout>
        %100 = "ttnn.where"(%98, %99, %94) : (tensor<1x4xbf16, #ttnn_layout7>, tensor<1x4xsi32, #ttnn_layout>, tensor<1x4xsi32, #ttnn_layout>) -> tensor<1x4xsi32, #ttnn_layout>
        "ttnn.deallocate"(%99) <{force = false}> : (tensor<1x4xsi32, #ttnn_layout>) -> ()
        "ttnn.deallocate"(%98) <{force = false}> : (tensor<1x4xbf16, #ttnn_layout7>) -> ()
        "ttnn.deallocate"(%94) <{force = false}> : (tensor<1x4xsi32, #ttnn_layout>) -> ()
        %101 = "ttnn.gt"(%0, %92) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1x1xsi32, #ttnn_layout>, tensor<4x1xsi32, #ttnn_layout>) -> tensor<4x1xbf16, #ttnn_layout7>
        %102 = "ttnn.add"(%92, %2) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<4x1xsi32, #ttnn_layout>, tensor<1x1xsi32, #ttnn_layout>) -> tensor<4x1xsi32, #ttnn_layout>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<1x1xsi32, #ttnn_layout>) -> ()
        %103 = "ttnn.where"(%101, %102, %92) : (tensor<4x1xbf16, #ttnn_layout7>, tensor<4x1xsi32, #ttnn_layout>, tensor<4x1xsi32, #ttnn_layout>) -> tensor<4x1xsi32, #ttnn_layout>
        "ttnn.deallocate"(%102) <{force = false}> : (tensor<4x1xsi32, #ttnn_layout>) -> ()
        "ttnn.deallocate"(%101) <{force = false}> : (tensor<4x1xbf16, #ttnn_layout7>) -> ()
        "ttnn.deallocate"(%92) <{force = false}> : (tensor<4x1xsi32, #ttnn_layout>) -> ()
        %104 = "ttnn.gt"(%0, %100) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1x1xsi32, #ttnn_layout>, tensor<1x4xsi32, #ttnn_layout>) -> tensor<1x4xbf16, #ttnn_layout7>
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1x1xsi32, #ttnn_layout>) -> ()
        %105 = "ttnn.add"(%100, %1) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<1x4xsi32, #ttnn_layout>, tensor<1x1xsi32, #ttnn_layout>) -> tensor<1x4xsi32, #ttnn_layout>
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<1x1xsi32, #ttnn_layout>) -> ()
        %106 = "ttnn.where"(%104, %105, %100) : (tensor<1x4xbf16, #ttnn_layout7>, tensor<1x4xsi32, #ttnn_layout>, tensor<1x4xsi32, #ttnn_layout>) -> tensor<1x4xsi32, #ttnn_layout>
        "ttnn.deallocate"(%105) <{force = false}> : (tensor<1x4xsi32, #ttnn_layout>) -> ()
        "ttnn.deallocate"(%104) <{force = false}> : (tensor<1x4xbf16, #ttnn_layout7>) -> ()
        "ttnn.deallocate"(%100) <{force = false}> : (tensor<1x4xsi32, #ttnn_layout>) -> ()
        %107 = "ttnn.reshape"(%103) <{shape = [4 : i32, 1 : i32, 1 : i32]}> : (tensor<4x1xsi32, #ttnn_layout>) -> tensor<4x1x1xsi32, #ttnn_layout25>
        "ttnn.deallocate"(%103) <{force = false}> : (tensor<4x1xsi32, #ttnn_layout>) -> ()
        %108 = "ttnn.repeat"(%107) <{repeat_dims = #ttnn.shape<1x4x1>}> : (tensor<4x1x1xsi32, #ttnn_layout25>) -> tensor<4x4x1xsi32, #ttnn_layout25>
        "ttnn.deallocate"(%107) <{force = false}> : (tensor<4x1x1xsi32, #ttnn_layout25>) -> ()
        %109 = "ttnn.reshape"(%106) <{shape = [1 : i32, 4 : i32, 1 : i32]}> : (tensor<1x4xsi32, #ttnn_layout>) -> tensor<1x4x1xsi32, #ttnn_layout26>
        "ttnn.deallocate"(%106) <{force = false}> : (tensor<1x4xsi32, #ttnn_layout>) -> ()
        %110 = "ttnn.repeat"(%109) <{repeat_dims = #ttnn.shape<4x1x1>}> : (tensor<1x4x1xsi32, #ttnn_layout26>) -> tensor<4x4x1xsi32, #ttnn_layout25>
        "ttnn.deallocate"(%109) <{force = false}> : (tensor<1x4x1xsi32, #ttnn_layout26>) -> ()
        %111 = "ttnn.to_layout"(%108) : (tensor<4x4x1xsi32, #ttnn_layout25>) -> tensor<4x4x1xsi32, #ttnn_layout27>
        "ttnn.deallocate"(%108) <{force = false}> : (tensor<4x4x1xsi32, #ttnn_layout25>) -> ()
        %112 = "ttnn.reshape"(%111) <{shape = [1 : i32, 1 : i32, 16 : i32]}> : (tensor<4x4x1xsi32, #ttnn_layout27>) -> tensor<1x1x16xsi32, #ttnn_layout28>
        "ttnn.deallocate"(%111) <{force = false}> : (tensor<4x4x1xsi32, #ttnn_layout27>) -> ()
        %113 = "ttnn.to_layout"(%110) : (tensor<4x4x1xsi32, #ttnn_layout25>) -> tensor<4x4x1xsi32, #ttnn_layout27>
        "ttnn.deallocate"(%110) <{force = false}> : (tensor<4x4x1xsi32, #ttnn_layout25>) -> ()
        %114 = "ttnn.reshape"(%113) <{shape = [1 : i32, 1 : i32, 16 : i32]}> : (tensor<4x4x1xsi32, #ttnn_layout27>) -> tensor<1x1x16xsi32, #ttnn_layout28>
        "ttnn.deallocate"(%113) <{force = false}> : (tensor<4x4x1xsi32, #ttnn_layout27>) -> ()
        %115 = "ttnn.concat"(%112, %114) <{dim = 1 : si32}> : (tensor<1x1x16xsi32, #ttnn_layout28>, tensor<1x1x16xsi32, #ttnn_layout28>) -> tensor<1x2x16xsi32, #ttnn_layout29>
        "ttnn.deallocate"(%114) <{force = false}> : (tensor<1x1x16xsi32, #ttnn_layout28>) -> ()
        "ttnn.deallocate"(%112) <{force = false}> : (tensor<1x1x16xsi32, #ttnn_layout28>) -> ()
        %116 = "ttnn.rows_gather"(%60, %115) <{column = false, fill_out_of_bounds = false, sizes = array<i64: 3, 5>, windows = array<i64: 1, 1>}> : (tensor<1x15x7xf32, #ttnn_layout22>, tensor<1x2x16xsi32, #ttnn_layout29>) -> tensor<1x16x7xf32, #ttnn_layout30>
        "ttnn.deallocate"(%115) <{force = false}> : (tensor<1x2x16xsi32, #ttnn_layout29>) -> ()
        "ttnn.deallocate"(%60) <{force = false}> : (tensor<1x15x7xf32, #ttnn_layout22>) -> ()
        %117 = "ttnn.to_layout"(%116) : (tensor<1x16x7xf32, #ttnn_layout30>) -> tensor<1x16x7xf32, #ttnn_layout19>
        "ttnn.deallocate"(%116) <{force = false}> : (tensor<1x16x7xf32, #ttnn_layout30>) -> ()
        %118 = "ttnn.reshape"(%117) <{shape = [4 : i32, 4 : i32, 7 : i32]}> : (tensor<1x16x7xf32, #ttnn_layout19>) -> tensor<4x4x7xf32, #ttnn_layout16>
        "ttnn.deallocate"(%117) <{force = false}> : (tensor<1x16x7xf32, #ttnn_layout19>) -> ()
        return %29, %39, %68, %84, %118 : tensor<21x31xf32, #ttnn_layout14>, tensor<21x31xf32, #ttnn_layout14>, tensor<3x5x7xf32, #ttnn_layout15>, tensor<4x5xf32, #ttnn_layout14>, tensor<4x4x7xf32, #ttnn_layout16>
      }
    }
  }
}
