#dram = #ttnn.buffer_type<dram>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 + d1, d2), <1x1>, memref<1x1xsi32, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 + d1, d2), <1x1>, memref<1x70xf32, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<() -> (0, 0), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout4 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1xsi32, #dram>, <interleaved>>
#ttnn_layout5 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 2 + d1, d2), <1x1>, memref<2x1xsi32, #dram>, <interleaved>>
#ttnn_layout6 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1xsi32, #dram>, <interleaved>>
#ttnn_layout7 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x2xsi32, #dram>, <interleaved>>
#ttnn_layout8 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout9 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>, memref<1x1x!ttcore.tile<32x32, si32>, #dram>, <interleaved>>
#ttnn_layout10 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<35x70xf32, #dram>, <interleaved>>
#ttnn_layout11 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x7xf32, #dram>, <interleaved>>
#ttnn_layout12 = #ttnn.ttnn_layout<() -> (0, 0), <1x1>, memref<1x1xsi32, #dram>, <interleaved>>
#ttnn_layout13 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x3x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout14 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout15 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 35 + d1, d2), <1x1>, memref<35x70xf32, #dram>, <interleaved>>
#ttnn_layout16 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x28xf32, #dram>, <interleaved>>
#ttnn_layout17 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 64 + d1, d2), <1x1>, memref<2x3x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout18 = #ttnn.ttnn_layout<() -> (0, 0), <1x1>, memref<1x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout19 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x2xsi32, #dram>, <interleaved>>
#ttnn_layout20 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, u32>, #dram>, <interleaved>>
#ttnn_layout21 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x3x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
#ttnn_layout22 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x70xf32, #dram>, <interleaved>>
#ttnn_layout23 = #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 2 + d1, d2), <1x1>, memref<2x70xf32, #dram>, <interleaved>>
module @jit_updates attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
  ttcore.device_module {
    builtin.module @jit_updates attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>, ttcore.system_desc = #system_desc, ttnn.l1_const_eval_usage = 1024 : ui64} {
      func.func private @main_const_eval_0() -> tensor<1x1x1xsi32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.zeros"(%0) <{shape = #ttnn.shape<1x1x1>}> : (!ttnn.device) -> tensor<1x1x1xsi32, #ttnn_layout>
        return %1 : tensor<1x1x1xsi32, #ttnn_layout>
      }
      func.func private @main_const_eval_1() -> tensor<1x1x70xf32, #ttnn_layout1> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.ones"(%0) <{shape = #ttnn.shape<1x1x70>}> : (!ttnn.device) -> tensor<1x1x70xf32, #ttnn_layout1>
        return %1 : tensor<1x1x70xf32, #ttnn_layout1>
      }
      func.func private @main_const_eval_2() -> tensor<si32, #ttnn_layout2> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 0 : i32, shape = #ttnn.shape<>}> : (!ttnn.device) -> tensor<si32, #ttnn_layout2>
        return %1 : tensor<si32, #ttnn_layout2>
      }
      func.func private @main_const_eval_3() -> tensor<2xsi32, #ttnn_layout3> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.constant"(%0) <{value = dense<[4, 7]> : tensor<2xsi32>}> : (!ttnn.device) -> tensor<2xsi32, #ttnn_layout3>
        return %1 : tensor<2xsi32, #ttnn_layout3>
      }
      func.func private @main_const_eval_4() -> tensor<si32, #ttnn_layout2> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 35 : i32, shape = #ttnn.shape<>}> : (!ttnn.device) -> tensor<si32, #ttnn_layout2>
        return %1 : tensor<si32, #ttnn_layout2>
      }
      func.func private @main_const_eval_5() -> tensor<1xsi32, #ttnn_layout4> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.zeros"(%0) <{shape = #ttnn.shape<1>}> : (!ttnn.device) -> tensor<1xsi32, #ttnn_layout4>
        return %1 : tensor<1xsi32, #ttnn_layout4>
      }
      func.func private @main_const_eval_6() -> tensor<1x1x1xsi32, #ttnn_layout> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 3 : i32, shape = #ttnn.shape<1x1x1>}> : (!ttnn.device) -> tensor<1x1x1xsi32, #ttnn_layout>
        return %1 : tensor<1x1x1xsi32, #ttnn_layout>
      }
      func.func private @main_const_eval_7() -> tensor<1x2x1xsi32, #ttnn_layout5> attributes {tt.function_type = "const_eval"} {
        %0 = "ttnn.get_device"() <{mesh_offset = #ttnn<mesh_offset 0x0>, mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
        %1 = "ttnn.full"(%0) <{fill_value = 2 : i32, shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xsi32, #ttnn_layout6>
        %2 = "ttnn.full"(%0) <{fill_value = 3 : i32, shape = #ttnn.shape<1x1>}> : (!ttnn.device) -> tensor<1x1xsi32, #ttnn_layout6>
        %3 = "ttnn.concat"(%1, %2) <{dim = 1 : si32}> : (tensor<1x1xsi32, #ttnn_layout6>, tensor<1x1xsi32, #ttnn_layout6>) -> tensor<1x2xsi32, #ttnn_layout7>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<1x1xsi32, #ttnn_layout6>) -> ()
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<1x1xsi32, #ttnn_layout6>) -> ()
        %4 = "ttnn.to_layout"(%3) : (tensor<1x2xsi32, #ttnn_layout7>) -> tensor<1x2xsi32, #ttnn_layout8>
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<1x2xsi32, #ttnn_layout7>) -> ()
        %5 = "ttnn.reshape"(%4) <{shape = [1 : i32, 2 : i32, 1 : i32]}> : (tensor<1x2xsi32, #ttnn_layout8>) -> tensor<1x2x1xsi32, #ttnn_layout9>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<1x2xsi32, #ttnn_layout8>) -> ()
        %6 = "ttnn.to_layout"(%5) : (tensor<1x2x1xsi32, #ttnn_layout9>) -> tensor<1x2x1xsi32, #ttnn_layout5>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<1x2x1xsi32, #ttnn_layout9>) -> ()
        return %6 : tensor<1x2x1xsi32, #ttnn_layout5>
      }
      func.func public @main(%arg0: tensor<35x70xf32, #ttnn_layout10> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg1: tensor<4x7xf32, #ttnn_layout11> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<4x7xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, %arg2: tensor<si32, #ttnn_layout12> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.local_shape = #ttcore<local_shape local_shape = tensor<i32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) -> (tensor<35x70xf32, #ttnn_layout13> {jax.result_info = "result[0]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<35x70xf32, #ttnn_layout13> {jax.result_info = "result[1]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<4x7xf32, #ttnn_layout14> {jax.result_info = "result[2]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<4x7xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}, tensor<35x70xf32, #ttnn_layout13> {jax.result_info = "result[3]", ttcore.local_shape = #ttcore<local_shape local_shape = tensor<35x70xf32>>, ttcore.shard_status = #ttcore.shard_status<unsharded>}) attributes {tt.function_type = "forward_device"} {
        %0 = ttcore.load_cached(@main_const_eval_0, []) : () -> tensor<1x1x1xsi32, #ttnn_layout>
        %1 = ttcore.load_cached(@main_const_eval_3, []) : () -> tensor<2xsi32, #ttnn_layout3>
        %2 = ttcore.load_cached(@main_const_eval_4, []) : () -> tensor<si32, #ttnn_layout2>
        %3 = ttcore.load_cached(@main_const_eval_1, []) : () -> tensor<1x1x70xf32, #ttnn_layout1>
        %4 = ttcore.load_cached(@main_const_eval_2, []) : () -> tensor<si32, #ttnn_layout2>
        %5 = ttcore.load_cached(@main_const_eval_6, []) : () -> tensor<1x1x1xsi32, #ttnn_layout>
        %6 = ttcore.load_cached(@main_const_eval_5, []) : () -> tensor<1xsi32, #ttnn_layout4>
        %7 = ttcore.load_cached(@main_const_eval_7, []) : () -> tensor<1x2x1xsi32, #ttnn_layout5>
        %8 = "ttnn.reshape"(%arg0) <{shape = [1 : i32, 35 : i32, 70 : i32]}> : (tensor<35x70xf32, #ttnn_layout10>) -> tensor<1x35x70xf32, #ttnn_layout15>
        %9 = "ttnn.reshape"(%arg1) <{shape = [1 : i32, 28 : i32]}> : (tensor<4x7xf32, #ttnn_layout11>) -> tensor<1x28xf32, #ttnn_layout16>
        %10 = "ttnn.rows_scatter"(%8, %7, %9) <{column = true, reduce = #ttcore.reduce_type<invalid>, sizes = array<i64: 35, 70>, windows = array<i64: 4, 7>}> : (tensor<1x35x70xf32, #ttnn_layout15>, tensor<1x2x1xsi32, #ttnn_layout5>, tensor<1x28xf32, #ttnn_layout16>) -> tensor<1x35x70xf32, #ttnn_layout15>
        "ttnn.deallocate"(%9) <{force = false}> : (tensor<1x28xf32, #ttnn_layout16>) -> ()
        "ttnn.deallocate"(%7) <{force = false}> : (tensor<1x2x1xsi32, #ttnn_layout5>) -> ()
        %11 = "ttnn.to_layout"(%10) : (tensor<1x35x70xf32, #ttnn_layout15>) -> tensor<1x35x70xf32, #ttnn_layout17>
        "ttnn.deallocate"(%10) <{force = false}> : (tensor<1x35x70xf32, #ttnn_layout15>) -> ()
        %12 = "ttnn.reshape"(%11) <{shape = [35 : i32, 70 : i32]}> : (tensor<1x35x70xf32, #ttnn_layout17>) -> tensor<35x70xf32, #ttnn_layout13>
        "ttnn.deallocate"(%11) <{force = false}> : (tensor<1x35x70xf32, #ttnn_layout17>) -> ()
        %13 = "ttnn.rows_scatter"(%8, %5, %3) <{column = false, reduce = #ttcore.reduce_type<invalid>, sizes = array<i64: 35>, windows = array<i64: 1>}> : (tensor<1x35x70xf32, #ttnn_layout15>, tensor<1x1x1xsi32, #ttnn_layout>, tensor<1x1x70xf32, #ttnn_layout1>) -> tensor<1x35x70xf32, #ttnn_layout15>
        "ttnn.deallocate"(%5) <{force = false}> : (tensor<1x1x1xsi32, #ttnn_layout>) -> ()
        "ttnn.deallocate"(%3) <{force = false}> : (tensor<1x1x70xf32, #ttnn_layout1>) -> ()
        %14 = "ttnn.to_layout"(%13) : (tensor<1x35x70xf32, #ttnn_layout15>) -> tensor<1x35x70xf32, #ttnn_layout17>
        "ttnn.deallocate"(%13) <{force = false}> : (tensor<1x35x70xf32, #ttnn_layout15>) -> ()
        %15 = "ttnn.reshape"(%14) <{shape = [35 : i32, 70 : i32]}> : (tensor<1x35x70xf32, #ttnn_layout17>) -> tensor<35x70xf32, #ttnn_layout13>
        "ttnn.deallocate"(%14) <{force = false}> : (tensor<1x35x70xf32, #ttnn_layout17>) -> ()
        %16 = "ttnn.to_layout"(%arg2) : (tensor<si32, #ttnn_layout12>) -> tensor<si32, #ttnn_layout2>
        "ttnn.deallocate"(%arg2) <{force = false}> : (tensor<si32, #ttnn_layout12>) -> ()
        %17 = "ttnn.gt"(%4, %16) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<si32, #ttnn_layout2>, tensor<si32, #ttnn_layout2>) -> tensor<bf16, #ttnn_layout18>
        "ttnn.deallocate"(%4) <{force = false}> : (tensor<si32, #ttnn_layout2>) -> ()
        %18 = "ttnn.add"(%16, %2) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<si32, #ttnn_layout2>, tensor<si32, #ttnn_layout2>) -> tensor<si32, #ttnn_layout2>
        "ttnn.deallocate"(%2) <{force = false}> : (tensor<si32, #ttnn_layout2>) -> ()
        %19 = "ttnn.where"(%17, %18, %16) : (tensor<bf16, #ttnn_layout18>, tensor<si32, #ttnn_layout2>, tensor<si32, #ttnn_layout2>) -> tensor<si32, #ttnn_layout2>
        "ttnn.deallocate"(%18) <{force = false}> : (tensor<si32, #ttnn_layout2>) -> ()
        "ttnn.deallocate"(%17) <{force = false}> : (tensor<bf16, #ttnn_layout18>) -> ()
        "ttnn.deallocate"(%16) <{force = false}> : (tensor<si32, #ttnn_layout2>) -> ()
        %20 = "ttnn.reshape"(%19) <{shape = [1 : i32]}> : (tensor<si32, #ttnn_layout2>) -> tensor<1xsi32, #ttnn_layout3>
        "ttnn.deallocate"(%19) <{force = false}> : (tensor<si32, #ttnn_layout2>) -> ()
        %21 = "ttnn.clamp_scalar"(%20) <{max = 31 : i32, min = 0 : i32}> : (tensor<1xsi32, #ttnn_layout3>) -> tensor<1xsi32, #ttnn_layout3>
        "ttnn.deallocate"(%20) <{force = false}> : (tensor<1xsi32, #ttnn_layout3>) -> ()
        %22 = "ttnn.to_layout"(%21) : (tensor<1xsi32, #ttnn_layout3>) -> tensor<1xsi32, #ttnn_layout4>
        "ttnn.deallocate"(%21) <{force = false}> : (tensor<1xsi32, #ttnn_layout3>) -> ()
        %23 = "ttnn.concat"(%22, %6) <{dim = 0 : si32}> : (tensor<1xsi32, #ttnn_layout4>, tensor<1xsi32, #ttnn_layout4>) -> tensor<2xsi32, #ttnn_layout19>
        "ttnn.deallocate"(%22) <{force = false}> : (tensor<1xsi32, #ttnn_layout4>) -> ()
        "ttnn.deallocate"(%6) <{force = false}> : (tensor<1xsi32, #ttnn_layout4>) -> ()
        %24 = "ttnn.to_layout"(%23) : (tensor<2xsi32, #ttnn_layout19>) -> tensor<2xsi32, #ttnn_layout3>
        %25 = "ttnn.add"(%24, %1) <{activations = [], input_tensor_a_activations = [], input_tensor_b_activations = []}> : (tensor<2xsi32, #ttnn_layout3>, tensor<2xsi32, #ttnn_layout3>) -> tensor<2xsi32, #ttnn_layout3>
        "ttnn.deallocate"(%24) <{force = false}> : (tensor<2xsi32, #ttnn_layout3>) -> ()
        "ttnn.deallocate"(%1) <{force = false}> : (tensor<2xsi32, #ttnn_layout3>) -> ()
        %26 = "ttnn.to_layout"(%23) : (tensor<2xsi32, #ttnn_layout19>) -> tensor<2xsi32, #ttnn_layout3>
        "ttnn.deallocate"(%23) <{force = false}> : (tensor<2xsi32, #ttnn_layout19>) -> ()
        %27 = "ttnn.typecast"(%26) : (tensor<2xsi32, #ttnn_layout3>) -> tensor<2xui32, #ttnn_layout20>
        "ttnn.deallocate"(%26) <{force = false}> : (tensor<2xsi32, #ttnn_layout3>) -> ()
        %28 = "ttnn.typecast"(%25) : (tensor<2xsi32, #ttnn_layout3>) -> tensor<2xui32, #ttnn_layout20>
        "ttnn.deallocate"(%25) <{force = false}> : (tensor<2xsi32, #ttnn_layout3>) -> ()
        %29 = "ttnn.slice_dynamic"(%arg0, %27, %28) : (tensor<35x70xf32, #ttnn_layout10>, tensor<2xui32, #ttnn_layout20>, tensor<2xui32, #ttnn_layout20>) -> tensor<4x7xf32, #ttnn_layout11>
        "ttnn.deallocate"(%28) <{force = false}> : (tensor<2xui32, #ttnn_layout20>) -> ()
        "ttnn.deallocate"(%27) <{force = false}> : (tensor<2xui32, #ttnn_layout20>) -> ()
        "ttnn.deallocate"(%arg0) <{force = false}> : (tensor<35x70xf32, #ttnn_layout10>) -> ()
        %30 = "ttnn.to_layout"(%29) : (tensor<4x7xf32, #ttnn_layout11>) -> tensor<4x7xf32, #ttnn_layout14>
        "ttnn.deallocate"(%29) <{force = false}> : (tensor<4x7xf32, #ttnn_layout11>) -> ()
        %31 = "ttnn.to_layout"(%arg1) : (tensor<4x7xf32, #ttnn_layout11>) -> tensor<4x7xf32, #ttnn_layout14>
        "ttnn.deallocate"(%arg1) <{force = false}> : (tensor<4x7xf32, #ttnn_layout11>) -> ()
        %32 = "ttnn.slice_static"(%31) <{begins = [0 : i32, 0 : i32], ends = [2 : i32, 1 : i32], step = [1 : i32, 1 : i32]}> : (tensor<4x7xf32, #ttnn_layout14>) -> tensor<2x1xf32, #ttnn_layout14>
        "ttnn.deallocate"(%31) <{force = false}> : (tensor<4x7xf32, #ttnn_layout14>) -> ()
        %33 = "ttnn.repeat"(%32) <{repeat_dims = #ttnn.shape<1x70>}> : (tensor<2x1xf32, #ttnn_layout14>) -> tensor<2x70xf32, #ttnn_layout21>
        "ttnn.deallocate"(%32) <{force = false}> : (tensor<2x1xf32, #ttnn_layout14>) -> ()
        %34 = "ttnn.to_layout"(%33) : (tensor<2x70xf32, #ttnn_layout21>) -> tensor<2x70xf32, #ttnn_layout22>
        "ttnn.deallocate"(%33) <{force = false}> : (tensor<2x70xf32, #ttnn_layout21>) -> ()
        %35 = "ttnn.reshape"(%34) <{shape = [1 : i32, 2 : i32, 70 : i32]}> : (tensor<2x70xf32, #ttnn_layout22>) -> tensor<1x2x70xf32, #ttnn_layout23>
        "ttnn.deallocate"(%34) <{force = false}> : (tensor<2x70xf32, #ttnn_layout22>) -> ()
        %36 = "ttnn.rows_scatter"(%8, %0, %35) <{column = false, reduce = #ttcore.reduce_type<sum>, sizes = array<i64: 35>, windows = array<i64: 2>}> : (tensor<1x35x70xf32, #ttnn_layout15>, tensor<1x1x1xsi32, #ttnn_layout>, tensor<1x2x70xf32, #ttnn_layout23>) -> tensor<1x35x70xf32, #ttnn_layout15>
        "ttnn.deallocate"(%35) <{force = false}> : (tensor<1x2x70xf32, #ttnn_layout23>) -> ()
        "ttnn.deallocate"(%8) <{force = false}> : (tensor<1x35x70xf32, #ttnn_layout15>) -> ()
        "ttnn.deallocate"(%0) <{force = false}> : (tensor<1x1x1xsi32, #ttnn_layout>) -> ()
        %37 = "ttnn.to_layout"(%36) : (tensor<1x35x70xf32, #ttnn_layout15>) -> tensor<1x35x70xf32, #ttnn_layout17>
        "ttnn.deallocate"(%36) <{force = false}> : (tensor<1x35x70xf32, #ttnn_layout15>) -> ()
        %38 = "ttnn.reshape"(%37) <{shape = [35 : i32, 70 : i32]}> : (tensor<1x35x70xf32, #ttnn_layout17>) -> tensor<35x70xf32, #ttnn_layout13>
        "ttnn.deallocate"(%37) <{force = false}> : (tensor<1x35x70xf32, #ttnn_layout17>) -> ()
        return %12, %15, %30, %38 : tensor<35x70xf32, #ttnn_layout13>, tensor<35x70xf32, #ttnn_layout13>, tensor<4x7xf32, #ttnn_layout14>, tensor<35x70xf32, #ttnn_layout13>
      }
    }
  }
}
